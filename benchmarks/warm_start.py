"""What data of a former run buys on Pendulum-v1: python -m benchmarks.warm_start [SEEDS].

The former run took 1,000 random steps and learned nothing. The same agent then learns with these steps and without
them. Writes results/warm_start.json; about ten minutes of one core. After any interruption the same command goes on.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.resumable_runs import evaluations, run_of

ENV, FORMER_STEPS, EVERY = "Pendulum-v1", 1_000, 250
STEPS = {"without data": 2_000, "with data": 1_000}  # the same number of transitions in the end
FORMER_SEED = 1_000  # and following: no seed of the runs that are compared
RUNS = Path("runs/warm_start")
FILE = Path(__file__).parent.parent / "results" / "warm_start.json"


def main(seeds: int) -> None:
    runs: list[dict[str, Any]] = []
    often = ("--evaluate-every", str(EVERY))
    for seed in range(seeds):
        former = run_of(RUNS / "former", ENV, FORMER_SEED + seed, FORMER_STEPS, *often)
        for name, steps in STEPS.items():
            data = ("--data", str(former)) if name == "with data" else ()
            run = run_of(RUNS / name.replace(" ", "_"), ENV, seed, steps, *often, *data)
            runs.append({"which": name, "seed": seed} | curve_of(run))
        about = {"env": ENV, "former_steps": FORMER_STEPS, "every": EVERY, "episodes": 10}
        FILE.write_text(json.dumps(about | {"runs": runs}, indent=1) + "\n")
    print(table(runs))


def curve_of(run: Path) -> dict[str, Any]:
    """Every evaluation, and the code that was run."""
    found, versions = evaluations(run), json.loads((run / "versions.json").read_text())
    return {
        "steps": [line["step"] for line in found],
        "returns": [round(line["eval/mean_reward"], 1) for line in found],
        "commit": versions["commit"],
        "learner": versions["learner"],
    }


def table(runs: list[dict[str, Any]]) -> str:
    """Mean return over seeds, and the lowest and highest of them, by env steps of this run, as Markdown."""
    steps = range(0, max(STEPS.values()) + 1, EVERY)
    lines = ["| env steps | " + " | ".join(f"{step:,}" for step in steps) + " |", "|---" * (len(steps) + 1) + "|"]
    for name in STEPS:
        found = [dict(zip(run["steps"], run["returns"], strict=True)) for run in runs if run["which"] == name]
        cells = [[curve[step] for curve in found if step in curve] for step in steps]
        text = [f"{np.mean(cell):,.0f} ({min(cell):,.0f} to {max(cell):,.0f})" if cell else "" for cell in cells]
        lines.append(f"| {name} | " + " | ".join(text) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
