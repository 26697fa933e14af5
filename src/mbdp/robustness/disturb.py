"""Noise and delay around any environment, repeatable from the seed that it is reset with."""

from collections import deque
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from mbdp.robustness.axes import AXES, DISTURBANCES, check_coefficients
from mbdp.types import BadInput


class Disturbed(gymnasium.Wrapper):
    """An environment with noisy observations, noisy actions and late actions; zeros leave every number as it was."""

    def __init__(self, env: gymnasium.Env, coefficients: Mapping[str, float]) -> None:
        given = check_coefficients(coefficients)
        if foreign := [name for name in given if name not in DISTURBANCES]:
            raise BadInput(f"{foreign[0]} is no disturbance: those are {', '.join(DISTURBANCES)}")
        for what, space in (("observations", env.observation_space), ("actions", env.action_space)):
            if not isinstance(space, gymnasium.spaces.Box):
                raise BadInput(f"noise and delay need Box {what}; these are {space}")
        super().__init__(env)
        self.coefficients = {name: given.get(name, AXES[name].neutral) for name in DISTURBANCES}
        self.late: deque[Any] = deque()
        self._seed(None)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; a seed also fixes all its noise, and until the first action arrives none is applied."""
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None:
            self._seed(seed)
        space = self.env.action_space
        assert isinstance(space, gymnasium.spaces.Box)
        idle = np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
        self.late = deque([idle] * int(self.coefficients["action_delay"]))
        return self._noisy(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Apply the action that is due, with noise, and observe with noise."""
        self.late.append(action)
        due = np.asarray(self.late.popleft())
        space = self.env.action_space
        assert isinstance(space, gymnasium.spaces.Box)
        half = (space.high - space.low) / 2
        noisy = due + self.coefficients["action_noise"] * half * self._action_noise.standard_normal(due.shape)
        # Noise does not leave the bounds, but an action that was outside of them to begin with stays where it was.
        low, high = np.minimum(space.low, due), np.maximum(space.high, due)
        observation, reward, terminated, truncated, info = self.env.step(np.clip(noisy, low, high).astype(due.dtype))
        return self._noisy(observation), reward, terminated, truncated, info

    def _noisy(self, observation: Any) -> np.ndarray:
        clean = np.asarray(observation)
        noise = self._observation_noise.standard_normal(clean.shape)
        return (clean + self.coefficients["observation_noise"] * noise).astype(clean.dtype)

    def _seed(self, seed: int | None) -> None:
        # Streams of their own: neither kind of noise moves the other, nor the environment's own random numbers.
        streams = [np.random.SeedSequence(seed, spawn_key=(stream,)) for stream in (1, 2)]
        self._observation_noise, self._action_noise = (np.random.default_rng(stream) for stream in streams)
