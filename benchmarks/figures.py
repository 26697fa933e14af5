"""Draw every published learning curve again from the raw numbers under results/, and print its table.

    python benchmarks/figures.py

A run under results/ is a run directory without its buffers: config.json, versions.json and metrics.jsonl.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
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
        "default, averaged weights": "hopper/default_averaged",
        "8 + 4 updates": "hopper/eight_updates",
        "paper (20 + 20 updates), long fits": "hopper/paper",
        "paper, fits of at most 600 steps": "hopper/paper_short_fits",
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
FITS = {"as long as they help": "hopper/paper", "at most 600 steps": "hopper/paper_short_fits"}
WINDOWS = {"hopper_systems.png": 5_000}  # env steps to smooth over, where lines would hide each other


def main() -> None:
    draw_averages()
    draw_fits()
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


def draw_averages() -> None:
    """The newest policy beside the longest average of its weights, and a table with the worst moment of each."""
    files = sorted((RESULTS / "averages").glob("*.jsonl"))
    figure, places = plt.subplots(1, len(files), figsize=(4 * len(files), 3), layout="constrained", squeeze=False)
    print("averages.png\n| run | averaged over | mean | lowest | of evaluations from step |\n|---|---|---|---|---|")
    for axes, file in zip(places[0], files, strict=True):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        steps = np.array([line["step"] for line in lines])
        names = [name for name in lines[0] if name != "step"]
        returns = {name: np.array([line[name] for line in lines]) for name in names}
        for name, colour in ((names[0], "tab:grey"), (names[-1], "tab:blue")):
            axes.plot(steps, returns[name], color=colour, label={"over 1": "newest"}.get(name, f"averaged {name}"))
        axes.set(title=file.stem, xlabel="env steps", ylabel="return", ylim=(0, None))
        solved = int(np.argmax(returns[names[-1]] >= 0.8 * returns[names[-1]].max()))  # from here on it should stay
        for name in names:
            rest = returns[name][solved:]
            print(f"| {file.stem} | {name[5:]} | {rest.mean():.0f} | {rest.min():.0f} | {steps[solved]:,} |")
    places[0, 0].legend()
    figure.savefig(RESULTS / "averages.png", dpi=150)


def draw_fits() -> None:
    """The paper preset's bias and return with long fits and with short ones, and a table of their means."""
    figure, (of_bias, of_return) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    print("\nhopper_fits.png\n| fits | run | env steps | mean bias | mean return |\n|---|---|---|---|---|")
    for label, folder in FITS.items():
        for run in sorted((RESULTS / folder).glob("*_*")):
            lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            found = [(line["step"], line["model/bias"]) for line in lines if "model/bias" in line]
            fitted, bias = np.array(found).T
            steps, returns = read_curve(run)
            of_bias.plot(fitted, bias, label=label)
            of_return.plot(steps, returns, label=label)
            for first in range(5_000, int(steps[-1]), 5_000):
                means = [
                    values[(first < at) & (at <= first + 5_000)].mean()
                    for at, values in ((fitted, bias), (steps, returns))
                ]
                print(f"| {label} | {run.name} | {first:,} to {first + 5_000:,} | {means[0]:.3f} | {means[1]:.0f} |")
    of_bias.set(xlabel="env steps", ylabel="bias of the members that are kept", ylim=(0, None))
    of_return.set(xlabel="env steps", ylabel="evaluation return", ylim=(0, None))
    of_bias.legend(title="fits")
    figure.savefig(RESULTS / "hopper_fits.png", dpi=150)


if __name__ == "__main__":
    main()
