"""Simulated steps per second of `evaluate_grid`, against a plain Gymnasium loop with the same policy in the same run.

    python benchmarks/robustness_speed.py [POLICY ...] [--env ENV] [--allow-code]

Without a policy a network of 2 x 256 random weights acts in HalfCheetah-v5, whose episodes have 1000 steps whatever it
does. The grid is the paper's, mass and friction from 0.5 to 1.5; the plain loop runs one episode in some of its worlds.
The ways are measured in turn, several times, and the ratio is taken within each round, so that other load on the
machine hits all of them. Starting the worker processes is part of their time, making environments of everybody's.
"""

import argparse
import itertools
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from mbdp.envs import tasks
from mbdp.policies.foreign import open_policy
from mbdp.policies.policy import Policy
from mbdp.robustness import evaluate_grid
from mbdp.robustness.perturb import perturb

RANDOM = "random network, 2 x 256"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="*", metavar="POLICY", help="run directories, .zip or .onnx files")
    parser.add_argument("--env", help="for policies that do not say it themselves")
    parser.add_argument("--allow-code", action="store_true")
    parser.add_argument("--values", type=int, default=11, help="along each axis of the grid")
    parser.add_argument("--episodes", type=int, default=5, help="per world")
    parser.add_argument("--plain-episodes", type=int, default=20, help="of the plain loop")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/robustness_speed.json"))
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for path in args.policies or [RANDOM]:
        policy = random_policy("HalfCheetah-v5") if path == RANDOM else open_policy(path, allow_code=args.allow_code)
        env_id = args.env or getattr(policy, "env", "")
        report = measure(policy, env_id, args)
        found = json.loads(args.out.read_text()) if args.out.exists() else {}
        row = f"{env_id}, {Path(path).name}"
        args.out.write_text(json.dumps(found | {row: report}, indent=1) + "\n")
        print(row)
        for way, values in report["steps_per_second"].items():
            ratios = report["ratio_to_plain_loop"].get(way, [1.0])
            print(f"  {way:12} {np.median(values):10,.0f} steps/s, {np.median(ratios):.2f} times the plain loop")


def measure(policy: Any, env_id: str, args: argparse.Namespace) -> dict[str, Any]:
    """Steps per second of every way in every round, and what they were measured with."""
    scale = [round(float(value), 10) for value in np.linspace(0.5, 1.5, args.values)]

    def grid(policy: Any, workers: int) -> int:
        axes = {"mass": scale, "friction": scale}
        return int(evaluate_grid(policy, env_id, axes, args.episodes, workers=workers).lengths.sum())

    def plain(policy: Any) -> int:
        return plain_loop(policy, env_id, scale, args.plain_episodes)

    ways: dict[str, Callable[[], int]] = {"plain_loop": lambda: plain(policy)}
    ways |= {f"{workers}_workers": lambda workers=workers: grid(policy, workers) for workers in args.workers}
    load = os.getloadavg()[0]
    rounds = [{name: timed(way) for name, way in ways.items()} for _ in range(args.rounds)]
    speeds = {name: [round(row[name][0] / row[name][1]) for row in rounds] for name in ways}
    return {
        "grid": [args.values, args.values, args.episodes],
        "steps": {name: rounds[0][name][0] for name in ways},
        "seconds": {name: [round(row[name][1], 2) for row in rounds] for name in ways},
        "steps_per_second": speeds,
        "ratio_to_plain_loop": {
            name: [round(one / plain, 2) for one, plain in zip(speeds[name], speeds["plain_loop"], strict=True)]
            for name in ways
            if name != "plain_loop"
        },
        "cpu_microseconds_per_step": {
            "plain_loop": where_time_goes(policy, plain),
            "1_workers": where_time_goes(policy, lambda clocked: grid(clocked, 1)),
        },
        "cores": os.cpu_count(),
        "load_of_other_programs_before": round(load, 2),
        "versions": {name: version(name) for name in ("mujoco", "gymnasium", "numpy")}
        | {"python": platform.python_version()},
    }


def plain_loop(policy: Any, env_id: str, scale: Sequence[float], episodes: int) -> int:
    """What everybody writes, in worlds from all over the grid: one environment, one observation at a time."""
    env, steps = tasks.make(env_id), 0
    worlds = list(itertools.product(scale, scale))
    for seed in range(episodes):
        mass, friction = worlds[(seed * len(worlds)) // episodes]
        perturb(env, {"mass": mass, "friction": friction})  # changes the model; the loop goes without our wrapper
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            observation, _, terminated, truncated, _ = env.step(policy(observation[None])[0])
            steps, over = steps + 1, terminated or truncated
    return steps


def timed(way: Callable[[], int]) -> tuple[int, float]:
    started = time.perf_counter()
    return way(), time.perf_counter() - started


def where_time_goes(policy: Any, way: Callable[[Any], int]) -> dict[str, float]:
    """CPU time per step that physics, the policy and all the rest take in this process."""
    spent = dict.fromkeys(("physics", "policy", "rest"), 0.0)

    def clocked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            started = time.thread_time()
            answer = function(*args, **options)
            spent[name] += time.thread_time() - started
            return answer

        return call

    act: Any = clocked("policy", policy)
    act.rows_are_independent = getattr(policy, "rows_are_independent", False)
    physics = mujoco.mj_step
    mujoco.mj_step = clocked("physics", physics)
    started = time.process_time()
    try:
        steps = way(act)
    finally:
        mujoco.mj_step = physics
    spent["rest"] = time.process_time() - started - spent["physics"] - spent["policy"]
    return {name: round(seconds / steps * 1e6, 1) for name, seconds in spent.items()}


def random_policy(env_id: str) -> Policy:
    spec = tasks.spec_of(tasks.make(env_id))
    rng, sizes = np.random.default_rng(0), [spec.observation_size, 256, 256, spec.action_size]
    shapes = list(itertools.pairwise(sizes))
    weights = tuple(rng.normal(0, m**-0.5, (m, n)) for m, n in shapes)
    bounds = np.ones(spec.action_size)
    return Policy(weights, tuple(np.zeros(n) for _, n in shapes), -bounds, bounds, env=env_id)


if __name__ == "__main__":
    main()
