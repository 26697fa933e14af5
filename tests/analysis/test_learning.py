import numpy as np
import pytest
from scipy import stats

from mbdp.analysis.learning import (
    area_under_curve,
    curve_of,
    final_return,
    iqm_interval,
    mean_from,
    probability_of_improvement,
    scale_of,
    seconds_to,
    steps_to,
    stuck_share,
    summarise,
)
from mbdp.analysis.run_groups import RunGroup
from mbdp.analysis.runs import read_run
from tests.analysis.made_up import make_run


def run_of(tmp_path, returns, seed=0, every=1_000):
    return read_run(make_run(tmp_path / f"every_{every}" / f"Hopper-v5_{seed}", returns, every=every))


def test_mean_and_standard_deviation_over_seeds(tmp_path):
    curve = curve_of([run_of(tmp_path, [0.0, 2.0], 0), run_of(tmp_path, [2.0, 6.0], 1)])
    assert curve.mean.tolist() == [1.0, 4.0]
    assert curve.sd == pytest.approx([np.sqrt(2), np.sqrt(8)])


def test_a_curve_ends_where_its_shortest_seed_does(tmp_path):
    assert curve_of([run_of(tmp_path, [1.0] * 5, 0), run_of(tmp_path, [1.0] * 3, 1)]).steps[-1] == 3_000


def test_seeds_evaluated_at_different_steps_are_joined_by_straight_lines(tmp_path):
    curve = curve_of([run_of(tmp_path, [2.0, 4.0], 0, every=2_000), run_of(tmp_path, [0.0, 1.0, 2.0, 3.0], 1)])
    assert (curve.steps.tolist(), curve.mean.tolist()) == ([2_000, 4_000], [1.5, 3.5])


def test_the_interval_is_the_percentile_bootstrap_over_seeds_and_repeats():
    seeds = np.random.default_rng(1).normal(size=(10, 3))
    middle, low, high = iqm_interval(seeds)
    assert middle == pytest.approx(stats.trim_mean(seeds, 0.25, axis=0))
    assert (low < middle).all()
    assert (middle < high).all()
    assert np.array_equal(iqm_interval(seeds)[1], low)


def test_one_seed_has_no_interval(tmp_path):
    method = RunGroup("m", "Hopper-v5", [run_of(tmp_path, [1.0, 2.0])])
    summary = summarise(method, scale_of([method]))
    assert summary.iqm.low is None
    assert summary.sd is None


def test_the_final_return_is_the_mean_of_the_last_tenth(tmp_path):
    run = run_of(tmp_path, [0.0] * 18 + [1.0, 3.0])
    assert final_return(run) == 2.0
    assert final_return(run, until=10_000) == 0.0


def test_mean_of_the_evaluations_from_a_step_on(tmp_path):
    assert mean_from(run_of(tmp_path, [1.0, 2.0, 3.0]), 1_000) == 2.5


def test_area_under_a_straight_line_is_its_middle(tmp_path):
    assert area_under_curve(run_of(tmp_path, [1.0, 2.0, 3.0]), 3_000) == pytest.approx(2.0)
    assert area_under_curve(run_of(tmp_path, [1.0, 2.0, 3.0], 1), 2_500) == pytest.approx(1.75)


def test_steps_and_seconds_to_a_threshold_are_those_of_the_first_evaluation_there(tmp_path):
    run = run_of(tmp_path, [1.0, 5.0, 2.0])
    assert (steps_to(run, 4.0), seconds_to(run, 4.0)) == (2_000, 20.0)
    assert steps_to(run, 6.0) == seconds_to(run, 6.0) == np.inf


def test_share_of_stuck_seeds():
    assert stuck_share(np.array([800.0, 3300.0, 3200.0, 700.0]), 1500) == 0.5


def test_probability_of_improvement_counts_pairs_and_half_of_ties():
    assert probability_of_improvement([1.0, 2.0], [0.0, 1.0]).value == pytest.approx(3.5 / 4)
    assert probability_of_improvement([3.0], [1.0]).low is None


def test_a_failed_seed_counts(tmp_path):
    good = [run_of(tmp_path, [0.0] + [100.0] * 20, seed) for seed in range(3)]
    method = RunGroup("m", "Hopper-v5", [*good, run_of(tmp_path, [0.0] * 21, 3)])
    summary = summarise(method, scale_of([method]))
    assert (summary.mean, summary.stuck) == (75.0, 0.25)
    assert summary.steps_to == [2_000, 2_000, 2_000, np.inf]


def test_methods_are_compared_no_later_than_the_shortest_has_come(tmp_path):
    long, short = run_of(tmp_path, [0.0] * 10 + [5.0] * 10, 0), run_of(tmp_path, [1.0] * 10, 1)
    methods = [RunGroup("long", "Hopper-v5", [long]), RunGroup("short", "Hopper-v5", [short])]
    assert scale_of(methods).common == scale_of(methods, at=15_000).common == 10_000
    assert scale_of(methods, at=5_000).common == 5_000
