"""Seconds and env steps until a return of 2,500 on Hopper-v5: ours, SBX's SAC and CrossQ, and mbrl-lib's MBPO.

    python -m benchmarks.time_to_return [--minutes 60]        (or: make bench-learning)

Each system learns by itself on one core, in a process of its own, with the settings that its library has for the
task. The clock stops during evaluations: five deterministic episodes after every 1,000 env steps. A system
ends when an evaluation has reached the return or its time is over. Writes results/time_to_return.json as it goes.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.speed.measure import machine
from benchmarks.time_to_return.systems import ENV, SYSTEMS

from mbdp.envs.tasks import make
from mbdp.experiments.evaluate import evaluate
from mbdp.experiments.versions import versions

GOAL, EVERY, EPISODES = 2_500.0, 1_000, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="of learning, for each system (default: 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="SYSTEM")
    parser.add_argument("--out", type=Path, default=Path("results/time_to_return.json"))
    parser.add_argument("--one", choices=SYSTEMS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        learn(args.one, args.seed, 60 * args.minutes)
        return
    report: dict[str, Any] = {
        "command": "python -m benchmarks.time_to_return",
        "env": ENV,
        "goal": GOAL,
        "seed": args.seed,
        "minutes": args.minutes,
        "machine": machine(),
        "versions": versions(),
        "systems": {},
    }
    for name in args.systems:
        report["systems"][name] = []
        for evaluation in evaluations_of(name, args.seed, args.minutes):
            report["systems"][name].append(evaluation)
            args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(table(report))


def evaluations_of(name: str, seed: int, minutes: float) -> Any:
    """What a process of its own, kept on one core, prints: one evaluation a line."""
    command = [sys.executable, "-m", "benchmarks.time_to_return", "--one", name]
    command += ["--seed", str(seed), "--minutes", str(minutes)]
    core = {max(os.sched_getaffinity(0))}
    one_thread = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | one_thread,
        preexec_fn=lambda: os.sched_setaffinity(0, core),
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(f"{name}: {line}", end="", flush=True)
            if line.startswith("{"):
                yield json.loads(line)
    if child.returncode:
        raise SystemExit(f"{name} ended with {child.returncode}")


def learn(name: str, seed: int, most_seconds: float) -> None:
    """Let one system learn, evaluate it again and again, and print what it earned after how long."""
    envs, seconds, steps = [make(ENV) for _ in range(EPISODES)], 0.0, 0
    began = time.perf_counter()
    system = SYSTEMS[name](seed)
    while seconds < most_seconds:
        system.learn(EVERY)
        steps += EVERY
        seconds += time.perf_counter() - began
        earned = float(np.mean(evaluate(system.act, envs).returns))
        print(json.dumps({"env_steps": steps, "seconds": round(seconds, 1), "return": round(earned, 1)}), flush=True)
        if earned >= GOAL:
            return
        began = time.perf_counter()


def table(report: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [
        f"| system, {report['env']} | env steps to {report['goal']:,.0f} | minutes of one core | ms per env step |"
    ]
    lines.append("|---|---|---|---|")
    for name, evaluations in report["systems"].items():
        last = evaluations[-1]
        steps, minutes = f"{last['env_steps']:,}", f"{last['seconds'] / 60:.1f}"
        if last["return"] < report["goal"]:
            best = max(one["return"] for one in evaluations)
            steps, minutes = f"not within {steps} (best {best:,.0f})", f"more than {minutes}"
        lines.append(f"| {name} | {steps} | {minutes} | {1e3 * last['seconds'] / last['env_steps']:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
