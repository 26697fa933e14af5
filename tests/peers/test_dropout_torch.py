"""The double dropout on torch tensors: the same kind out as in, and the same answer as on NumPy arrays."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mbdp.dropout import model_dropout, rollout_dropout

quick = settings(max_examples=60, deadline=None, derandomize=True)

fractions = st.sampled_from([0.0, 0.2, 2 / 7, 0.5, 0.9]) | st.floats(0, 1, exclude_max=True)
# A few numbers that come back often, so that there are ties and rewards that are not finite.
numbers = st.sampled_from([-1.0, 0.0, 1.0, np.nan, np.inf, -np.inf]) | st.floats(-1e3, 1e3, width=32)
dtypes = st.sampled_from([np.float32, np.float64])
biases = dtypes.flatmap(lambda dtype: arrays(dtype, st.integers(1, 12), elements=numbers))
rewards = dtypes.flatmap(
    lambda dtype: arrays(dtype, array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=6), elements=numbers)
)


@quick
@given(biases, fractions)
def test_model_dropout_keeps_the_same_members_as_in_numpy(bias, beta):
    kept = model_dropout(torch.from_numpy(bias), beta)
    np.testing.assert_array_equal(kept.numpy(), model_dropout(bias, beta))


@quick
@given(rewards, fractions, st.data())
def test_rollout_dropout_gives_the_same_mask_as_in_numpy_on_every_axis(reward, alpha, data):
    axis = data.draw(st.integers(-reward.ndim, reward.ndim - 1))
    mask = rollout_dropout(torch.from_numpy(reward), alpha, axis=axis)
    np.testing.assert_array_equal(mask.numpy(), rollout_dropout(reward, alpha, axis=axis))


@quick
@given(rewards, fractions, st.data())
def test_rollout_dropout_respects_valid_as_in_numpy(reward, alpha, data):
    valid = data.draw(arrays(bool, reward.shape))
    mask = rollout_dropout(torch.from_numpy(reward), alpha, valid=torch.from_numpy(valid))
    np.testing.assert_array_equal(mask.numpy(), rollout_dropout(reward, alpha, valid=valid))


def test_rollout_dropout_keeps_all_samples_that_tie_with_the_last_one_kept():
    mask = rollout_dropout(torch.tensor([2.0, 1.0, 2.0, 3.0, 2.0]), 0.6)
    assert mask.tolist() == [True, True, True, False, True]


def test_kept_members_index_a_tensor():
    bias = torch.tensor([0.3, 0.1, float("nan"), 0.2])
    assert bias[model_dropout(bias, 1 / 3)].tolist() == bias[[1, 3]].tolist()


def test_mask_is_a_boolean_tensor():
    assert rollout_dropout(torch.arange(5.0), 0.2).dtype == torch.bool


def test_tensors_that_are_being_differentiated_are_accepted():
    reward = torch.arange(5.0, requires_grad=True)
    assert rollout_dropout(reward, 0.2).tolist() == [True, True, True, True, False]


# The meta device is on every machine: its tensors have a device and a shape but no values.
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_mask_stays_on_the_device_of_the_rewards(device):
    assert rollout_dropout(torch.zeros((3, 5), device=device), 0.2).device == torch.device(device)


def test_kept_members_stay_on_the_device_of_the_bias():
    assert model_dropout(torch.zeros(5), 0.2).device == torch.device("cpu")
