"""What a run costs: start-up, seconds per env step as the data grows, memory, and a whole run projected from these.

    python -m benchmarks.run_cost [--quick]        writes results/run_cost.json and results/run_cost.png

On one core. Start-up and memory are those of processes of their own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.filled import filled_agent, take
from benchmarks.speed.measure import Way, in_turn, machine, quartiles

from mbdp.parallel import cores

ENV, WHOLE_RUN = "Hopper-v5", 100_000
SAMPLES = (10_000, 50_000, 100_000)
MOST_STEPS = 110_000  # of an agent that has all of these samples, and those of the stretches that are measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="see whether everything runs; the numbers mean nothing")
    parser.add_argument("--parts", nargs="+", metavar="PART", help="measure only these again, and keep the rest")
    parser.add_argument("--out", type=Path, default=Path("results/run_cost.json"))
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # a core for each run is how sweeps use a machine
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    report: dict[str, Any] = {"command": "python -m benchmarks.run_cost", "quick": args.quick, "machine": {}}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    parts: dict[str, Callable[[], Any]] = {
        "env_steps": lambda: growth(stretch=5 if args.quick else 250, rounds=1 if args.quick else 8),
        "start_up_seconds": start_up,
        "peak_memory": lambda: {env: child("benchmarks.peak_memory", env) for env in (ENV, "Ant-v5")},
    }
    if unknown := set(args.parts or ()) - set(parts):
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(parts)}")
    if args.parts and args.out.exists():
        report = json.loads(args.out.read_text()) | {"quick": args.quick}
        parts = {name: parts[name] for name in args.parts}
    for name, measure in parts.items():
        print(f"measuring: {name}", flush=True)
        report["machine"][name] = machine()  # parts may be measured at different times
        report[name] = measure()
        args.out.write_text(json.dumps(report, indent=1) + "\n")  # after each part: what follows may be interrupted
    draw(report["env_steps"], args.out.with_suffix(".png"))
    print(json.dumps(report, indent=1))


def growth(*, stretch: int, rounds: int) -> dict[str, Any]:
    """Seconds per 1,000 env steps of the default preset, stretches with one fit each, measured in turn."""
    ways = {}
    for samples in SAMPLES:
        # The first fit is a long one; here all of them are as long as later ones.
        agent, _ = filled_agent(ENV, "default", samples, steps=MOST_STEPS, model_every=stretch, first_fit_steps=200)
        ways[str(samples)] = Way(partial(take, agent.iterate(MOST_STEPS), stretch), stretch)
    seconds = {name: 1e3 * np.array(found) for name, found in in_turn(ways, rounds).items()}
    middle = {name: float(np.median(found)) for name, found in seconds.items()}
    return {
        "env": f"{ENV}, default preset, {rounds} stretches of {stretch} env steps at each number of samples",
        "cores": cores(),
        "seconds_per_1000": {name: quartiles(found) for name, found in seconds.items()},
        "rounds": {name: found.tolist() for name, found in seconds.items()},
        "last_to_first": middle[str(SAMPLES[-1])] / middle[str(SAMPLES[0])],
        "hours_of_a_whole_run": float(np.mean(list(middle.values()))) * WHOLE_RUN / 1e3 / 3600,
    }


def start_up() -> dict[str, Any]:
    """With an empty cache of compilations, and with the one that this leaves."""
    with tempfile.TemporaryDirectory() as cache:
        return {
            name: child("benchmarks.start_up", str(time.time()), ENV, XDG_CACHE_HOME=cache)
            for name in ("empty cache", "warm cache")
        }


def child(module: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a process prints in its last line."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} {' '.join(arguments)}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def draw(found: dict[str, Any], file: Path) -> None:
    """Seconds per 1,000 env steps over samples."""
    low, middle, high = np.array(list(found["seconds_per_1000"].values())).T
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.errorbar(SAMPLES, middle, [middle - low, high - middle], marker="o", capsize=3)
    axes.set(xlabel="real samples", ylabel="seconds per 1,000 env steps", title=f"{ENV}, default preset")
    axes.set_ylim(0, 1.3 * max(high))
    axes.set_xlim(0, 1.2 * SAMPLES[-1])
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
