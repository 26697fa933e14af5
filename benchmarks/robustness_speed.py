"""Simulated steps per second of `evaluate_grid`, against a plain Gymnasium loop with the same policy in the same run.

    python benchmarks/robustness_speed.py [POLICY --env ENV] [--allow-code]

Without a policy a network of 2 x 256 random weights acts in HalfCheetah-v5, whose episodes have 1000 steps whatever it
does. The ways are measured in turn, several times, and the ratio is taken within each round, so that other load on the
machine hits all of them. Starting the worker processes is part of their time.
"""

import argparse
import itertools
import json
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from mbdp.envs import tasks
from mbdp.foreign_policies import open_policy
from mbdp.policy import Policy
from mbdp.robustness import evaluate_grid

VALUES = [0.5, 0.75, 1.0, 1.25, 1.5]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", nargs="?")
    parser.add_argument("--env")
    parser.add_argument("--allow-code", action="store_true")
    parser.add_argument("--episodes", type=int, default=5, help="per cell of a 5 x 5 grid")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/robustness_speed.json"))
    args = parser.parse_args()
    policy = open_policy(args.policy, allow_code=args.allow_code) if args.policy else random_policy("HalfCheetah-v5")
    env_id = args.env or getattr(policy, "env", "")
    axes = {"mass": VALUES, "friction": VALUES}

    def grid(workers: int) -> int:
        return int(evaluate_grid(policy, env_id, axes, args.episodes, workers=workers).lengths.sum())

    ways: dict[str, Callable[[], int]] = {
        "plain_loop": lambda: plain_loop(policy, env_id, episodes=10),
        "one_worker": lambda: grid(1),
        f"{args.workers}_workers": lambda: grid(args.workers),
    }
    load = os.getloadavg()[0]
    rounds = [{name: steps_per_second(way) for name, way in ways.items()} for _ in range(args.rounds)]
    ratios = {name: [row[name] / row["plain_loop"] for row in rounds] for name in ways if name != "plain_loop"}
    report = {
        "env": env_id,
        "policy": args.policy or "random network, 2 x 256",
        "steps_per_second": {name: [round(row[name]) for row in rounds] for name in ways},
        "ratio_to_plain_loop": {name: {"median": float(np.median(r)), "rounds": r} for name, r in ratios.items()},
        "cores": os.cpu_count(),
        "load_of_other_programs_before": round(load, 2),
        "versions": {name: version(name) for name in ("mujoco", "gymnasium", "numpy")}
        | {"python": platform.python_version()},
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    found = json.loads(args.out.read_text()) if args.out.exists() else {}
    args.out.write_text(json.dumps(found | {f"{env_id}, {report['policy']}": report}, indent=1) + "\n")
    for name in ways:
        print(f"{name:12} {np.median([row[name] for row in rounds]):10,.0f} steps/s")
    for name, values in ratios.items():
        print(f"{name:12} {np.median(values):10.2f} times the plain loop ({min(values):.2f} to {max(values):.2f})")


def plain_loop(policy: Any, env_id: str, episodes: int) -> int:
    """What everybody writes: one environment, one observation at a time."""
    options = tasks.task_of(env_id).options if env_id.endswith("-v5") else {}
    env, steps = gymnasium.make(env_id, **options), 0
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            observation, _, terminated, truncated, _ = env.step(policy(observation[None])[0])
            steps, over = steps + 1, terminated or truncated
    return steps


def steps_per_second(way: Callable[[], int]) -> float:
    started = time.perf_counter()
    return way() / (time.perf_counter() - started)


def random_policy(env_id: str) -> Policy:
    spec = tasks.spec_of(tasks.make(env_id))
    rng, sizes = np.random.default_rng(0), [spec.observation_size, 256, 256, spec.action_size]
    shapes = list(itertools.pairwise(sizes))
    weights = tuple(rng.normal(0, m**-0.5, (m, n)) for m, n in shapes)
    bounds = np.ones(spec.action_size)
    return Policy(weights, tuple(np.zeros(n) for _, n in shapes), -bounds, bounds, env=env_id)


if __name__ == "__main__":
    main()
