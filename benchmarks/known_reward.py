"""What a known reward buys on Pendulum-v1: python -m benchmarks.known_reward [SEEDS].

The same agent learns with the reward that it is given and with the reward that its models learn, side by side. The
policy is evaluated every 250 env steps, in ten episodes that are the same for all.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import gymnasium
import jax.numpy as jnp
import numpy as np

from mbdp.api import MBDP
from mbdp.experiments.compilation_cache import share_compilations
from mbdp.experiments.evaluate import evaluate
from mbdp.experiments.versions import versions

ENV, STEPS, EVERY, EPISODES = "Pendulum-v1", 3_000, 250, 10
SOLVED = -200.0
FILE = Path(__file__).parent.parent / "results" / "known_reward.json"


def pendulum_reward(observation: jnp.ndarray, action: jnp.ndarray, following: jnp.ndarray) -> jnp.ndarray:
    """As Gymnasium defines it: minus the squared angle, speed and torque."""
    angle = jnp.arctan2(observation[..., 1], observation[..., 0])
    return -(angle**2 + 0.1 * observation[..., 2] ** 2 + 0.001 * action[..., 0] ** 2)


def main(seeds: int) -> None:
    share_compilations()
    runs = {}
    for seed in range(seeds):
        for name, reward in (("learned", None), ("known", pendulum_reward)):
            runs[f"{name}_{seed}"] = curve = learning_curve(reward, seed)
            print(f"seed {seed}, {name} reward: {curve}; solved at {first_solved(curve)}", flush=True)
    about = {"env": ENV, "steps": STEPS, "every": EVERY, "episodes": EPISODES, "solved": SOLVED}
    FILE.write_text(json.dumps(about | {"versions": versions(), "returns": runs}, indent=1) + "\n")


def learning_curve(reward: Callable | None, seed: int) -> list[float]:
    """Mean return after every so many env steps."""
    agent = MBDP(ENV, reward=reward, seed=seed, steps=STEPS)
    envs = [gymnasium.make(ENV) for _ in range(EPISODES)]
    curve = []
    for progress in agent.iterate(STEPS):
        if progress.settled and progress.step % EVERY == 0:
            curve.append(round(float(np.mean(evaluate(agent.policy(), envs).returns)), 1))
    return curve


def first_solved(curve: list[float]) -> int | None:
    """Env steps at the first evaluation that counts as solved."""
    return next((EVERY * (i + 1) for i, value in enumerate(curve) if value >= SOLVED), None)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
