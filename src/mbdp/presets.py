"""Where settings start from: the default and the paper's preset, and every method as a diff of MBDP."""

import math
from dataclasses import replace
from typing import Any, Literal

from mbdp.config import Config
from mbdp.envs.tasks import task_of

PresetName = Literal["default", "paper"]
Preference = Literal["balanced", "robust", "efficient"]

# Section 3.3.3: more alpha and less beta for robustness, the reverse for efficiency.
PREFERENCES: dict[str, dict[str, float]] = {
    "balanced": {"alpha": 0.5, "beta": 0.2},
    "robust": {"alpha": 0.5, "beta": 0.0},
    "efficient": {"alpha": 0.2, "beta": 0.4},
}

# SAC on d_model, as MBPO has it: what every system without a training rollout starts from.
WITHOUT_EXPANSION: dict[str, Any] = {
    "expansion": 0,
    "cut_episodes": 0,
    "group": "members",
    "samples_per_state": 10,
    "members": 7,
    "model_depth": 4,
    "model_noise": "input",
    "model_layer_norm": False,
    "fit_steps": 100,
    "random_steps": 1_000,
    "first_fit_steps": 1_000,
    "rollouts": 30_000,
    "recent": 0.0,
    "fit_recent": 0.0,
    "imagined_per_drawn": 1.0,
    "horizon": (1, 1, 0, 0),
    "d_model_fits": 4,
    "updates_per_step": 8,
    "update_every": 1,
    "actor_every": 2,
    "activation": "relu",
    "normalised_inputs": False,
    "tau": 0.005,
    "temperature": 1.0,
    "discount": 0.99,
    "average_over": 500,
}

MBPO: dict[str, Any] = {
    "alpha": 0.0,
    "beta": 2 / 7,
    "members": 7,
    "group": "state",  # with one sample per state: no grouping at all
    "samples_per_state": 1,
    "member_per": "row",
    "bias": "mse",
}
FAMILY: dict[str, dict[str, Any]] = {
    "mbdp": {},
    "mbpo": MBPO,
    "sac": {"real_ratio": 1.0, "alpha": 0.0, "beta": 0.0},
    "alpha-only": {"beta": 0.0},
    "beta-only": {"alpha": 0.0},
    "no-dropout": {"alpha": 0.0, "beta": 0.0},
}
# Appendix B of the paper. What it leaves open is as MBPO's authors run it, but for the length of fits: theirs go on
# while any member improves, which takes far longer than the paper's whole runs.
PAPER: dict[str, Any] = {
    "alpha": 0.2,
    "random_steps": 5_000,
    "fit_steps": 0,
    "longest_epoch": 100,
    "most_fit_steps": 600,
    "layer_norm": False,
    "members": 10,
    "actor_every": 1,
    "model_every": 250,
    "rollouts": 100_000,
    "imagined_per_drawn": 0.0,
    "average_over": 1,
    "group": "state",
    "member_per": "step",
}


def preset(algo: str, env_id: str, name: str = "default") -> Config:
    """The settings of a method for an environment."""
    steps = task_of(env_id).steps
    config = replace(Config(), steps=steps, random_steps=_random_steps(steps))
    if name == "paper" or algo in ("mbpo", "sac"):
        config = _without_expansion(config, env_id, name)
    config = replace(config, **FAMILY[algo])
    return replace(config, updates_per_step=1, actor_every=1) if algo == "sac" else config


def _without_expansion(config: Config, env_id: str, name: str) -> Config:
    task = task_of(env_id)
    own = {"target_entropy": _or_nan(task.target_entropy), "horizon": task.horizon}
    config = replace(config, **WITHOUT_EXPANSION | own)
    if name == "paper":
        random_steps = at_most_a_quarter(PAPER["random_steps"], task.steps)
        return replace(config, **PAPER | {"updates_per_step": task.updates_per_step, "random_steps": random_steps})
    config = replace(config, last_discount=task.last_discount)
    if task.updates:
        of_critics, of_actor = task.updates
        config = replace(config, updates_per_step=of_critics, actor_every=of_critics // of_actor)
    return config


def _random_steps(steps: int) -> int:
    """A fortieth of a task's env steps, within limits: with too few, HalfCheetah may learn to run on its back."""
    return min(2_500, max(1_000, steps // 40))


def at_most_a_quarter(published: int, steps: int) -> int:
    """Env steps before learning starts as published, unless a task is so short that little of it would be left."""
    return min(published, steps // 4)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
