"""The double dropout: what must hold for every array, and the few numbers that are known by hand."""

import re
from fractions import Fraction
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mbdp.dropout import model_dropout, rollout_dropout

quick = settings(max_examples=60, deadline=None, derandomize=True)

NOT_FRACTIONS = [-0.1, 1, 1.5, float("nan"), float("inf"), None, "0.2", True, False, 0.2j]
NOT_FINITE = [np.nan, np.inf, -np.inf]
JAX_SHAPE = (3, 7)  # one shape, so that JAX compiles once

fractions = st.sampled_from([0.0, 0.2, 2 / 7, 0.5, 0.9]) | st.floats(0, 1, exclude_max=True)
# A few small integers give ties. Subnormal numbers are left out because XLA treats them as zero.
finite = st.sampled_from([-1.0, 0.0, 1.0]) | st.floats(
    width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False
)
numbers = finite | st.sampled_from(NOT_FINITE)
groups = arrays(np.float32, st.integers(2, 12), elements=numbers)
distinct = arrays(np.float32, st.integers(2, 12), elements=finite, unique=True)
rewards = arrays(np.float32, array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=6), elements=numbers)
jax_rewards = arrays(np.float32, JAX_SHAPE, elements=numbers)


def number_kept(count: int, dropped: float) -> int:
    return max(1, round((1 - dropped) * count))


# Model dropout


@quick
@given(distinct)
def test_model_dropout_at_zero_keeps_every_member(bias):
    assert sorted(model_dropout(bias, 0)) == list(range(len(bias)))


@quick
@given(groups, fractions)
def test_model_dropout_puts_the_least_biased_first(bias, beta):
    kept = bias[model_dropout(bias, beta)]
    assert np.all(kept[:-1] <= kept[1:])


@quick
@given(groups, fractions)
def test_model_dropout_keeps_no_member_that_is_worse_than_a_dropped_one(bias, beta):
    kept = model_dropout(bias, beta)
    dropped = np.delete(bias, kept)
    assume(len(kept) > 0 and np.isfinite(dropped).any())
    assert bias[kept].max() <= dropped[np.isfinite(dropped)].min()


@quick
@given(groups, fractions, fractions)
def test_model_dropout_is_nested_in_beta(bias, one, other):
    few, many = model_dropout(bias, max(one, other)), model_dropout(bias, min(one, other))
    assert set(few) <= set(many)


@quick
@given(distinct, fractions, st.randoms(use_true_random=False))
def test_model_dropout_of_permuted_members_keeps_the_same_members(bias, beta, random):
    order = np.array(random.sample(range(len(bias)), len(bias)))
    assert set(order[model_dropout(bias[order], beta)]) == set(model_dropout(bias, beta))


@quick
@given(distinct, fractions)
def test_model_dropout_keeps_the_rounded_share_and_at_least_one(bias, beta):
    assert len(model_dropout(bias, beta)) == number_kept(len(bias), beta)


@quick
@given(groups, fractions)
def test_model_dropout_keeps_no_member_without_a_finite_bias(bias, beta):
    assert np.isfinite(bias[model_dropout(bias, beta)]).all()


@quick
@given(groups, fractions)
def test_model_dropout_does_not_count_members_without_a_finite_bias(bias, beta):
    healthy = np.flatnonzero(np.isfinite(bias))
    assert list(model_dropout(bias, beta)) == list(healthy[model_dropout(bias[healthy], beta)])


def test_model_dropout_ranks_equal_biases_by_position():
    assert list(model_dropout(np.array([1.0, 0.0, 1.0, 0.0, 1.0]), 0.4)) == [1, 3, 0]


def test_model_dropout_of_no_finite_bias_keeps_nothing():
    assert len(model_dropout(np.array([np.nan, np.inf]), 0.2)) == 0


@pytest.mark.parametrize(("members", "beta", "kept"), [(10, 0.9, 1), (7, 2 / 7, 5), (10, 0.2, 8), (10, 0.99, 1)])
def test_model_dropout_is_not_misled_by_rounding_error(members, beta, kept):
    assert list(model_dropout(np.arange(members) / members, beta)) == list(range(kept))


def test_model_dropout_accepts_whole_numbers():
    assert list(model_dropout(np.array([3, 1, 2]), 1 / 3)) == [1, 2]


def test_model_dropout_refuses_a_bias_that_is_not_one_number_per_member():
    with pytest.raises(ValueError, match=re.escape("(2, 3)")):
        model_dropout(np.zeros((2, 3)), 0.2)


@pytest.mark.parametrize("beta", NOT_FRACTIONS)
def test_model_dropout_names_an_invalid_beta(beta):
    with pytest.raises(ValueError, match=rf"beta.*{re.escape(repr(beta))}"):
        model_dropout(np.zeros(3), beta)


