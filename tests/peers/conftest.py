"""What the tests of others' policies share."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from mbdp.policies.foreign import open_policy
from mbdp.robustness import evaluate_grid
from mbdp.robustness.perturb import perturb


def acts_as(agent: Any, file: Path) -> bool:
    """Whether the policy in the file gives the agent's actions, to the last bit."""
    observations = np.random.default_rng(0).normal(size=(16, 11))
    expected, _ = agent.predict(observations, deterministic=True)
    return np.array_equal(open_policy(file, allow_code=True)(observations), expected)


def cell_and_plain_loop(agent: Any, file: Path) -> tuple[float, float]:
    """The return of an episode in a heavier Hopper, by the grid and by a plain loop with the agent's own `predict`."""
    grid = evaluate_grid(open_policy(file, allow_code=True), "Hopper-v5", {"mass": [1.2]}, episodes=2, seed=5, batch=1)
    env = perturb(gymnasium.make("Hopper-v5"), {"mass": 1.2})
    observation, _ = env.reset(seed=6)
    total, over = 0.0, False
    while not over:
        action, _ = agent.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(action)
        total, over = total + float(reward), terminated or truncated
    return grid.returns[0, 1], total
