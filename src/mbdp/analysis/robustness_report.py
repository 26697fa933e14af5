"""What `mbdp robustness` leaves behind: every episode as CSV, the table as JSON, CSV and text, and the figure."""

import csv
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from mbdp.analysis.heatmap import draw_grid
from mbdp.analysis.statistics import Estimate, summary

STATISTICS = {
    "nominal": "nominal",
    "grid_mean": "grid mean",
    "iqm": "interquartile mean of cells",
    "worst_cell": "worst cell",
    "cvar_10": "worst 10 % of cells (CVaR)",
    "share_above_80": "cells above 80 % of nominal",
    "retention": "grid mean / nominal",
    "paper_mean": "mean over {0.8, 1.2} squared",
}
SHARES = ("share_above_80", "retention")
FIRST_COLUMNS = ("method", "policy", "training_seed", "env", "protocol")  # of episodes.csv; then come the axes
LAST_COLUMNS = ("episode", "reset_seed", "return", "length", "diverged")


@dataclass(frozen=True)
class Setting:
    """What all numbers of a report have in common."""

    env: str
    protocol: str
    axes: Mapping[str, Sequence[float]]
    neutral: Mapping[str, float]
    episodes: int
    seed: int


@dataclass(frozen=True, eq=False)
class Result:
    """One policy's episodes: over the grid (axes..., episodes), and in the nominal world (episodes,)."""

    method: str
    policy: str
    training_seed: int | None
    returns: np.ndarray
    lengths: np.ndarray
    diverged: np.ndarray
    nominal: np.ndarray


def write_report(folder: Path, setting: Setting, results: Sequence[Result]) -> dict[str, dict[str, Estimate | None]]:
    """Write episodes.csv, table.json, table.csv and heatmap.png into `folder`; the table's numbers, per method."""
    folder.mkdir(parents=True, exist_ok=True)
    methods = list(dict.fromkeys(result.method for result in results))
    returns = {m: np.stack([r.returns for r in results if r.method == m]) for m in methods}
    nominal = {m: np.stack([r.nominal for r in results if r.method == m]) for m in methods}
    table = {m: summary(returns[m], setting.axes, setting.neutral, nominal[m]) for m in methods}
    _write_episodes(folder / "episodes.csv", setting, results)
    numbers = {
        m: {"policies": [r.policy for r in results if r.method == m], "training_seeds": len(returns[m])}
        | {name: estimate and estimate._asdict() for name, estimate in table[m].items()}
        for m in methods
    }
    (folder / "table.json").write_text(json.dumps(asdict(setting) | {"methods": numbers}, indent=1) + "\n")
    with open(folder / "table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["env", "protocol", "method", "training_seeds", "statistic", "value", "low", "high"])
        for m, name in itertools.product(methods, STATISTICS):
            row = table[m][name] or (None, None, None)
            writer.writerow([setting.env, setting.protocol, m, len(returns[m]), name, *row])
    draw_grid(returns, setting.axes, setting.neutral, folder / "heatmap.png", setting.env, setting.protocol)
    return table


def text_table(table: Mapping[str, Mapping[str, Estimate | None]], setting: Setting, seeds: Mapping[str, int]) -> Table:
    """The numbers for a terminal, one column per method; intervals only where several seeds were trained."""
    text = Table(
        title=f"{setting.env}, {setting.protocol}; episodes in each world: {setting.episodes}", title_justify="left"
    )
    text.add_column("return")
    for method in table:
        text.add_column(f"{method} ({seeds[method]} seed{'s' * (seeds[method] > 1)})", justify="right")
    for name, words in STATISTICS.items():
        text.add_row(words, *(_text(table[method][name], name in SHARES) for method in table))
    if any(count > 1 for count in seeds.values()):
        text.caption = "In brackets: 95 % bootstrap interval over training seeds."
    return text


def column_of(axis: str) -> str:
    """The column of an axis in episodes.csv; one that is called as another column gets a longer name."""
    return f"axis {axis}" if axis in (*FIRST_COLUMNS, *LAST_COLUMNS) else axis


def _text(estimate: Estimate | None, share: bool) -> str:
    if estimate is None:
        return "-"
    shown = [f"{number:.0%}" if share else f"{number:,.1f}" for number in estimate if number is not None]
    return shown[0] + (f" [{shown[1]}, {shown[2]}]" if len(shown) == 3 else "")


def _write_episodes(file: Path, setting: Setting, results: Sequence[Result]) -> None:
    names = list(setting.axes)
    with open(file, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*FIRST_COLUMNS, *map(column_of, names), *LAST_COLUMNS])
        for result in results:
            first: list[Any] = [result.method, result.policy, result.training_seed, setting.env, setting.protocol]
            for index in np.ndindex(result.returns.shape):
                cell = [setting.axes[name][i] for name, i in zip(names, index[:-1], strict=True)]
                outcome = [result.returns[index].item(), result.lengths[index], int(result.diverged[index])]
                writer.writerow([*first, *cell, index[-1], setting.seed + index[-1], *outcome])