@quick
@given(arrays(np.float32, JAX_SHAPE[1], elements=numbers), fractions)
def test_model_dropout_is_the_same_in_jax_and_numpy(bias, beta):
    kept = model_dropout(jnp.asarray(bias), beta)
    assert isinstance(kept, jax.Array)
    np.testing.assert_array_equal(kept, model_dropout(bias, beta))


# Rollout dropout


@quick
@given(rewards)
def test_rollout_dropout_at_zero_keeps_every_finite_sample(reward):
    np.testing.assert_array_equal(rollout_dropout(reward, 0), np.isfinite(reward))


@quick
@given(rewards, fractions, fractions)
def test_rollout_dropout_is_nested_in_alpha(reward, one, other):
    few, many = rollout_dropout(reward, max(one, other)), rollout_dropout(reward, min(one, other))
    assert np.all(many[few])


@quick
@given(groups, fractions, st.randoms(use_true_random=False))
def test_rollout_dropout_of_permuted_samples_is_the_permuted_mask(reward, alpha, random):
    order = np.array(random.sample(range(len(reward)), len(reward)))
    np.testing.assert_array_equal(rollout_dropout(reward[order], alpha), rollout_dropout(reward, alpha)[order])


@quick
@given(distinct, fractions)
def test_rollout_dropout_keeps_the_rounded_share_of_distinct_rewards(reward, alpha):
    assert rollout_dropout(reward, alpha).sum() == number_kept(len(reward), alpha)


@quick
@given(groups, fractions)
def test_rollout_dropout_never_keeps_fewer_than_the_rounded_share(reward, alpha):
    count = np.isfinite(reward).sum()
    assume(count > 0)
    assert rollout_dropout(reward, alpha).sum() >= number_kept(count, alpha)


@quick
@given(rewards, fractions)
def test_rollout_dropout_keeps_one_sample_of_every_group_that_has_one(reward, alpha):
    np.testing.assert_array_equal(rollout_dropout(reward, alpha).any(axis=-1), np.isfinite(reward).any(axis=-1))


@quick
@given(groups, fractions)
def test_rollout_dropout_keeps_no_sample_that_is_better_than_a_dropped_one(reward, alpha):
    mask = rollout_dropout(reward, alpha)
    dropped = reward[np.isfinite(reward) & ~mask]
    assume(len(dropped) > 0)
    assert reward[mask].max() < dropped.min()


@quick
@given(rewards, fractions)
def test_rollout_dropout_keeps_no_sample_without_a_finite_reward(reward, alpha):
    assert np.isfinite(reward[rollout_dropout(reward, alpha)]).all()


@quick
@given(groups, fractions)
def test_rollout_dropout_leaves_rewards_that_are_not_finite_out_of_the_quantile(reward, alpha):
    healthy = np.isfinite(reward)
    assume(healthy.sum() > 1)
    np.testing.assert_array_equal(rollout_dropout(reward, alpha)[healthy], rollout_dropout(reward[healthy], alpha))


@quick
@given(groups, fractions, st.data())
def test_rollout_dropout_keeps_no_sample_that_is_not_valid(reward, alpha, data):
    valid = data.draw(arrays(bool, reward.shape))
    assert valid[rollout_dropout(reward, alpha, valid=valid)].all()


@quick
@given(groups, fractions, st.data())
def test_rollout_dropout_does_not_look_at_samples_that_are_not_valid(reward, alpha, data):
    valid = data.draw(arrays(bool, reward.shape))
    other = np.where(valid, reward, data.draw(arrays(np.float32, reward.shape, elements=numbers)))
    mask = rollout_dropout(reward, alpha, valid=valid)
    np.testing.assert_array_equal(mask, rollout_dropout(other, alpha, valid=valid))


def test_rollout_dropout_reads_a_valid_of_zeros_and_ones_as_booleans():
    mask = rollout_dropout(np.array([1.0, 2.0, 3.0, 4.0]), 0.5, valid=np.array([0.0, 1.0, 1.0, 0.0]))
    assert mask.dtype == bool
    assert list(mask) == [False, True, False, False]


@quick
@given(rewards, fractions, st.data())
def test_rollout_dropout_treats_every_axis_alike(reward, alpha, data):
    axis = data.draw(st.integers(-reward.ndim, reward.ndim - 1))
    one_by_one = np.apply_along_axis(lambda group: rollout_dropout(group, alpha), axis, reward)
    np.testing.assert_array_equal(rollout_dropout(reward, alpha, axis=axis), one_by_one)


def test_rollout_dropout_keeps_all_samples_that_tie_with_the_last_one_kept():
    assert list(rollout_dropout(np.array([2.0, 1.0, 2.0, 3.0, 2.0]), 0.6)) == [True, True, True, False, True]


