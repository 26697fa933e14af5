"""What `theory/*` costs: its share of a run's time, read from the run's own clock.

    mbdp train InvertedPendulum-v5 --steps 3000 --evaluate-every 500 --out runs/theory
    python -m benchmarks.theory_cost runs/theory/mbdp/InvertedPendulum-v5_0

The first evaluation compiles. A run of the usual length evaluates every 1,000 env steps, so it pays half as often.
Writes results/theory/cost.json.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/theory/cost.json"))
    args = parser.parse_args()
    lines = [json.loads(line) for line in (args.run / "metrics.jsonl").read_text().splitlines()]
    result = cost(lines) | {"command": f"python -m benchmarks.theory_cost {args.run}"}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


def cost(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Seconds and shares of a run; "between" is from one evaluation with theory to the next."""
    found = [(line["step"], line["time/theory"], line["time/elapsed"]) for line in lines if "time/theory" in line]
    steps, seconds, elapsed = zip(*found, strict=True)
    usual = [x / (after - before) for x, before, after in zip(seconds[1:], elapsed, elapsed[1:], strict=False)]
    every = steps[1] - steps[0]
    return {
        "evaluations": len(found),
        "env_steps_between": every,
        "seconds_of_the_first": seconds[0],
        "seconds_of_the_others": list(seconds[1:]),
        "share_between_evaluations": usual,
        "median_share_if_evaluated_every_1000": statistics.median(usual) * every / 1000,
        "share_of_the_whole_run": sum(seconds) / elapsed[-1],
        "seconds_of_the_whole_run": elapsed[-1],
    }


if __name__ == "__main__":
    main()
