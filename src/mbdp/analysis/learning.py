"""Numbers that say how well and how fast methods learn, with the training seed as the unit of all uncertainty."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from mbdp.analysis.run_groups import RunGroup
from mbdp.analysis.runs import Run
from mbdp.analysis.statistics import RESAMPLES, Estimate

LAST = 0.1  # "final" is the mean of the evaluations in this last share of the env steps: one alone is noisy
SOLVED, STUCK = 0.8, 0.5  # of the way from the lowest return in an environment to the best method's final one


class Curve(NamedTuple):
    """A method's learning curve at the env steps that all of its seeds have reached."""

    steps: np.ndarray
    seeds: np.ndarray  # (seeds, steps)
    mean: np.ndarray
    sd: np.ndarray  # among training seeds; 0 for a single one
    iqm: np.ndarray
    low: np.ndarray  # 95 % bootstrap interval of the IQM
    high: np.ndarray


class Summary(NamedTuple):
    """What the overview says of a method; returns are final ones at env step `until`."""

    until: float
    mean: float
    sd: float | None
    iqm: Estimate
    area: Estimate  # mean return over training: the area under the curve per env step
    steps_to: list[float]  # per seed; infinite if never reached
    seconds_to: list[float]
    stuck: float  # share of seeds


class Scale(NamedTuple):
    """Where the returns of an environment begin and end, and up to which env step methods can be compared."""

    lowest: float
    best: float
    common: float

    def level(self, share: float) -> float:
        return self.lowest + share * (self.best - self.lowest)


def curve_of(runs: Sequence[Run], seed: int = 0) -> Curve:
    """The learning curve of several seeds; where they were evaluated at different steps, linear in between."""
    last = min(run.steps[-1] for run in runs)
    coarsest = min(runs, key=lambda run: int((run.steps <= last).sum()))
    steps = coarsest.steps[coarsest.steps <= last]
    steps = steps if len(steps) else np.array([last])
    seeds = np.array([np.interp(steps, run.steps, run.returns) for run in runs])
    sd = seeds.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros(len(steps))
    return Curve(steps, seeds, seeds.mean(axis=0), sd, *iqm_interval(seeds, seed))


def iqm_interval(seeds: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """IQM over training seeds, the first axis, and its 95 % bootstrap interval, which is empty for a single seed."""
    middle = stats.trim_mean(seeds, 0.25, axis=0)
    if len(seeds) == 1 or (seeds == seeds[0]).all():
        return middle, middle, middle
    interval: Any = stats.bootstrap(  # type: ignore[call-overload]  # the stubs know one-dimensional samples only
        (seeds,),
        lambda x, axis: stats.trim_mean(x, 0.25, axis=axis),
        n_resamples=RESAMPLES,
        batch=max(1, 4_000_000 // seeds.size),  # memory, not precision
        vectorized=True,
        axis=0,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return middle, interval.low, interval.high


def scale_of(methods: Sequence[RunGroup], at: float | None = None) -> Scale:
    """The scale of one environment; methods are compared at `at`, or earlier if not all of them have come that far."""
    lowest = min(float(run.returns.min()) for method in methods for run in method.runs)
    ends = np.inf if at is None else at
    best = max(
        float(np.mean([final_return(run, min(ends, run.steps[-1])) for run in method.runs])) for method in methods
    )
    common = min(float(run.steps[-1]) for method in methods for run in method.runs)
    return Scale(lowest, best, min(common, ends))


def summarise(method: RunGroup, scale: Scale, at: float | None = None, threshold: float | None = None) -> Summary:
    """The overview's numbers; a method is judged at `at`, or at the last env step that all of its seeds reached."""
    until = min(float(run.steps[-1]) for run in method.runs)
    until = until if at is None else min(at, until)
    final = np.array([final_return(run, until) for run in method.runs])
    area = np.array([area_under_curve(run, min(scale.common, until)) for run in method.runs])
    goal = scale.level(SOLVED) if threshold is None else threshold
    return Summary(
        until,
        float(final.mean()),
        float(final.std(ddof=1)) if len(final) > 1 else None,
        _estimate(final),
        _estimate(area),
        [steps_to(run, goal) for run in method.runs],
        [seconds_to(run, goal) for run in method.runs],
        stuck_share(final, scale.level(STUCK)),
    )


def _estimate(values: np.ndarray) -> Estimate:
    value, low, high = (float(number[0]) for number in iqm_interval(values[:, None]))
    return Estimate(value, low, high) if len(values) > 1 else Estimate(value)


def final_return(run: Run, until: float | None = None) -> float:
    """Mean return of the evaluations in the last tenth of the env steps, up to `until`."""
    last = run.steps[-1] if until is None else until
    return mean_from(run, (1 - LAST) * last, last)


def mean_from(run: Run, step: float, until: float = np.inf) -> float:
    """Mean return of the evaluations after env step `step`; the last one before, if there is none after."""
    chosen = (run.steps > step) & (run.steps <= until)
    if chosen.any():
        return float(run.returns[chosen].mean())
    return float(run.returns[max(0, int(np.searchsorted(run.steps, until, "right")) - 1)])


def area_under_curve(run: Run, until: float) -> float:
    """Area under the curve up to `until`, per env step: the mean return during training."""
    inside = run.steps < until
    steps = np.append(run.steps[inside], until)
    returns = np.append(run.returns[inside], np.interp(until, run.steps, run.returns))
    width = steps[-1] - steps[0]
    return float(np.trapezoid(returns, steps) / width) if width > 0 else float(returns[-1])


def steps_to(run: Run, threshold: float) -> float:
    """Env steps until an evaluation first reaches the threshold; infinite if none does."""
    reached = run.returns >= threshold
    return float(run.steps[np.argmax(reached)]) if reached.any() else np.inf


def seconds_to(run: Run, threshold: float) -> float:
    """The same in seconds since the run began; NaN if the run does not say."""
    reached = run.returns >= threshold
    return float(run.seconds[np.argmax(reached)]) if reached.any() else np.inf


def stuck_share(final: np.ndarray, threshold: float) -> float:
    """Share of training seeds whose final return is below the threshold."""
    return float((np.asarray(final) < threshold).mean())


def probability_of_improvement(ours: Sequence[float], theirs: Sequence[float], seed: int = 0) -> Estimate:
    """P(a seed of ours is better than one of theirs), a tie counting half: Mann-Whitney's U over all pairs."""

    def share(x: np.ndarray, y: np.ndarray) -> float:
        return float(stats.mannwhitneyu(x, y, method="asymptotic").statistic / (len(x) * len(y)))

    one, other = np.asarray(ours, float), np.asarray(theirs, float)
    value = share(one, other)
    if min(len(one), len(other)) < 2:
        return Estimate(value)
    # U needs comparisons only, so all resamples are compared at once instead of ranked one by one.
    rng = np.random.default_rng(seed)
    x, y = (rng.choice(values, (RESAMPLES, len(values))) for values in (one, other))
    wins = (np.sign(x[:, :, None] - y[:, None, :]) + 1) / 2
    low, high = np.percentile(wins.mean(axis=(1, 2)), (2.5, 97.5))
    return Estimate(value, float(low), float(high))
