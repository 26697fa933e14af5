"""A point mass: the smallest task that every algorithm must solve, for tests and documentation."""

from typing import Any

import gymnasium
import numpy as np

POINT_MASS = "mbdp/PointMass-v0"


class PointMass(gymnasium.Env[np.ndarray, np.ndarray]):
    """Push a mass on a line to rest at the origin; leaving [-2, 2] ends the episode with a penalty."""

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self) -> None:
        self.position, self.velocity = 0.0, 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.position, self.velocity = self.np_random.uniform(-1.0, 1.0), 0.0
        return self._observation(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        force = float(np.clip(action[0], -1.0, 1.0))
        self.velocity = 0.9 * self.velocity + 0.2 * force
        self.position += 0.2 * self.velocity
        terminated = abs(self.position) > 2.0
        reward = 1.0 - self.position**2 - 0.1 * self.velocity**2 - 0.01 * force**2 - 10.0 * terminated
        return self._observation(), reward, terminated, False, {}

    def _observation(self) -> np.ndarray:
        return np.array([self.position, self.velocity], np.float32)


gymnasium.register(POINT_MASS, entry_point=f"{__name__}:PointMass", max_episode_steps=50)
