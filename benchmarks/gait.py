"""How policies move in Hopper until their first evaluation episode ends: one line for every 25 steps.

python benchmarks/gait.py RUN... > results/hopper/gait.csv
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np

from mbdp.policies.policy import load_policy

STEPS, DISCOUNT = 25, 0.99


def main() -> None:
    print("run,first step,lowest height,highest height,largest angle,mean speed,mean reward,discounted so far")
    for run in sys.argv[1:]:
        describe(run)


def describe(run: str) -> None:
    policy, env, over, worth = load_policy(run), gymnasium.make("Hopper-v5"), False, 0.0
    observation, _ = env.reset(seed=0)
    seen: list[tuple[float, ...]] = []
    while not over:
        observation, reward, terminated, truncated, _ = env.step(policy(observation[None])[0])
        worth += DISCOUNT ** len(seen) * float(reward)
        seen.append((observation[0], observation[1], observation[5], float(reward), worth))
        over = terminated or truncated
    for start in range(0, len(seen), STEPS):
        height, angle, speed, rewards, gathered = np.array(seen[start : start + STEPS]).T
        found = height.min(), height.max(), np.abs(angle).max(), speed.mean(), rewards.mean(), gathered[-1]
        print(Path(run).name, start, *(f"{value:.2f}" for value in found), sep=",")


if __name__ == "__main__":
    main()
