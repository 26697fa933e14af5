"""Figure "ablation": robustness and efficiency over alpha and over beta, as in the paper's ablation study."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mbdp.analysis.figure_style import COLOURS, PAGE, save, style
from mbdp.analysis.learning import final_return
from mbdp.analysis.robustness_results import Robustness
from mbdp.analysis.run_groups import RunGroup
from mbdp.analysis.runs import Run
from mbdp.analysis.statistics import paper_corners
from mbdp.types import BadInput

FIXED = 0.2  # the paper holds one ratio here while it changes the other
Scores = Mapping[tuple[str, str, int], float]  # (environment, method, seed) -> mean return in the four perturbed worlds


def draw_ablation(
    methods: Sequence[RunGroup],
    results: Sequence[Robustness],
    folder: Path,
    *,
    fixed: float = FIXED,
    name: str = "ablation",
) -> list[Path]:
    """A row per task; boxes over seeds, every seed as a dot, and the mean without any dropout as a dashed line.

    Without results of `mbdp robustness` there is nothing to show but efficiency.
    """
    scores = robustness_scores(results)
    envs = list(dict.fromkeys(method.env for method in methods))
    kinds = ("robustness", "efficiency") if results else ("efficiency",)
    columns = [(kind, setting) for kind in kinds for setting in ("alpha", "beta")]
    with style():
        figure = Figure(figsize=(PAGE, 1.75 * len(envs) + 0.2), layout="constrained")
        panels = figure.subplots(len(envs), len(columns), squeeze=False)
        for row, env in zip(panels, envs, strict=True):
            here = [(method.name, run) for method in methods if method.env == env for run in method.runs]
            for panel, (kind, setting) in zip(row, columns, strict=True):
                values = [
                    (run, final_return(run) if kind == "efficiency" else _score(scores, env, method, run))
                    for method, run in here
                ]
                _draw_boxes(panel, values, setting, fixed, COLOURS[setting == "beta"])
                reading = "zero-shot " if kind == "robustness" else ""
                panel.set_title(f"{reading}{kind}, {'beta' if setting == 'alpha' else 'alpha'} = {fixed:g}")
                panel.set_xlabel(setting)
            for pair in (row[:2], row[-2:]):  # what is measured in the same way is seen on the same scale
                low, high = min(p.get_ylim()[0] for p in pair), max(p.get_ylim()[1] for p in pair)
                for panel in pair:
                    panel.set_ylim(low, high)
            row[0].set_ylabel(f"{env}\nmean return")
        return save(figure, folder, name)


def robustness_scores(results: Sequence[Robustness]) -> dict[tuple[str, str, int], float]:
    """The paper's measure of robustness for every seed: the mean over {0.8, 1.2} squared."""
    scores = {}
    for result in results:
        corners = paper_corners(result.axes, result.neutral)
        if not corners.any():
            raise BadInput(f"{result.folder}: the grid must have 0.8 and 1.2 on both axes, as mass and friction")
        for method, array in result.returns.items():
            for seed, returns in zip(result.seeds[method], array, strict=True):
                scores[result.env, method, -1 if seed is None else seed] = float(returns[corners].mean())
    return scores


def _draw_boxes(panel: Any, values: Sequence[tuple[Run, float]], setting: str, fixed: float, colour: str) -> None:
    other = "beta" if setting == "alpha" else "alpha"
    groups: dict[float, list[float]] = {}
    for run, value in values:
        if np.isclose(run.settings.get(other, np.nan), fixed):
            groups.setdefault(float(run.settings[setting]), []).append(value)
    if not groups:
        raise BadInput(f"no run has {other} = {fixed:g}: the boxes over {setting} need some")
    places = sorted(groups)
    panel.boxplot(
        [groups[place] for place in places],
        tick_labels=[f"{place:g}" for place in places],
        widths=0.55,
        showfliers=False,  # every seed is a dot already
        medianprops={"color": "black", "lw": 1},
        boxprops={"color": colour},
        whiskerprops={"color": colour},
        capprops={"color": colour},
    )
    rng = np.random.default_rng(0)
    for i, place in enumerate(places, 1):
        shift = rng.uniform(-0.12, 0.12, len(groups[place]))
        panel.plot(i + shift, groups[place], "o", ms=2, color=colour, alpha=0.6, mew=0)
    without = [value for run, value in values if run.settings.get("alpha") == 0 and run.settings.get("beta") == 0]
    if without:
        panel.axhline(float(np.mean(without)), color="0.3", ls="--", lw=0.9)


def _score(scores: Scores, env: str, method: str, run: Run) -> float:
    try:
        return scores[env, method, run.seed]
    except KeyError:
        raise BadInput(
            f"{run.folder}: no robustness result has seed {run.seed} of {method!r} in {env}; run `mbdp robustness` "
            "with that label"
        ) from None
