"""Write into README.md how our policies do in other worlds, beside published ones, from results/evidence.

python -m benchmarks.robustness_table
"""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from benchmarks.learning_table import runs_of_default
from benchmarks.marks import fill

from mbdp.analysis.robustness_results import Robustness, robustness_of
from mbdp.analysis.run_groups import group_runs
from mbdp.analysis.runs import Run
from mbdp.analysis.statistics import PAPER_CORNERS

# The columns: worlds over which returns are averaged, as (mass, friction).
WORLDS = {
    "nominal": [(1.0, 1.0)],
    "{0.8, 1.2}²": [(mass, friction) for mass in PAPER_CORNERS for friction in PAPER_CORNERS],
    "mass 1.5": [(1.5, 1.0)],
    "friction 0.5": [(1.0, 0.5)],
}
COLUMNS = ("nominal", "corners", "mass_1.5", "friction_0.5")  # the same in results/published_robustness.csv


def write_robustness(root: Path) -> None:
    """Into the README of the project in this folder."""
    ours, published = runs_of_default(root / "results/evidence"), root / "results/published_robustness.csv"
    fill(root / "README.md", "robustness", robustness_table(ours, published))


def robustness_table(ours: Sequence[Run], published: Path) -> str:
    """For each task with published policies a row for ours that are finished, and one for each of theirs."""
    lines = [f"| task | policies | seeds | {' | '.join(WORLDS)} |", "|---" * (3 + len(WORLDS)) + "|"]
    with open(published, newline="") as stream:
        others = list(csv.DictReader(stream))
    runs = [run for run in ours if (run.folder / "finished.json").exists()]
    for result in sorted(robustness_of(group_runs(runs)), key=lambda one: one.env):
        rivals = [other for other in others if result.env.startswith(f"{other['task']}-")]
        (returns,) = result.returns.values()
        if rivals:
            own = [mean_in(result, returns, worlds) for worlds in WORLDS.values()]
            lines.append(_row(result.env, "ours", str(len(returns)), own))
        for other in rivals:
            name = f"{other['method']}, {other['version']}"
            lines.append(_row("", name, other["seeds"], [float(other[column]) for column in COLUMNS]))
    return "\n".join(lines) if len(lines) > 2 else "No runs yet."


def mean_in(result: Robustness, returns: np.ndarray, worlds: Sequence[tuple[float, float]]) -> float:
    """Mean over seeds, these worlds and episodes, NaN where one was not tried; `returns` is (seed, *axes, episode)."""
    axes = [np.asarray(result.axes[name]) for name in ("mass", "friction")]
    cells = [[np.flatnonzero(np.isclose(axis, at)) for axis, at in zip(axes, world, strict=True)] for world in worlds]
    if any(not len(place) for cell in cells for place in cell):
        return float("nan")
    return float(np.mean([returns[:, i[0], j[0]] for i, j in cells]))


def number(value: float) -> str:
    """For a cell of a table; NaN is a dash."""
    return "-" if np.isnan(value) else f"{value:,.0f}"


def _row(task: str, name: str, seeds: str, values: Sequence[float]) -> str:
    return f"| {task} | {name} | {seeds} | {' | '.join(number(value) for value in values)} |"


if __name__ == "__main__":
    write_robustness(Path(__file__).parent.parent)
