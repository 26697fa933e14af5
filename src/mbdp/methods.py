"""The systems that can be trained, by the names that `--algo` takes: how each is configured, begun and carried on."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

from mbdp import algorithm, config, presets
from mbdp.agents import ddpg, sac, trpo
from mbdp.algorithm import Learner, Progress
from mbdp.baselines import slbo, slbo_config, steve, steve_config
from mbdp.config import Common


class Method(NamedTuple):
    """A system: its settings, its loop, and how its agents act and what they expect."""

    config: type[Common]
    preset: Callable[..., Any]  # (algo, env id, "default" or "paper") -> settings
    create: Callable[..., Learner]
    loop: Callable[..., Iterator[Progress]]
    acting: ModuleType  # explore(actor, observation, *, rng) and greedy(agent, actions)
    value: Callable[..., Any]  # (agent, observation, action) -> expected discounted return


_MBDP = Method(config.Config, presets.preset, algorithm.create, algorithm.mbdp, sac, algorithm.value)
METHODS = dict.fromkeys(presets.FAMILY, _MBDP) | {
    "steve": Method(steve_config.Config, steve_config.preset, steve.create, steve.steve, ddpg, steve.value),
    "slbo": Method(slbo_config.Config, slbo_config.preset, slbo.create, slbo.slbo, trpo, slbo.value),
}


def preset(algo: str, env_id: str, name: str = "default") -> Any:
    """The settings of a system for an environment."""
    return METHODS[algo].preset(algo, env_id, name)
