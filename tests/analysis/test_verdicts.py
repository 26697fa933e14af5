"""Verdicts on claims, from seeds whose answer is known."""

import numpy as np
import pytest

from mbdp.analysis.verdicts import judge

LOW, HIGH = [1.0, 2.0, 3.0, 2.0, 1.5], [11.0, 12.0, 13.0, 12.0, 11.5]


@pytest.mark.parametrize(("claimed", "word"), [("higher", "confirmed"), ("lower", "refuted")])
def test_a_clear_difference_decides_a_claim_by_its_direction(claimed, word):
    verdict = judge(HIGH, LOW, claimed)
    assert verdict.word == word
    assert verdict.effect.value == pytest.approx(10.0)
    assert verdict.effect.low is not None
    assert 8 < verdict.effect.low < 10
    assert verdict.probability.value == 1.0
    assert verdict.needed is None


def test_the_same_seeds_decide_nothing():
    verdict = judge(LOW, LOW, "higher")
    assert (verdict.word, verdict.effect.value, verdict.probability.value) == ("undecided", 0.0, 0.5)
    assert verdict.needed is None, "no number of seeds finds a difference of nothing"


def test_two_seeds_decide_nothing_however_far_apart():
    assert judge(HIGH[:2], LOW[:2], "higher").word == "undecided"


def test_an_undecided_claim_says_how_many_seeds_it_would_take():
    rng = np.random.default_rng(0)
    one, other = rng.normal(0.3, 1.0, 6), rng.normal(0.0, 1.0, 6)
    verdict = judge(one, other, "higher")
    assert verdict.word == "undecided"
    difference, variance = one.mean() - other.mean(), (one.var(ddof=1) + other.var(ddof=1)) / 2
    assert verdict.needed == np.ceil(2 * variance * (2.8016 / difference) ** 2)


def test_as_many_seeds_as_needed_mostly_decide():
    rng = np.random.default_rng(1)
    needed = 63  # of each, for a difference of half a standard deviation
    words = [judge(rng.normal(0.5, 1, needed), rng.normal(0, 1, needed), "higher", seed=i).word for i in range(60)]
    assert 0.6 < words.count("confirmed") / len(words) < 0.95
    assert "refuted" not in words
