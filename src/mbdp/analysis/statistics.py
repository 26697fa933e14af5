"""Numbers that say how a method holds up over a grid of worlds, from the returns of several training seeds.

Returns are shaped (training seeds, cells, episodes). The unit of all uncertainty is the training seed: episodes and
cells of one policy are not independent, and intervals that resample them are far too narrow.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

RESAMPLES = 2000
PAPER_CORNERS = (0.8, 1.2)


class Estimate(NamedTuple):
    """A number with its 95 % interval, which one training seed cannot have."""

    value: float
    low: float | None = None
    high: float | None = None


def summary(
    returns: np.ndarray,
    axes: Mapping[str, Sequence[float]],
    neutral: Mapping[str, float],
    nominal: np.ndarray,
    seed: int = 0,
) -> dict[str, Estimate | None]:
    """Every number of the table; None for those that this grid cannot give.

    `returns` is (seeds, axes..., episodes) over the grid, `nominal` (seeds, episodes) in the unperturbed world.
    """
    count, episodes = returns.shape[0], returns.shape[-1]
    cells = returns.reshape(count, -1, episodes)
    corners = paper_corners(axes, neutral).ravel()
    halves = episodes >= 2
    rows: dict[str, Callable[[np.ndarray], float] | None] = {
        "nominal": lambda i: float(nominal[i].mean()),
        "grid_mean": lambda i: float(cells[i].mean()),
        "iqm": lambda i: iqm(cells[i].mean(axis=-1)),
        "worst_cell": (lambda i: tail(cells[i], 0.0)) if halves else None,
        "cvar_10": (lambda i: tail(cells[i], 0.1)) if halves else None,
        "share_above_80": lambda i: share_above(cells[i], nominal[i].mean(axis=-1), 0.8),
        "retention": lambda i: retention(cells[i], float(nominal[i].mean())),
        "paper_mean": (lambda i: float(cells[i][:, corners].mean())) if corners.any() else None,
    }
    return {name: row and with_interval(row, count, seed) for name, row in rows.items()}


def with_interval(statistic: Callable[[np.ndarray], float], seeds: int, seed: int = 0) -> Estimate | None:
    """A statistic of training seeds, given by their indices, with the bootstrap interval of resampled seeds."""
    everyone = np.arange(seeds)
    value = statistic(everyone)
    if not np.isfinite(value):
        return None
    if seeds == 1:
        return Estimate(value)
    interval = stats.bootstrap(
        (everyone,),
        lambda chosen: statistic(chosen.astype(int)),
        n_resamples=RESAMPLES,
        vectorized=False,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    low, high = float(interval.low), float(interval.high)
    return Estimate(value, low, high) if np.isfinite([low, high]).all() else Estimate(value)


def iqm(values: np.ndarray) -> float:
    """The interquartile mean: the mean of the middle half."""
    return float(stats.trim_mean(values, 0.25, axis=None))


def tail(cells: np.ndarray, fraction: float) -> float:
    """The mean return in the worst `fraction` of the cells, at least in one (CVaR over cells; at 0 the worst cell).

    The lowest of many noisy numbers is low by luck too. So the cells are chosen on one half of the episodes and scored
    on the other, both ways round.
    """
    mean = cells.mean(axis=0)
    halves = mean[:, 0::2].mean(axis=-1), mean[:, 1::2].mean(axis=-1)
    count = max(1, round(fraction * len(mean)))
    scores = [score[np.argsort(choice, kind="stable")[:count]].mean() for choice, score in (halves, halves[::-1])]
    return float(np.mean(scores))


def share_above(cells: np.ndarray, nominal: np.ndarray, share: float) -> float:
    """The fraction of cells in which a seed has at least `share` of its own nominal return, be it positive or not."""
    least = nominal - (1 - share) * np.abs(nominal)
    return float((cells.mean(axis=-1) >= least[:, None]).mean())


def retention(cells: np.ndarray, nominal: float) -> float:
    """Grid mean over nominal return; NaN unless the nominal return is positive, where a ratio means nothing."""
    return float(cells.mean() / nominal) if nominal > 0 else float("nan")


def paper_corners(axes: Mapping[str, Sequence[float]], neutral: Mapping[str, float]) -> np.ndarray:
    """True for the cells of the paper's {0.8, 1.2} squared: mass and friction there, everything else neutral.

    A grid of two other coefficients has them on these.
    """
    own = len(axes) == 2 and all(neutral[name] == 1 for name in axes)
    perturbed = set(axes) if own else {"mass", "friction"}
    wanted = {name: PAPER_CORNERS if name in perturbed else (neutral[name],) for name in axes}
    inside = [np.array([np.isclose(value, wanted[name]).any() for value in axes[name]]) for name in axes]
    complete = all(np.isclose(axes[name], value).any() for name in axes for value in wanted[name])
    mask = np.ones((), bool)
    for axis in inside:
        mask = mask[..., None] & axis
    return mask & (complete and perturbed <= set(axes))
