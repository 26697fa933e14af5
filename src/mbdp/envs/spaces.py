"""Anybody's environment as this library learns in it: observations and actions as vectors of numbers."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from gymnasium.wrappers import FlattenObservation, TransformAction

from mbdp.types import BadInput

COLOURS = (1, 3, 4)  # numbers per pixel
SMALLEST_IMAGE = 8  # pixels along each side
PLANE = 32  # numbers along each of two sides, from which on they are pixels, whatever their kind


def adapted(env: gymnasium.Env) -> gymnasium.Env:
    """The environment with one-dimensional Box spaces, by Gymnasium's own wrappers; what cannot be so is refused."""
    if not isinstance(env, gymnasium.Env):
        raise BadInput(f"env must be an id or a gymnasium.Env; it is {type(env).__module__}.{type(env).__name__}")
    name = env.spec.id if env.spec else type(env.unwrapped).__name__
    _check_observations(name, getattr(env, "observation_space", None))
    _check_actions(name, getattr(env, "action_space", None))
    if not isinstance(env.observation_space, Box) or len(env.observation_space.shape) != 1:
        env = FlattenObservation(env)
    actions = env.action_space
    assert isinstance(actions, Box)
    if len(actions.shape) != 1:
        flat = Box(actions.low.ravel(), actions.high.ravel(), dtype=actions.dtype.type)
        env = TransformAction(env, _Reshape(actions.shape), flat)
    return env


class _Reshape:
    """From a vector to an array of this shape."""

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        return vector.reshape(self.shape)


def without_adaptation(env: gymnasium.Env) -> gymnasium.Env:
    """The environment as its author sees it."""
    while type(env) is FlattenObservation or (type(env) is TransformAction and isinstance(env.func, _Reshape)):
        env = env.env
    return env


def adaptation_of(env: gymnasium.Env) -> list[str]:
    """What was changed about an environment's spaces: sentences for its user."""
    own = without_adaptation(env)
    pairs = (
        ("observations", own.observation_space, env.observation_space),
        ("actions", own.action_space, env.action_space),
    )
    return [
        f"the {what}, {before}, are flattened to {after.shape[0]} numbers"
        for what, before, after in pairs
        if before != after and isinstance(after, Box)
    ]


def flat_rows(space: Space, observation: Any) -> tuple[np.ndarray, bool]:
    """Observations of a space as rows (n, numbers), and whether it was a single one; flat ones are taken too."""
    numbers = gymnasium.spaces.flatdim(space)
    if isinstance(space, Dict | Tuple) and isinstance(observation, dict | tuple):
        parts = [(part, observation[name]) for name, part in _parts(space)]
        columns, single = zip(*(flat_rows(part, own) for part, own in parts), strict=True)
        return np.concatenate(columns, axis=-1), all(single)
    values, shape = np.asarray(observation), space.shape or ()
    if not isinstance(space, Dict | Tuple) and values.shape[max(values.ndim - len(shape), 0) :] == shape:
        single = values.ndim == len(shape)
        if not isinstance(space, Box):  # each whole number becomes a row of zeros and a one
            values = np.asarray([gymnasium.spaces.flatten(space, one) for one in (values[None] if single else values)])
        return values.reshape(-1, numbers).astype(np.float32), single
    if values.ndim in (1, 2) and values.shape[-1] == numbers:
        return np.atleast_2d(values).astype(np.float32), values.ndim == 1
    raise BadInput(f"an observation of shape {values.shape} is not one of {space}")


def _parts(space: Dict | Tuple) -> list[tuple[Any, Space]]:
    return list(space.items() if isinstance(space, Dict) else enumerate(space.spaces))


def _check_observations(name: str, space: Space | None) -> None:
    if isinstance(space, Dict | Tuple):
        for part, own in _parts(space):
            _check_observations(f"{name}, part {part!r} of the observation", own)
        return
    if isinstance(space, Box) and _is_image(space):
        raise BadInput(
            f"{name}: {space} is an image, and a model of pixels is not part of mbdp: use an environment or a wrapper "
            "that gives positions and velocities, or an algorithm for images, for example DreamerV3"
        )
    if not isinstance(space, Box | Discrete | MultiBinary | MultiDiscrete):
        raise BadInput(f"{name}: the observation space must be a Box, or a Dict or Tuple of them; it is {space}")
    if not gymnasium.spaces.flatdim(space):
        raise BadInput(f"{name}: {space} has no numbers in it")


def _check_actions(name: str, space: Space | None) -> None:
    if isinstance(space, Box) and np.issubdtype(space.dtype, np.floating):
        return
    advice = "wrap the environment so that it takes a Box of numbers"
    if isinstance(space, Discrete | MultiDiscrete | MultiBinary | Box):
        advice = "mbdp is for continuous actions; for discrete ones use DQN or PPO, for example of Stable-Baselines3"
    raise BadInput(f"{name}: the action space must be a Box of floats; it is {space}: {advice}")


def _is_image(space: Box) -> bool:
    """Bytes in a plane or more, a large plane, or three axes: two are long, and the first or last can be colours."""
    if space.dtype == np.uint8 and len(space.shape) >= 2:
        return True
    if sum(side >= PLANE for side in space.shape) >= 2:
        return True
    if len(space.shape) != 3:
        return False
    first, *_, last = space.shape
    sides = space.shape[:2] if last in COLOURS else space.shape[1:] if first in COLOURS else (0,)
    return min(sides) >= SMALLEST_IMAGE
