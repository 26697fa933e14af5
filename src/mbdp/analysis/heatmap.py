"""Figures of returns over a grid of worlds: a heat map per method, all on one colour scale, or lines along one axis."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

Axes = Mapping[str, Sequence[float]]
COLOURS = "viridis"
MOST_NUMBERS = 13  # cells along an axis, beyond which numbers written into them cannot be read
LABELS = {
    "push": "push (N)",
    "observation_noise": "observation noise (sd)",
    "action_noise": "action noise (sd)",
    "action_delay": "action delay (steps)",
}


def draw_grid(
    returns: Mapping[str, np.ndarray], axes: Axes, neutral: Mapping[str, float], file: Path, env: str, protocol: str
) -> None:
    """Save a figure of returns per method, each (training seeds, axes..., episodes); the title names the protocol."""
    means = {label: array.mean(axis=-1) for label, array in returns.items()}
    shown = list(axes)[:2]
    rest = tuple(range(3, 1 + len(axes)))
    means = {label: array.mean(axis=rest) if rest else array for label, array in means.items()}
    first = next(iter(returns.values()))
    words = f"{protocol}; {first.shape[-1]} episode{'s' * (first.shape[-1] > 1)} per world"
    words += f", mean over {' and '.join(list(axes)[2:])}" if rest else ""
    draw = _draw_maps if len(shown) == 2 else _draw_lines
    figure = draw(means, {name: axes[name] for name in shown}, neutral)
    figure.suptitle(f"{env}: mean return in perturbed worlds\n({words})", fontsize=11)
    figure.savefig(file, dpi=150)


def _draw_maps(means: Mapping[str, np.ndarray], axes: Axes, neutral: Mapping[str, float]) -> Figure:
    maps = {label: array.mean(axis=0) for label, array in means.items()}
    (down, down_values), (across, across_values) = axes.items()
    columns = min(3, len(maps))
    rows = math.ceil(len(maps) / columns)
    cell = 0.46 if max(len(down_values), len(across_values)) <= MOST_NUMBERS else 0.25
    width, height = max(3.2, cell * len(across_values)), max(2.4, cell * 0.8 * len(down_values))
    figure = Figure(
        figsize=(max(6.5, columns * (width + 0.6) + 1.0), rows * (height + 0.7) + 0.6), layout="constrained"
    )
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    low, high = min(array.min() for array in maps.values()), max(array.max() for array in maps.values())
    # Zero is where a return means nothing at all, so it is on the scale when returns are positive.
    scale = Normalize(min(low, 0.0) if high > 0 else low, high if high > low else low + 1)
    for panel, (label, array) in zip(panels.flat, maps.items(), strict=False):
        image = panel.imshow(array, norm=scale, cmap=COLOURS, origin="lower", aspect="auto")
        panel.set_title(f"{label} ({_seeds(means[label])})", fontsize=10)
        panel.set_xticks(range(len(across_values)), [f"{value:.4g}" for value in across_values], fontsize=8)
        panel.set_yticks(range(len(down_values)), [f"{value:.4g}" for value in down_values], fontsize=8)
        _write_numbers(panel, array, scale)
        _frame_nominal(panel, axes, neutral)
    for panel in panels.flat[len(maps) :]:
        panel.set_visible(False)
    for panel in panels[:, 0]:
        panel.set_ylabel(_label(down, neutral))
    for panel in panels.flat[max(0, len(maps) - columns) : len(maps)]:
        panel.set_xlabel(_label(across, neutral))
        panel.tick_params(labelbottom=True)
    figure.colorbar(image, ax=panels, label="mean undiscounted return", fraction=0.05)
    return figure


def _draw_lines(means: Mapping[str, np.ndarray], axes: Axes, neutral: Mapping[str, float]) -> Figure:
    ((name, values),) = axes.items()
    figure = Figure(figsize=(7, 4), layout="constrained")
    panel = figure.subplots()
    for label, array in means.items():
        (line,) = panel.plot(values, array.mean(axis=0), marker="o", label=f"{label} ({_seeds(array)})")
        # Every training seed is there to be seen; a band would have to claim a distribution.
        for seed in array if len(array) > 1 else ():
            panel.plot(values, seed, color=line.get_color(), alpha=0.3, linewidth=0.8)
    panel.axvline(neutral[name], color="grey", linestyle=":", linewidth=1)
    panel.set_xlabel(_label(name, neutral))
    panel.set_ylabel("mean undiscounted return")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=9)
    return figure


def _write_numbers(panel: Any, array: np.ndarray, scale: Normalize) -> None:
    if max(array.shape) > MOST_NUMBERS:
        return
    digits = 0 if np.abs(array).max() >= 100 else 1 if np.abs(array).max() >= 10 else 2
    for (row, column), value in np.ndenumerate(array):
        colour = "white" if float(scale(value)) < 0.6 else "black"
        panel.text(column, row, f"{value:.{digits}f}", ha="center", va="center", fontsize=7, color=colour)


def _frame_nominal(panel: Any, axes: Axes, neutral: Mapping[str, float]) -> None:
    where = [np.flatnonzero(np.isclose(values, neutral[name])) for name, values in axes.items()]
    if all(len(found) for found in where):
        down, across = (int(found[0]) for found in where)
        corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5]]) * 0.94 + [across, down]
        panel.plot(*corners.T, color="crimson", linewidth=1.8)


def _label(name: str, neutral: Mapping[str, float]) -> str:
    text = LABELS.get(name, name.replace("mass:", "mass of "))
    return f"{text} (x nominal)" if neutral[name] == 1 else text


def _seeds(array: np.ndarray) -> str:
    return f"{len(array)} training seed{'s' * (len(array) > 1)}"
