"""Evaluation: deterministic policy, environments of its own, a fixed list of seeds, undiscounted return."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import gymnasium

FIRST_SEED = 1_000_000  # far from the seeds that people train with
LONGEST = 10_000  # steps, after which an episode that nothing else ends is cut


class Evaluation(NamedTuple):
    """Return and length of each episode, where it started, and its discounted return, to judge critics by."""

    returns: np.ndarray
    lengths: np.ndarray
    starts: np.ndarray
    discounted: np.ndarray


def evaluate(
    policy: Callable[[np.ndarray], np.ndarray],
    envs: "list[gymnasium.Env]",
    *,
    first_seed: int = FIRST_SEED,
    discount: float = 0.99,
) -> Evaluation:
    """One episode in each environment, side by side, so that the policy acts on all of them at once."""
    observations = np.stack([env.reset(seed=first_seed + i)[0] for i, env in enumerate(envs)]).astype(np.float32)
    starts = observations.copy()
    returns, discounted, lengths = np.zeros(len(envs)), np.zeros(len(envs)), np.zeros(len(envs), int)
    running = np.arange(len(envs))
    while len(running):
        actions = policy(observations[running])
        ended = np.zeros(len(running), bool)
        for place, (i, action) in enumerate(zip(running, actions, strict=True)):
            observations[i], reward, terminated, truncated, _ = envs[i].step(action)
            returns[i] += float(reward)
            discounted[i] += discount ** lengths[i] * float(reward)
            lengths[i] += 1
            ended[place] = terminated or truncated or lengths[i] >= LONGEST
        running = running[~ended]
    return Evaluation(returns, lengths, starts, discounted)