def test_rollout_dropout_accepts_whole_numbers():
    assert list(rollout_dropout(np.array([3, 1, 2]), 1 / 3)) == [False, True, True]


@pytest.mark.parametrize("shape", [(4, 1), (1,)])
def test_rollout_dropout_refuses_groups_of_one(shape):
    with pytest.raises(ValueError, match=r"one sample.*alpha=0\.2"):
        rollout_dropout(np.zeros(shape), 0.2)


def test_rollout_dropout_at_zero_accepts_groups_of_one():
    assert rollout_dropout(np.zeros((4, 1)), 0.0).all()


@pytest.mark.parametrize("alpha", NOT_FRACTIONS)
def test_rollout_dropout_names_an_invalid_alpha(alpha):
    with pytest.raises(ValueError, match=rf"alpha.*{re.escape(repr(alpha))}"):
        rollout_dropout(np.zeros(3), alpha)


@pytest.mark.parametrize("alpha", [Fraction(2, 5), np.float32(0.4), np.float64(0.4)])
def test_rollout_dropout_accepts_every_real_number(alpha):
    assert rollout_dropout(np.arange(5.0), alpha).sum() == 3


@quick
@given(jax_rewards, fractions, st.sampled_from([0, 1]))
def test_rollout_dropout_is_the_same_in_jax_and_numpy(reward, alpha, axis):
    mask = rollout_dropout(jnp.asarray(reward), alpha, axis=axis)
    assert isinstance(mask, jax.Array)
    np.testing.assert_array_equal(mask, rollout_dropout(reward, alpha, axis=axis))


@quick
@given(jax_rewards, arrays(bool, JAX_SHAPE), st.sampled_from([0.0, 0.2, 0.9]))
def test_rollout_dropout_is_the_same_inside_jit(reward, valid, alpha):
    np.testing.assert_array_equal(jitted(alpha)(reward, valid), rollout_dropout(reward, alpha, valid=valid))


@cache
def jitted(alpha: float) -> Any:
    return jax.jit(lambda reward, valid: rollout_dropout(reward, alpha, valid=valid))


# Theorem 3.1, first equality


@quick
@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=20, unique=True), st.data())
def test_mean_of_the_kept_returns_is_minus_the_cvar_of_the_losses(returns, data):
    returns = np.array(returns, float)
    alpha = data.draw(st.integers(0, len(returns) - 1)) / len(returns)  # so that (1 - alpha) n is whole
    kept = returns[rollout_dropout(returns, alpha)]
    assert kept.mean() == pytest.approx(-variational_cvar(-returns, alpha), abs=1e-6)


def variational_cvar(loss: np.ndarray, level: float) -> float:
    """min over c of c + E[max(loss - c, 0)] / (1 - level), after Rockafellar and Uryasev; a minimum is at a sample."""
    return min(c + np.maximum(loss - c, 0).mean() / (1 - level) for c in loss)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 10])
@pytest.mark.parametrize("alpha", [0.09, 0.1, 0.2, 0.3, 0.4, 0.5])
def test_with_drawn_rounding_the_share_that_is_dropped_is_alpha(size, alpha):
    rng = np.random.default_rng(0)
    mask = rollout_dropout(rng.normal(size=(40_000, size)), alpha, rounding=rng.random(40_000))
    assert abs((1 - mask.mean()) - alpha) < 0.01


@quick
@given(distinct, fractions)
def test_rounding_of_a_half_is_rounding_to_the_nearest_but_for_ties(reward, alpha):
    assume(abs((1 - alpha) * len(reward) % 1 - 0.5) > 1e-6)
    kept = rollout_dropout(reward, alpha, rounding=np.asarray(0.5))
    np.testing.assert_array_equal(kept, rollout_dropout(reward, alpha))


@pytest.mark.parametrize("axis", [(-2, -1), (0, 1), (0, 2), (1,), (2, 0, 1)])
def test_a_group_may_extend_over_several_axes(axis):
    reward = np.random.default_rng(0).normal(size=(4, 3, 5))
    mask = rollout_dropout(reward, 0.4, axis=axis)
    rest = tuple(i for i in range(3) if i not in [one % 3 for one in axis])
    flat, kept = (np.transpose(x, (*rest, *axis)).reshape(*(reward.shape[i] for i in rest), -1) for x in (reward, mask))
    np.testing.assert_array_equal(kept, rollout_dropout(flat, 0.4))


@pytest.mark.parametrize("axis", [(), (0, 0), (0, -3)])
def test_several_axes_are_named_once_each(axis):
    with pytest.raises(ValueError, match="axis must name at least one axis, and each once"):
        rollout_dropout(np.ones((2, 3, 4)), 0.2, axis=axis)
