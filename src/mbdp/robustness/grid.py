"""How far can a policy be trusted? Run it, without any adaptation, in worlds that differ from the nominal one.

Episode e of every cell starts from `reset(seed=seed + e)`, so a plain Gymnasium loop around `perturb(env, cell)`
repeats any number of the grid: to the last bit if an action does not depend on the rows that came with it, as with
`Policy`, and for all other policies with `batch=1`.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from mbdp.envs import tasks
from mbdp.envs.tasks import EnvMaker
from mbdp.robustness.axes import OwnAxes, check_value
from mbdp.robustness.effect import check_effect
from mbdp.robustness.episodes import BatchPolicy, Job, act
from mbdp.robustness.parameters import Perturbations, declare, own_axes
from mbdp.robustness.perturb import perturb as perturbed
from mbdp.robustness.processes import Report, one_line, run_all
from mbdp.types import BadInput

BATCH = 64
PROTOCOL = "zero-shot"


@dataclass(frozen=True, eq=False)
class Grid:
    """What a policy reached in every cell, shaped (axes..., episodes), in the order of `axes`."""

    axes: dict[str, tuple[float, ...]]
    returns: np.ndarray
    lengths: np.ndarray
    diverged: np.ndarray  # True where the simulation became unstable; the return is then that until there
    env_id: str
    seed: int
    protocol: str = PROTOCOL


def evaluate_grid(
    policy: Any,
    env_id: str | EnvMaker,
    axes: Mapping[str, Sequence[float]],
    episodes: int = 5,
    seed: int = 0,
    *,
    perturb: Perturbations | None = None,
    **options: Any,
) -> Grid:
    """Returns of a policy in every cell of a grid; the options are those of `evaluate_grids`.

    `perturb` names parameters of an environment that does not declare them itself: {"cable": "length"} for an attribute
    that the axis multiplies, or a function called as (env, coefficient); see `mbdp.robustness.Parameter`.
    """
    return evaluate_grids([policy], functools.partial(_make, env_id, perturb), axes, episodes, seed, **options)[0]


def evaluate_grids(
    policies: Sequence[Any],
    env_id: str | EnvMaker,
    axes: Mapping[str, Sequence[float]],
    episodes: int = 5,
    seed: int = 0,
    *,
    workers: int = 1,
    batch: int = BATCH,
    progress: Report = lambda done, total: None,
) -> list[Grid]:
    """One grid per policy: callables on a batch of observations, or agents with SB3's `predict`.

    With `workers` above 1 the policies are pickled to processes of their own, and a script that calls this needs the
    usual `if __name__ == "__main__":`.
    """
    for name, value in {"episodes": episodes, "seed": seed, "workers": workers, "batch": batch}.items():
        least = 0 if name == "seed" else 1
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
            raise BadInput(f"{name} must be a whole number of at least {least}; it is {value!r}")
    make = functools.partial(_make, env_id, None)
    env = make()
    checked = _checked_axes(axes, own_axes(env))
    callables = [_Predicting(policy) if hasattr(policy, "predict") else policy for policy in policies]
    cells = [dict(zip(checked, values, strict=True)) for values in itertools.product(*checked.values())]
    name = _try_out(callables, env, checked, batch)
    jobs = [Job(cell, int(seed) + episode) for cell in cells for episode in range(episodes)]
    results = run_all(callables, make, jobs, batch, workers, progress)
    shape = (*map(len, checked.values()), episodes)
    columns = [[np.array(column).reshape(shape) for column in zip(*rows, strict=True)] for rows in results]
    return [Grid(checked, returns, lengths, diverged, name, int(seed)) for returns, lengths, diverged in columns]


def _make(env_id: str | EnvMaker, perturbations: Perturbations | None) -> gymnasium.Env:
    return declare(env_id() if callable(env_id) else tasks.make(env_id), perturbations)


def _checked_axes(axes: Mapping[str, Sequence[float]], own: OwnAxes) -> dict[str, tuple[float, ...]]:
    if not axes:
        raise BadInput("a grid needs at least one axis, for example mass")
    checked = {name: tuple(check_value(name, value, own) for value in values) for name, values in axes.items()}
    if empty := [name for name, values in checked.items() if not values]:
        raise BadInput(f"axis {empty[0]} has no values")
    return checked


def _try_out(
    policies: Sequence[BatchPolicy], env: gymnasium.Env, axes: Mapping[str, Sequence[float]], batch: int
) -> str:
    """The environment's name, after making sure that every policy fits it and that every axis has an effect in it."""
    spec = tasks.spec_of(env)
    name = env.spec.id if env.spec else type(env.unwrapped).__name__
    perturbed(env, {axis: values[0] for axis, values in axes.items()}).reset(seed=0)
    check_effect(env, axes)
    for policy in policies:
        try:
            act(policy, np.zeros((batch, spec.observation_size), env.observation_space.dtype), spec.action_size)
        except Exception as error:  # a policy is anyone's code, and may fail in any way
            sizes = f"{spec.observation_size} observations and {spec.action_size} actions"
            raise BadInput(f"the policy does not fit {name}, which has {sizes}: {one_line(error)}") from error
    env.close()
    return name


class _Predicting:
    """An agent with Stable-Baselines3's `predict`, as a callable."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        return np.asarray(self.agent.predict(observations, deterministic=True)[0])
