"""An environment of your own: no registration, and its reward and termination are learned from what it does."""

from typing import Any

import gymnasium
import numpy as np

from mbdp import MBDP


class Crane(gymnasium.Env[np.ndarray, np.ndarray]):
    """Drive a trolley to the middle of its rail without letting the load swing beyond 0.6 rad."""

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (4,), np.float32)
    action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state = np.array([self.np_random.uniform(-1.0, 1.0), 0.0, 0.0, 0.0])
        return self.state.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        place, speed, angle, swing = self.state
        force = float(action[0])
        speed, swing = speed + 0.05 * force, swing - 0.05 * (9.8 * np.sin(angle) + force * np.cos(angle) + 0.1 * swing)
        place, angle = place + 0.05 * speed, angle + 0.05 * swing
        self.state = np.clip([place, speed, angle, swing], -10, 10)
        fell = bool(abs(angle) > 0.6 or abs(place) > 2)
        return self.state.astype(np.float32), 1.0 - place**2 - 0.1 * speed**2 - angle**2, fell, False, {}


agent = MBDP(gymnasium.wrappers.TimeLimit(Crane(), 100), random_steps=500, rollouts=5_000, seed=0)
agent.learn(2_500, progress_bar=True)

env = gymnasium.wrappers.TimeLimit(Crane(), 100)
for episode in range(3):
    observation, total, over = env.reset(seed=100 + episode)[0], 0.0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(agent.predict(observation)[0])
        total, over = total + float(reward), terminated or truncated
    print(f"episode {episode}: return {total:.1f} of at most 100, {'fell' if terminated else 'stood'}")
