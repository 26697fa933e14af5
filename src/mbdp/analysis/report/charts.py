"""The charts of the report as plain data: Plotly's traces without colours, which the page adds to suit its theme."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from mbdp.analysis.learning import curve_of, final_return
from mbdp.analysis.robustness_results import Robustness
from mbdp.analysis.run_groups import RunGroup
from mbdp.analysis.runs import Run

Chart = dict[str, Any]
MOST_POINTS = 400  # along a line: no screen shows more, and the download has them all
MOST_COLUMNS = 150  # of a map of members


def learning_curves(methods: Sequence[RunGroup]) -> list[Chart]:
    """A chart per environment: mean and standard deviation, IQM and interval, and every seed."""
    return [
        {"kind": "curves", "title": escape(env), "methods": [_learning_curve(method) for method in here]}
        for env, here in by_env(methods).items()
    ]


def bias_curves(methods: Sequence[RunGroup]) -> list[Chart]:
    """A chart per environment: the bias of the members that were kept, per method and per seed."""
    charts = []
    for env, here in by_env(methods).items():
        lines = [_bias_curve(method) for method in here]
        if any(line["seeds"] for line in lines):
            charts.append({"kind": "bias", "title": escape(env), "methods": [line for line in lines if line["seeds"]]})
    return charts


def kept_members(methods: Sequence[RunGroup]) -> Chart | None:
    """For every run a map of members over env steps: the bias of those that were kept, nothing for those dropped."""
    maps = []
    for method in methods:
        for run in method.runs:
            if found := _kept_map(run):
                name = f"{method.name}, {method.env}, seed {run.seed}"
                maps.append({"name": escape(name), "method": method.name, **found})
    return {"kind": "kept", "runs": maps} if maps else None


def effects(methods: Sequence[RunGroup], setting: str, other: str) -> list[Chart]:
    """A chart per environment: final return of every seed over `setting`, one line for each value of `other`."""
    charts = []
    for env, here in by_env(methods).items():
        # An ablation arm is MBDP at the value 0; another algorithm's alpha says nothing about this one's.
        runs = [run for method in here for run in method.runs if run.algo in FAMILY and _has_ratios(run)]
        values = sorted({run.settings[setting] for run in runs})
        if len(values) < 2:
            continue
        lines = []
        for value in sorted({run.settings[other] for run in runs}):
            chosen = [run for run in runs if run.settings[other] == value]
            points = [(run.settings[setting], _short(final_return(run)), run.seed) for run in chosen]
            lines.append({"name": f"{other} {value:g}", "points": sorted(points)})
        if any(len({x for x, *_ in line["points"]}) > 1 for line in lines):
            charts.append({"kind": "effect", "title": f"{escape(env)}: {setting}", "setting": setting, "lines": lines})
    return charts


def _has_ratios(run: Run) -> bool:
    return all(isinstance(run.settings.get(name), int | float) for name in ("alpha", "beta"))


FAMILY = ("mbdp", "alpha-only", "beta-only", "no-dropout")


def robustness_maps(results: Sequence[Robustness]) -> list[Chart]:
    """A chart per method and result of `mbdp robustness`; those of one environment share their colour scale."""
    charts = []
    for result in results:
        names = list(result.axes)[:2]
        means = {method: _cell_means(array, len(names)) for method, array in result.returns.items()}
        everything = [
            _cell_means(array, min(2, len(other.axes)))
            for other in results
            if other.env == result.env
            for array in other.returns.values()
        ]
        low, high = min(array.min() for array in everything), max(array.max() for array in everything)
        low = min(0.0, low) if high > 0 else low  # zero is where a return means nothing at all
        for method, array in means.items():
            seeds = len(result.returns[method])
            charts.append(
                {
                    "kind": "map" if len(names) == 2 else "line",
                    "title": f"{escape(method)} ({seeds} seed{'s' * (seeds > 1)})",
                    "folder": str(result.folder),
                    "axes": [_axis_title(name, result.neutral[name]) for name in names],
                    "values": [list(result.axes[name]) for name in names],
                    "neutral": [result.neutral[name] for name in names],
                    "z": _shorts(array),
                    "range": [_short(low), _short(high)],
                }
            )
    return charts


def by_env(methods: Sequence[RunGroup]) -> dict[str, list[RunGroup]]:
    """The methods of each environment."""
    return {env: [m for m in methods if m.env == env] for env in dict.fromkeys(m.env for m in methods)}


def _learning_curve(method: RunGroup) -> dict[str, Any]:
    curve = curve_of(method.runs)
    chosen = _thin(len(curve.steps), MOST_POINTS)
    seconds = np.mean([np.interp(curve.steps, run.steps, run.seconds) for run in method.runs], axis=0)
    seeds = [(run, _thin(len(run.steps), MOST_POINTS)) for run in method.runs]
    return {
        "method": method.name,
        "x": _shorts(curve.steps[chosen], 7),
        "hours": _shorts(seconds[chosen] / 3600),
        "mean": _shorts(curve.mean[chosen]),
        "sd": _shorts(curve.sd[chosen]),
        "iqm": _shorts(curve.iqm[chosen]),
        "low": _shorts(curve.low[chosen]),
        "high": _shorts(curve.high[chosen]),
        "seeds": [
            {
                "seed": run.seed,
                "x": _shorts(run.steps[i], 7),
                "hours": _shorts(run.seconds[i] / 3600),
                "y": _shorts(run.returns[i]),
            }
            for run, i in seeds
        ],
    }


def _bias_curve(method: RunGroup) -> dict[str, Any]:
    found = [(run.seed, *run.series("model/bias")) for run in method.runs]
    found = [(seed, steps, bias) for seed, steps, bias in found if len(steps)]
    if not found:
        return {"method": method.name, "seeds": []}
    last = min(steps[-1] for _, steps, _ in found)
    grid = min((steps[steps <= last] for _, steps, _ in found), key=len)
    mean = np.mean([np.interp(grid, steps, bias) for _, steps, bias in found], axis=0)
    chosen = _thin(len(grid), MOST_POINTS)
    thinned = [(seed, steps, bias, _thin(len(steps), MOST_POINTS)) for seed, steps, bias in found]
    return {
        "method": method.name,
        "x": _shorts(grid[chosen], 7),
        "mean": _shorts(mean[chosen]),
        "seeds": [{"seed": seed, "x": _shorts(x[i], 7), "y": _shorts(y[i])} for seed, x, y, i in thinned],
    }


def _kept_map(run: Run) -> dict[str, Any] | None:
    lines = [line for line in run.lines if isinstance(line.get("model/kept"), list)]
    members = sum(name.startswith("model/bias_") for name in lines[0]) if lines else 0
    if not members:
        return None
    lines = [lines[i] for i in _thin(len(lines), MOST_COLUMNS)]
    z = [
        [line.get(f"model/bias_{member}") if member in line["model/kept"] else None for line in lines]
        for member in range(members)
    ]
    return {"x": [line["step"] for line in lines], "z": [[_short(value) for value in row] for row in z]}


def _cell_means(array: np.ndarray, shown: int) -> np.ndarray:
    """Mean over training seeds, episodes, and the axes beyond those that are shown."""
    return np.asarray(array.mean(axis=(0, *range(1 + shown, array.ndim))))


def _axis_title(name: str, neutral: float) -> str:
    text = name.replace("mass:", "mass of ").replace("_", " ")
    return f"{text} (x nominal)" if neutral == 1 else text


def _thin(count: int, most: int) -> np.ndarray:
    """Evenly spread indices, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def _short(number: float | None, digits: int = 4) -> float | int | None:
    """A number with as many digits as a screen can show; None if it is not finite."""
    if number is None or not math.isfinite(number):
        return None
    text = float(f"{number:.{digits}g}")
    return int(text) if text.is_integer() else text


def _shorts(array: np.ndarray | Mapping[Any, Any], digits: int = 4) -> list[Any]:
    return [_shorts(x, digits) if np.ndim(x) else _short(float(x), digits) for x in np.asarray(array)]
