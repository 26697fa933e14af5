"""Learning curves, drawn from the files of run directories."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mbdp.types import BadInput


def read_curve(run: Path) -> tuple[np.ndarray, np.ndarray]:
    """Env steps and mean evaluation return of one run."""
    file = run / "metrics.jsonl"
    try:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
    except (OSError, ValueError) as error:
        raise BadInput(f"{file}: {error}") from None
    points = [(line["step"], line["eval/mean_reward"]) for line in lines if line.get("eval/mean_reward") is not None]
    if not points:
        raise BadInput(f"{file}: no evaluation in it yet")
    steps, returns = np.array(points).T
    return steps, returns


def smoothed(steps: np.ndarray, returns: np.ndarray, window: int) -> np.ndarray:
    """At each evaluation the mean of those of the last `window` env steps."""
    return np.array([returns[(steps > step - window) & (steps <= step)].mean() for step in steps])


def draw_curves(
    runs: Sequence[Path], picture: Path, *, labels: Sequence[str] | None = None, window: int | None = None
) -> None:
    """Every run as a line, in one colour per label; with several runs of one label their mean is the thick line.

    With a `window` of env steps the thick line is smoothed over it, and every run as it was is a thin one.
    """
    names = list(labels or [run.parent.name for run in runs])
    by_name: dict[str, list[tuple[np.ndarray, np.ndarray]]] = defaultdict(list)
    for name, run in zip(names, runs, strict=True):
        by_name[name].append(read_curve(run))
    figure = Figure(figsize=(7, 4.8), layout="constrained")  # not pyplot's: a user's backend stays as it is
    axes = figure.subplots()
    for number, (name, curves) in enumerate(by_name.items()):
        colour = f"C{number}"
        alone = len(curves) == 1 and window is None
        for steps, returns in curves:
            axes.plot(
                steps,
                returns,
                color=colour,
                lw=2 if alone else 0.8,
                alpha=1 if alone else 0.5 if window is None else 0.25,
                label=name if alone else None,
            )
        if not alone:
            shared = sorted(set.intersection(*(set(steps.tolist()) for steps, _ in curves)))
            lines = [(steps, smoothed(steps, returns, window) if window else returns) for steps, returns in curves]
            mean = np.mean([np.interp(shared, steps, line) for steps, line in lines], axis=0)
            label = f"{name}, mean of {len(curves)} seeds" if len(curves) > 1 else name
            axes.plot(shared, mean, color=colour, lw=2.5, label=label)
    axes.set_xlabel("env steps")
    axes.set_ylabel("evaluation return")
    axes.set_title(", ".join(sorted({run.name.rpartition("_")[0] for run in runs})))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)  # inside it would hide curves
    axes.set_xlim(left=0)
    figure.savefig(picture, dpi=130)
