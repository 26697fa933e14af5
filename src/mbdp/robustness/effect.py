"""Try out whether a parameter of the user's own environment really changes its episodes."""

import warnings
from collections.abc import Mapping, Sequence

import gymnasium
import numpy as np

from mbdp.envs.checked import Checked
from mbdp.robustness.parameters import parameters_of
from mbdp.robustness.perturb import perturb
from mbdp.types import BadInput

EPISODES, STEPS = 10, 100  # that are tried before a parameter is said to change nothing


def check_effect(env: gymnasium.Env, axes: Mapping[str, Sequence[float]]) -> None:
    """BadInput if an own parameter changes nothing at the value farthest from neutral, or cannot be undone."""
    own = parameters_of(env)
    for name in [name for name in axes if name in own]:
        value = max(axes[name], key=lambda value, name=name: abs(value - own[name].neutral))  # type: ignore[misc]
        if value != own[name].neutral:
            _check(env, name, value)


def _check(env: gymnasium.Env, name: str, value: float) -> None:
    """Random episodes in the nominal world, in the perturbed one, and in the nominal one again."""
    for seed in range(EPISODES):
        nominal = _episode(perturb(env, {}), seed)
        if not np.array_equal(nominal, _episode(perturb(env, {}), seed), equal_nan=True):
            what = type(env.unwrapped).__name__
            warnings.warn(
                f"{what} does not repeat itself from a seed, so whether {name} has an effect is not known", stacklevel=4
            )
            return
        changed = _episode(perturb(env, {name: value}), seed)
        if not np.array_equal(nominal, _episode(perturb(env, {}), seed), equal_nan=True):
            raise BadInput(
                f"{name} cannot be undone: after {name}={value:g} and back, the environment is not what it was; "
                "set it from the nominal value at every call"
            )
        if not np.array_equal(nominal, changed, equal_nan=True):
            return
    raise BadInput(
        f"{name} would change nothing in this environment: {EPISODES} episodes of random actions "
        f"with {name}={value:g} were the nominal ones, number by number"
    )


def _episode(env: gymnasium.Env, seed: int) -> np.ndarray:
    """Every number that random actions brought about."""
    space = env.action_space
    assert isinstance(space, gymnasium.spaces.Box)
    actions = np.random.default_rng(seed).uniform(space.low, space.high, (STEPS, *space.shape)).astype(space.dtype)
    env = Checked(env)
    rows = [np.ravel(env.reset(seed=seed)[0])]
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        rows += [np.ravel(observation), np.array([float(reward), terminated, truncated])]
        if terminated or truncated:
            break
    return np.concatenate(rows)
