"""Does the data confirm that one method is better than another? Differences between methods, over training seeds."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from mbdp.analysis.learning import probability_of_improvement
from mbdp.analysis.statistics import RESAMPLES, Estimate

FEWEST = 3  # seeds of each method: with fewer, no interval of resampled seeds means anything
POWER = float(stats.norm.ppf(0.975) + stats.norm.ppf(0.8))  # of a two-sided test at 5 %, right four times in five


class Verdict(NamedTuple):
    """What two sets of training seeds say of the claim that the first is higher, or lower, than the second."""

    word: Literal["confirmed", "refuted", "undecided"]
    effect: Estimate  # difference of means, with its 95 % interval
    probability: Estimate  # that a seed of the first is higher than one of the second
    seeds: tuple[int, int]
    needed: int | None  # seeds of each that would decide, if the difference is as measured; None if decided


def judge(
    first: Sequence[float], second: Sequence[float], claimed: Literal["higher", "lower"], seed: int = 0
) -> Verdict:
    """Confirmed or refuted if the interval of the difference leaves 0 out, on the side claimed or on the other."""
    one, other = np.asarray(first, float), np.asarray(second, float)
    effect = _difference(one, other, seed)
    probability = probability_of_improvement(one.tolist(), other.tolist(), seed)
    seeds = len(one), len(other)
    if min(seeds) < FEWEST or effect.low is None or effect.high is None or effect.low <= 0 <= effect.high:
        return Verdict("undecided", effect, probability, seeds, _needed(one, other))
    up = effect.low > 0
    return Verdict("confirmed" if up == (claimed == "higher") else "refuted", effect, probability, seeds, None)


def _difference(one: np.ndarray, other: np.ndarray, seed: int) -> Estimate:
    value = float(one.mean() - other.mean())
    if min(len(one), len(other)) < 2:
        return Estimate(value)
    interval = stats.bootstrap(
        (one, other),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        n_resamples=RESAMPLES,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(value, float(interval.low), float(interval.high))


def _needed(one: np.ndarray, other: np.ndarray) -> int | None:
    """Seeds of each method for a power of 80 %; None where the spread or the difference is not known."""
    difference = abs(one.mean() - other.mean())
    if min(len(one), len(other)) < 2 or difference == 0:
        return None
    variance = (one.var(ddof=1) + other.var(ddof=1)) / 2
    return max(FEWEST, math.ceil(2 * variance * (POWER / difference) ** 2))
