"""Draw every published learning curve again from the raw numbers under results/, and print its table.

    python benchmarks/figures.py

A run under results/ is a run directory without its buffers: config.json, versions.json and metrics.jsonl.
"""

from pathlib import Path

import numpy as np

from mbdp.analysis.curves import draw_curves, read_curve

RESULTS = Path(__file__).parent.parent / "results"
HEADER = (
    "| method | run | env steps | last return | mean of last ten | best return | first at 95 % of best "
    "| at least that from then on |"
)
SYSTEMS = ("MBDP", "MBPO", "SAC", "STEVE", "SLBO")
FIGURES = {
    "inverted_pendulum.png": {name: f"inverted_pendulum/{name.lower()}" for name in SYSTEMS},
    "hopper.png": {
        "default (4 + 1 updates)": "hopper/default",
        "8 + 4 updates": "hopper/eight_updates",
        "paper (20 + 20 updates)": "hopper/paper",
    },
    "hopper_discount.png": {
        "0.99": "hopper/discount_0.99",
        "0.995": "hopper/discount_0.995",
        "growing (default)": "hopper/eight_updates",
    },
    "hopper_systems.png": {name: f"hopper_systems/{name.lower()}" for name in SYSTEMS}
    | {"MBDP": "hopper/eight_updates"},
    "groupings.png": {
        "no dropout": "groupings/no-dropout",
        "members": "groupings/members",
        "state": "groupings/state",
        "batch": "groupings/batch",
    },
}
WINDOWS = {"hopper_systems.png": 5_000}  # env steps to smooth over, where lines would hide each other


def main() -> None:
    for picture, methods in FIGURES.items():
        found = {label: sorted((RESULTS / folder).glob("*_*")) for label, folder in methods.items()}
        runs = [(label, run) for label, runs in found.items() for run in runs]
        if len({label for label, _ in runs}) < 2:  # a comparison needs two
            continue
        labels = [label for label, _ in runs]
        draw_curves([run for _, run in runs], RESULTS / picture, labels=labels, window=WINDOWS.get(picture))
        print(f"\n{picture}\n{HEADER}\n{'|---' * HEADER.count(' |')}|")
        for label, run in runs:
            steps, returns = read_curve(run)
            good = returns >= 0.95 * returns.max()
            first = int(np.argmax(good))
            cells = [label, run.name, f"{int(steps[-1]):,}", f"{returns[-1]:.0f}", f"{returns[-10:].mean():.0f}"]
            cells += [f"{returns.max():.0f}", f"{int(steps[first]):,}", f"{good[first:].mean():.0%}"]
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
