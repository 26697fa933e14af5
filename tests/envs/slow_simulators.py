"""Environments for processes of their own, each with a habit."""

import os
import signal
import time
from typing import Any

import gymnasium
import numpy as np

from mbdp.envs.toy import PointMass

SLOW = f"{__name__}:tests/Slow-v0"


class Slow(PointMass):
    """It takes its time."""

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        time.sleep(0.02)
        return super().step(action)


class Failing(PointMass):
    """At every fifth step it gives `reward`, or raises, or its process dies."""

    def __init__(self, how: float | str) -> None:
        super().__init__()
        self.how, self.count = how, 0

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.count += 1
        observation, reward, terminated, truncated, info = super().step(action)
        if self.count % 5 == 0:
            if self.how == "raise":
                raise RuntimeError("a wire broke")
            if self.how == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            reward = float(self.how)
        return observation, reward, terminated, truncated, info


class Growing(PointMass):
    """Its second episode has another space."""

    episodes = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        self.episodes += 1
        if self.episodes > 1:
            self.observation_space = gymnasium.spaces.Box(-9.0, 9.0, (2,), np.float32)
        return super().reset(seed=seed, options=options)


class Dice(PointMass):
    """Its seed has no meaning."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        return super().reset(seed=int.from_bytes(os.urandom(4)), options=options)


def short(kind: type[PointMass] = PointMass, *arguments: Any) -> gymnasium.Env:
    """With episodes of at most 20 steps."""
    return gymnasium.wrappers.TimeLimit(kind(*arguments), 20)


gymnasium.register("tests/Slow-v0", entry_point=f"{__name__}:Slow", max_episode_steps=50)
