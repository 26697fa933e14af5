import numpy as np
import pytest

from mbdp.analysis.statistics import RESAMPLES, iqm, retention, share_above, summary, tail, with_interval

NEUTRAL = {"mass": 1.0, "friction": 1.0, "gravity": 1.0}
AXES = {"mass": [0.8, 1.0, 1.2], "friction": [0.8, 1.2]}


def summarise(returns, axes=AXES, nominal=None):
    return summary(returns, axes, NEUTRAL, nominal)


def test_iqm_is_the_mean_of_the_middle_half():
    assert iqm(np.array([-1e9, 1, 2, 3, 4, 5, 6, 1e9])) == pytest.approx((2 + 3 + 4 + 5) / 4 + 0.0)


def test_a_table_worked_out_by_hand():
    # Two seeds; each cell's return is its number, the second seed's twice that; episodes equal.
    one = np.arange(1.0, 7.0).reshape(3, 2, 1) * np.ones(2)
    table = summarise(np.stack([one, 2 * one]), nominal=np.array([[4.0, 4.0], [8.0, 8.0]]))
    values = {name: estimate.value for name, estimate in table.items()}
    assert values["nominal"] == 6.0
    assert values["grid_mean"] == pytest.approx(1.5 * 3.5)
    assert values["iqm"] == pytest.approx(np.mean([3, 4, 4, 5, 6, 6]))
    assert values["worst_cell"] == values["cvar_10"] == pytest.approx(1.5)
    assert values["share_above_80"] == pytest.approx(3 / 6)  # 4, 5, 6 reach 3.2; 8, 10, 12 reach 6.4
    assert values["retention"] == pytest.approx(1.5 * 3.5 / 6)
    assert values["paper_mean"] == pytest.approx(1.5 * (1 + 2 + 5 + 6) / 4)


def test_the_worst_cell_of_pure_noise_is_not_biased():
    """Every cell is equally good, so the worst one is no worse than the rest; the plain minimum would say -2.5."""
    rng = np.random.default_rng(0)
    scores = [tail(rng.normal(size=(1, 100, 2)), 0.0) for _ in range(400)]
    assert abs(np.mean(scores)) < 4 * np.std(scores) / np.sqrt(len(scores))
    assert np.mean([rng.normal(size=(100, 2)).mean(axis=1).min() for _ in range(50)]) < -1.5


def test_the_tail_finds_the_cells_that_are_truly_worst():
    cells = np.ones((3, 20, 4))
    cells[:, 7], cells[:, 8] = -5.0, -3.0
    assert tail(cells, 0.0) == -5.0
    assert tail(cells, 0.1) == -4.0


@pytest.mark.parametrize(("nominal", "expected"), [(10.0, 0.5), (-10.0, 1.0), (-5.0, 0.5)])
def test_the_share_of_nominal_also_has_a_meaning_for_negative_returns(nominal, expected):
    cells = np.array([[nominal, 0.5 * nominal if nominal > 0 else -11.0]])[..., None]
    assert share_above(cells, np.array([nominal]), 0.8) == expected


def test_no_retention_is_claimed_of_a_nominal_return_that_is_not_positive():
    assert np.isnan(retention(np.ones((1, 2, 2)), -3.0))
    assert summarise(np.ones((2, 3, 2, 2)), nominal=np.full((2, 2), -3.0))["retention"] is None


def test_one_training_seed_has_no_interval():
    table = summarise(np.random.default_rng(0).normal(size=(1, 3, 2, 4)), nominal=np.ones((1, 4)))
    assert all(estimate.low is None and estimate.high is None for estimate in table.values() if estimate)


def test_one_episode_gives_no_worst_cell():
    table = summarise(np.ones((3, 3, 2, 1)), nominal=np.ones((3, 1)))
    assert table["worst_cell"] is None
    assert table["cvar_10"] is None


@pytest.mark.parametrize(
    "axes",
    [{"mass": [0.8, 1.2], "friction": [0.8, 1.0]}, {"mass": [0.8, 1.2]}, {"gravity": [1.0, 1.2], "mass": [0.8, 1.2]}],
)
def test_the_papers_mean_is_not_given_by_a_grid_without_its_corners(axes):
    returns = np.ones((1, *(len(values) for values in axes.values()), 2))
    assert summarise(returns, axes, np.ones((1, 2)))["paper_mean"] is None


def test_the_papers_mean_takes_the_neutral_value_of_further_axes():
    axes = {"mass": [0.8, 1.2], "gravity": [1.0, 2.0], "friction": [0.8, 1.2]}
    returns = np.zeros((1, 2, 2, 2, 1))
    returns[:, :, 0] = [[[1.0], [2.0]], [[3.0], [4.0]]]
    assert summarise(returns, axes, np.ones((1, 1)))["paper_mean"].value == 2.5


def test_the_interval_of_a_mean_covers_it_about_as_often_as_it_says():
    """The percentile bootstrap of 20 seeds covers a little less than 95 %."""
    rng, covered = np.random.default_rng(0), 0
    for i in range(60):
        data = rng.normal(size=20)
        estimate = with_interval(lambda chosen, data=data: float(data[chosen].mean()), 20, seed=i)
        covered += estimate.low <= 0 <= estimate.high
    assert 50 <= covered <= 60
    assert RESAMPLES >= 1000


def test_whole_seeds_are_resampled_not_their_cells():
    """Seeds that differ much, cells that do not: resampling cells would give nearly no width."""
    returns = np.array([0.0, 10.0, 0.0, 10.0, 0.0, 10.0])[:, None, None, None] * np.ones((6, 3, 2, 2))
    estimate = summarise(returns, nominal=np.ones((6, 2)))["grid_mean"]
    assert estimate.high - estimate.low > 5


def test_the_same_seed_gives_the_same_interval():
    returns = np.random.default_rng(1).normal(size=(5, 3, 2, 4))
    assert summarise(returns, nominal=np.ones((5, 4))) == summarise(returns, nominal=np.ones((5, 4)))
