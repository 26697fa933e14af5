"""What the critics expect against what is earned, for every grouping of rollout dropout that has been run on Hopper.

    python benchmarks/groupings.py

Reads results/groupings/ and prints a table: the last return, the mean of the second half's evaluations, and how far the
critics' expectation is above the discounted return that the same policy then earned, on average over that half.
"""

import json
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent.parent / "results"
STEPS = 20_000  # of every run
RUNS = {
    "no dropout": "groupings/no-dropout",
    "`members`": "groupings/members",
    "`state` (= `trajectory` at horizon 1)": "groupings/state",
    "`batch`": "groupings/batch",
    "paper preset (`members`)": "hopper/paper",
}


def main() -> None:
    print(
        "| grouping | env steps | last return | mean return, second half | expected | earned | above |\n"
        + "|---" * 7
        + "|"
    )
    for label, folder in RUNS.items():
        for run in sorted((RESULTS / folder).glob("*_*")):
            lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            rows = [line for line in lines if "eval/expected_discounted" in line and line["step"] <= STEPS]
            half = [line for line in rows if line["step"] > rows[-1]["step"] / 2]
            expected, earned, returns = (
                float(np.mean([line[f"eval/{name}"] for line in half]))
                for name in ("expected_discounted", "mean_discounted", "mean_reward")
            )
            print(
                f"| {label} | {rows[-1]['step']:,} | {rows[-1]['eval/mean_reward']:.0f} | {returns:.0f} "
                f"| {expected:.0f} | {earned:.0f} | {expected - earned:+.0f} |"
            )


if __name__ == "__main__":
    main()
