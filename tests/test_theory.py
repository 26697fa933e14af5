"""The theory as it should read, and for each erratum the smallest example that contradicts what is printed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize, stats

from mbdp import theory
from mbdp.dropout import model_dropout, rollout_dropout

quick = settings(max_examples=60, deadline=None, derandomize=True)

GAMMA = 0.99
fractions = st.sampled_from([0.0, 0.2, 0.5, 0.9]) | st.floats(0, 0.99)
samples = arrays(float, st.integers(1, 20), elements=st.integers(-100, 100).map(float))
biases = arrays(float, st.integers(1, 12), elements=st.floats(0, 10))

# Returns whose gap V - V_alpha is as large as Lemma 3.2 allows at alpha = 0.2: reward 1 for ever in one case of
# five, reward -1 for ever in the others.
LOTTERY = np.array([1, -1, -1, -1, -1]) / (1 - GAMMA)


# CVaR and V_alpha


@quick
@given(samples, fractions)
def test_cvar_is_the_minimum_of_the_variational_formula(loss, level):
    variational = min(c + np.maximum(loss - c, 0).mean() / (1 - level) for c in loss)
    assert theory.cvar(loss, level) == pytest.approx(variational, abs=1e-6)


@quick
@given(samples, fractions)
def test_v_alpha_is_the_worst_perturbed_mean(returns, alpha):
    n = len(returns)
    worst = optimize.linprog(returns / n, A_eq=np.full((1, n), 1 / n), b_eq=[1], bounds=(0, 1 / (1 - alpha)))
    assert theory.v_alpha(returns, alpha) == pytest.approx(worst.fun, abs=1e-6)


@quick
@given(samples)
def test_v_alpha_at_zero_is_the_mean(returns):
    assert theory.v_alpha(returns, 0) == pytest.approx(returns.mean(), abs=1e-9)


@quick
@given(samples, fractions, fractions)
def test_v_alpha_falls_as_alpha_grows(returns, one, other):
    assert theory.v_alpha(returns, max(one, other)) <= theory.v_alpha(returns, min(one, other)) + 1e-6


def test_v_alpha_names_an_invalid_level():
    with pytest.raises(ValueError, match=r"1\.5"):
        theory.v_alpha([1.0, 2.0], 1.5)


# Erratum 1: Theorem 3.1


def test_theorem_3_1_printed_supremum_is_the_mean_of_the_dropped_samples():
    returns = normal_returns()
    dropped = returns[~rollout_dropout(returns, 0.2)]
    assert theory.printed_v_alpha(returns, 0.2) == pytest.approx(dropped.mean())


def test_theorem_3_1_kept_mean_of_n_100_30_is_89_5_and_the_printed_supremum_142_0():
    density = stats.norm.pdf(stats.norm.ppf(0.8))
    kept, dropped = 100 - 30 * density / 0.8, 100 + 30 * density / 0.2
    assert (round(kept, 1), round(dropped, 1)) == (89.5, 142.0)
    assert theory.v_alpha(normal_returns(), 0.2) == pytest.approx(kept, abs=0.01)
    assert theory.printed_v_alpha(normal_returns(), 0.2) == pytest.approx(dropped, abs=0.01)


def test_theorem_3_1_first_equality_fails_when_samples_tie_at_the_quantile():
    returns = np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    assert returns[rollout_dropout(returns, 0.2)].mean() == pytest.approx(0.8)
    assert theory.v_alpha(returns, 0.2) == pytest.approx(0.75)


def test_theorem_3_1_first_equality_fails_when_steps_are_dropped_instead_of_returns():
    assert escape_value_after_dropping_each_step(0.2) == 0
    assert escape_v_alpha_of_whole_returns(0.2) == pytest.approx(95.2, abs=0.1)


# Erratum 2: Lemma 3.2


@quick
@given(arrays(float, st.integers(1, 20), elements=st.floats(-1, 1)), fractions)
def test_lemma_3_2_corrected_bound_holds(mean_reward, alpha):
    returns = mean_reward / (1 - GAMMA)
    gap = returns.mean() - theory.v_alpha(returns, alpha)
    assert -1e-6 <= gap <= theory.eps_alpha(alpha, gamma=GAMMA, r_max=1, r_min=-1) + 1e-6


def test_lemma_3_2_corrected_bound_is_attained():
    gap = LOTTERY.mean() - theory.v_alpha(LOTTERY, 0.2)
    assert gap == pytest.approx(theory.eps_alpha(0.2, gamma=GAMMA, r_max=1, r_min=-1))


def test_lemma_3_2_gap_is_40_where_30_is_printed():
    assert LOTTERY.mean() - theory.v_alpha(LOTTERY, 0.2) == pytest.approx(40)
    assert theory.printed_eps_alpha(0.2, gamma=GAMMA, r_max=1) == pytest.approx(30)


@quick
@given(fractions)
def test_lemma_3_2_printed_bound_is_looser_but_true_for_rewards_that_are_never_negative(alpha):
    corrected = theory.eps_alpha(alpha, gamma=GAMMA, r_max=1, r_min=0)
    assert corrected <= theory.printed_eps_alpha(alpha, gamma=GAMMA, r_max=1)


def test_lemma_3_2_does_not_cover_dropping_each_step_gap_96_where_30_is_printed():
    gap = escape_value(0.2) - escape_value_after_dropping_each_step(0.2)
    assert gap == pytest.approx(96.2, abs=0.1)
    assert theory.eps_alpha(0.2, gamma=GAMMA, r_max=1, r_min=0) == pytest.approx(20)
    assert theory.printed_eps_alpha(0.2, gamma=GAMMA, r_max=1) == pytest.approx(30)


@pytest.mark.parametrize("alpha", [1e-5, 1e-3, 0.2, 0.9])
def test_lemma_3_2_bound_per_step_holds(alpha):
    gap = escape_value(alpha) - escape_value_after_dropping_each_step(alpha)
    assert gap <= theory.eps_alpha_per_step(alpha, gamma=GAMMA, r_max=1, r_min=0)


def test_lemma_3_2_bound_per_step_is_approached_by_small_alpha():
    bound = theory.eps_alpha_per_step(1e-5, gamma=GAMMA, r_max=1, r_min=0)
    assert escape_value(1e-5) - escape_value_after_dropping_each_step(1e-5) > 0.99 * bound


# Erratum 3: Theorem 3.3


def test_theorem_3_3_gap_of_identical_models_is_9_90_where_7_92_is_printed():
    bias, constants = np.full(10, 0.1), {"alpha": 0.0, "beta": 0.2, "gamma": GAMMA, "lipschitz": 1.0, "r_max": 0.0}
    assert drift_gap(bias=0.1, lipschitz=1.0) == pytest.approx(9.90)
    assert theory.printed_discrepancy_bound(bias, **constants) == pytest.approx(7.92)


def test_theorem_3_3_corrected_bound_is_attained_by_identical_models():
    bound = theory.discrepancy_bound(np.full(10, 0.1), alpha=0, beta=0.2, gamma=GAMMA, lipschitz=1, r_max=0, r_min=0)
    assert drift_gap(bias=0.1, lipschitz=1.0) == pytest.approx(bound)


@quick
@given(biases, fractions)
def test_theorem_3_3_kept_members_are_no_more_biased_than_all(bias, beta):
    assert bias[model_dropout(bias, beta)].mean() <= bias.mean() + 1e-9


@quick
@given(biases, fractions, fractions)
def test_theorem_3_3_corrected_bound_falls_as_beta_grows(bias, one, other):
    constants = {"alpha": 0.2, "gamma": GAMMA, "lipschitz": 1.0, "r_max": 1.0, "r_min": 0.0}
    strict = theory.discrepancy_bound(bias, beta=max(one, other), **constants)
    assert strict <= theory.discrepancy_bound(bias, beta=min(one, other), **constants) + 1e-9


def test_theorem_3_3_ignores_members_whose_bias_is_not_finite():
    constants = {"alpha": 0.0, "beta": 0.0, "gamma": 0.5, "lipschitz": 1.0, "r_max": 1.0, "r_min": 0.0}
    assert theory.discrepancy_bound([0.1, np.nan, 0.3], **constants) == pytest.approx(0.2)


# Erratum 4: Proposition 3.4


def test_proposition_3_4_printed_bound_of_a_perfect_model_is_24_and_not_eps_alpha_30():
    bound = theory.printed_discrepancy_bound([0.0], alpha=0.2, beta=0.2, gamma=GAMMA, lipschitz=1, r_max=1)
    assert bound == pytest.approx(24)
    assert theory.printed_eps_alpha(0.2, gamma=GAMMA, r_max=1) == pytest.approx(30)


def test_proposition_3_4_corrected_bound_of_a_perfect_model_is_eps_alpha():
    bound = theory.discrepancy_bound([0.0], alpha=0.2, beta=0.2, gamma=GAMMA, lipschitz=1, r_max=1, r_min=-1)
    assert bound == theory.eps_alpha(0.2, gamma=GAMMA, r_max=1, r_min=-1)


def test_proposition_3_4_as_printed_promises_34_to_a_policy_that_stays_the_same():
    eps = theory.printed_eps_alpha(0.2, gamma=GAMMA, r_max=1)
    bound = theory.printed_discrepancy_bound([0.0], alpha=0.2, beta=0.2, gamma=GAMMA, lipschitz=1, r_max=1)
    assert theory.printed_improvement(residual_of_the_lottery(bound), eps) == pytest.approx(34)


def test_proposition_3_4_with_one_eps_alpha_still_promises_40_when_the_bounds_are_corrected():
    eps = theory.eps_alpha(0.2, gamma=GAMMA, r_max=1, r_min=-1)
    assert theory.printed_improvement(residual_of_the_lottery(eps), eps) == pytest.approx(40)


def test_proposition_3_4_corrected_promises_nothing_to_a_policy_that_stays_the_same():
    eps = theory.eps_alpha(0.2, gamma=GAMMA, r_max=1, r_min=-1)
    assert theory.improvement(residual_of_the_lottery(eps), eps) == pytest.approx(0)


def test_proposition_3_4_residual_grows_with_the_bound_and_not_with_the_policy():
    value, imagined_value = 50.0, 40.0
    tight, loose = (theory.update_residual(value, imagined_value, bound) for bound in (10.0, 1000.0))
    assert (tight, loose) == (20, 1010)


# Examples that several tests share


def normal_returns() -> np.ndarray:
    """N(100, 30), as 100,000 equally likely quantiles, so that nothing is random."""
    return stats.norm(100, 30).ppf((np.arange(100_000) + 0.5) / 100_000)


def escape_value(probability: float) -> float:
    """V of a state from which each step escapes with this probability to reward 1 for ever; until then reward is 0."""
    # V = p / (1 - gamma) + (1 - p) gamma V
    return probability / (1 - GAMMA) / (1 - (1 - probability) * GAMMA)


def escape_value_after_dropping_each_step(alpha: float) -> float:
    """The same where the fraction `alpha` of samples escapes, and each step drops that fraction as Algorithm 1 does."""
    reward = (np.arange(100_000) < alpha * 100_000).astype(float)
    return escape_value(reward[rollout_dropout(reward, alpha)].mean())


def escape_v_alpha_of_whole_returns(alpha: float) -> float:
    """The same where whole returns are dropped: those that escape at once, and no other."""
    # V = alpha / (1 - gamma) + (1 - alpha) V_alpha
    return (escape_value(alpha) - alpha / (1 - GAMMA)) / (1 - alpha)


def drift_gap(*, bias: float, lipschitz: float) -> float:
    """V in a model that moves by `bias` a step minus V in a world that stands still, where reward grows with position.

    With reward (1 - gamma) K s the value is Lipschitz with constant K.
    """
    steps = np.arange(5000)
    return float(np.sum(GAMMA**steps * (1 - GAMMA) * lipschitz * bias * steps))


def residual_of_the_lottery(bound: float) -> float:
    """The update residual of a policy whose returns are the lottery's, in a perfect model."""
    return theory.update_residual(LOTTERY.mean(), theory.v_alpha(LOTTERY, 0.2), bound)
