"""Figure "heatmaps": the return of every arm over a grid of mass and friction, as the paper shows robustness."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mbdp.analysis.figure_style import PAGE, save, style
from mbdp.analysis.robustness_results import Robustness
from mbdp.types import BadInput

COLOURS = "viridis"
LETTERS_PER_INCH = 15  # of the title
READINGS = {
    "zero-shot": "zero-shot: trained in the nominal world (framed), tried in all",
    "retrained": "retrained: a policy for each world, trained and tried in it",
}
ARMS = ("no-dropout", "alpha-only", "beta-only", "mbdp")  # the paper's order


def draw_heatmaps(results: Sequence[Robustness], folder: Path, *, name: str = "heatmaps") -> list[Path]:
    """A row per task, a column per arm; all arms of a task share one colour scale. The title says which reading."""
    for result in results:
        if len(result.axes) != 2:
            raise BadInput(f"{result.folder}: a heat map needs a grid of two axes; it has {', '.join(result.axes)}")
    arms = sorted(
        dict.fromkeys(method for result in results for method in result.returns),
        key=lambda arm: ARMS.index(arm) if arm in ARMS else len(ARMS),
    )
    with style():
        width = min(1.55, (PAGE - 1.1) / len(arms))
        figure = Figure(figsize=(width * len(arms) + 1.1, (width + 0.35) * len(results) + 0.5), layout="constrained")
        title = "; ".join(dict.fromkeys(READINGS.get(one.protocol, one.protocol) for one in results))
        figure.suptitle(textwrap.fill(title, int(LETTERS_PER_INCH * figure.get_figwidth())), fontsize=8)
        panels = figure.subplots(len(results), len(arms), squeeze=False)
        for row, result in zip(panels, results, strict=True):
            means = {arm: array.mean(axis=(0, -1)) for arm, array in result.returns.items()}
            scale = _scale(list(means.values()))
            for panel, arm in zip(row, arms, strict=True):
                if arm not in means:
                    panel.set_visible(False)
                    continue
                image = _draw_map(panel, means[arm], result, scale)
                count = len(result.returns[arm])
                panel.set_title(f"{arm} ({count} seed{'s' * (count > 1)})")
            down, across = result.axes
            row[0].set_ylabel(f"{result.env}\n{_words(down, result)}")
            for panel in row:
                panel.set_xlabel(_words(across, result))
            figure.colorbar(image, ax=list(row), label="mean return", pad=0.01, aspect=15)
        return save(figure, folder, name)


def _draw_map(panel: Any, array: np.ndarray, result: Robustness, scale: Normalize) -> Any:
    down, across = (list(values) for values in result.axes.values())
    image = panel.imshow(array, norm=scale, cmap=COLOURS, origin="lower", aspect="auto", interpolation="nearest")
    for axis, values in ((panel.xaxis, across), (panel.yaxis, down)):
        chosen = np.unique(np.linspace(0, len(values) - 1, min(3, len(values))).round().astype(int))
        axis.set_ticks(chosen, [f"{values[i]:g}" for i in chosen])
    panel.grid(False)
    for side in panel.spines.values():
        side.set_visible(False)
    where = [np.flatnonzero(np.isclose(values, result.neutral[n])) for n, values in result.axes.items()]
    if all(len(found) for found in where):  # the nominal world
        row, column = (int(found[0]) for found in where)
        panel.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, ec="crimson", lw=1.2))
    return image


def _scale(maps: Sequence[np.ndarray]) -> Normalize:
    low, high = float(min(array.min() for array in maps)), float(max(array.max() for array in maps))
    return Normalize(min(low, 0.0) if high > 0 else low, high if high > low else low + 1)


def _words(name: str, result: Robustness) -> str:
    return f"{name} (x nominal)" if result.neutral[name] == 1 else name
