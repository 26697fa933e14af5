"""Figure "curves": learning curves of methods in several tasks, as in the paper's comparison of methods."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mbdp.analysis.curves import smoothed
from mbdp.analysis.figure_style import COLUMN, MARKERS, PAGE, colours_of, save, style, thousands
from mbdp.analysis.learning import curve_of
from mbdp.analysis.published import Published
from mbdp.analysis.run_groups import RunGroup

Band = Literal["sd", "interval"]


def draw_learning_curves(
    methods: Sequence[RunGroup],
    folder: Path,
    *,
    published: Sequence[Published] = (),
    band: Band = "sd",
    window: int = 0,
    name: str = "curves",
) -> list[Path]:
    """A panel per task, a line per method: mean and standard deviation over seeds, or IQM and its 95 % interval.

    With a `window`, each evaluation is the mean of those in so many env steps before it.
    """
    methods = [_smooth(method, window) for method in methods] if window else methods
    envs = list(dict.fromkeys(method.env for method in methods))
    colours = colours_of(method.name for method in methods)
    columns = min(len(envs), 2) if len(envs) != 3 else 3
    rows = math.ceil(len(envs) / columns)
    others = [one for one in published if any(env.startswith(one.task) for env in envs)]
    markers = dict(zip(dict.fromkeys(_name(one) for one in others), MARKERS * 9, strict=False))
    in_legend = 1 if columns == 1 else 3  # columns; more would be wider than a single panel
    lines = math.ceil((len(colours) + len(markers)) / in_legend)
    with style():
        size = COLUMN if columns == 1 else PAGE, 2.3 * rows + 0.17 * lines
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False)
        for panel, env in zip(panels.flat, envs, strict=False):
            _draw_panel(panel, [method for method in methods if method.env == env], colours, band)
            _draw_published(panel, [one for one in others if env.startswith(one.task)], markers)
            panel.set_title(f"{env} ({_seeds([m for m in methods if m.env == env])})")
        for panel in panels.flat[len(envs) :]:
            panel.set_visible(False)
        for panel in panels[:, 0]:
            panel.set_ylabel("evaluation return")
        for panel in panels.flat[max(0, len(envs) - columns) : len(envs)]:
            panel.set_xlabel("env steps")
        handles = [Line2D([], [], color=colour, label=label) for label, colour in colours.items()]
        handles += [
            Line2D([], [], color="0.4", ls=":", marker=marker, ms=4, mfc="none", label=label)
            for label, marker in markers.items()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=in_legend)
        return save(figure, folder, name)


def _draw_panel(panel: Any, methods: Sequence[RunGroup], colours: dict[str, str], band: Band) -> None:
    for method in methods:
        curve = curve_of(method.runs)
        middle = curve.mean if band == "sd" else curve.iqm
        low, high = (curve.mean - curve.sd, curve.mean + curve.sd) if band == "sd" else (curve.low, curve.high)
        colour = colours[method.name]
        panel.plot(curve.steps, middle, color=colour)
        panel.fill_between(curve.steps, low, high, color=colour, alpha=0.18, lw=0)
        # A seed that was longer than the others goes on as a thin line: nothing that was measured is hidden.
        for run in method.runs:
            rest = run.steps >= curve.steps[-1]
            if rest.sum() > 1:
                panel.plot(run.steps[rest], run.returns[rest], color=colour, lw=0.5, alpha=0.7)
    panel.xaxis.set_major_formatter(thousands)
    panel.set_xlim(left=0)


def _draw_published(panel: Any, curves: Sequence[Published], markers: dict[str, str]) -> None:
    last = panel.get_xlim()[1]
    for one in curves:
        inside = one.steps <= last
        marker = markers[_name(one)]
        panel.plot(one.steps[inside], one.returns[inside], color="0.4", ls=":", lw=0.8, marker=marker, ms=4, mfc="none")
    panel.set_xlim(0, last)


def _smooth(method: RunGroup, window: int) -> RunGroup:
    runs = [replace(run, returns=smoothed(run.steps, run.returns, window)) for run in method.runs]
    return replace(method, runs=runs)


def _name(one: Published) -> str:
    return f"{one.method}, published ({one.version.partition(';')[0]})"


def _seeds(methods: Sequence[RunGroup]) -> str:
    low, high = min(len(method.runs) for method in methods), max(len(method.runs) for method in methods)
    return f"{low} seed{'s' * (low > 1)}" if low == high else f"{low} to {high} seeds"
