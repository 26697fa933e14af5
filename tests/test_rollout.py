from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdp.agents.sac import create as create_agent
from mbdp.models import ensemble
from mbdp.models.ensemble import Ensemble, Member, Scaling
from mbdp.plans import Plan, Shape
from mbdp.replay import unpack
from mbdp.rollout import Imagined, rollout, surviving_rows
from mbdp.types import Spec, Transition
from tests.conftest import compilations

SPEC = Spec(2, 1)
ACTOR = create_agent(SPEC, Shape(width=16, depth=2), key=jax.random.key(0)).actor
STARTS = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)


def never(observation, action, following):
    return jnp.zeros(following.shape[:-1], bool)


def always(observation, action, following):
    return jnp.ones(following.shape[:-1], bool)


PLAN = Plan(group="state", alpha=0.4, samples=5, member_per="row", termination=never)


def member_i_always_pays_i(count: int) -> Ensemble:
    """An ensemble with almost no noise, in which the reward tells which member made the prediction."""
    model = ensemble.create(SPEC, members=count, width=16, depth=2, key=jax.random.key(1))
    network = model.members.network
    last = jnp.zeros((count, 7)).at[:, 2].set(jnp.arange(count)).at[:, 3:6].set(-100.0)
    zeros = jax.tree.map(jnp.zeros_like, network)
    constant = eqx.tree_at(lambda net: net.biases[-1], zeros, last)
    members = Member(constant, jnp.full((count, 3), -30.0), jnp.full((count, 3), -29.0))
    one = jnp.ones(3)
    return Ensemble(members, Scaling(jnp.zeros(3), one, jnp.zeros(3), one, -jnp.inf * one, jnp.inf * one))


def imagine(plan: Plan = PLAN, *, model: Ensemble | None = None, horizon: int = 3, seed: int = 0) -> Imagined:
    model = member_i_always_pays_i(4) if model is None else model
    return rollout(model, ACTOR, STARTS, horizon=horizon, plan=plan, key=jax.random.key(seed))


def transitions(imagined: Imagined) -> Transition:
    return unpack(imagined.rows, SPEC)


def who(imagined: Imagined) -> np.ndarray:
    """Which member made each prediction."""
    return np.rint(transitions(imagined).reward).astype(int)


def test_layout_is_depth_state_sample():
    imagined = imagine()
    assert imagined.rows.shape == (3, 12, 5, SPEC.row_width)
    assert imagined.valid.shape == (3, 12, 5)


def test_all_samples_of_a_state_begin_there():
    first = transitions(imagine()).observation[0]
    np.testing.assert_array_equal(first, np.broadcast_to(STARTS[:, None], first.shape))


@pytest.mark.parametrize("group", ["state", "members"])
def test_an_action_is_the_actors_for_the_very_observation_that_it_is_taken_in(group):
    sure = eqx.tree_at(lambda a: (a.weights[-1], a.biases[-1]), ACTOR, replace_fn=lambda x: x.at[..., 1].set(-20.0))
    model = ensemble.create(SPEC, members=3, width=16, depth=2, key=jax.random.key(1))
    got = transitions(rollout(model, sure, STARTS, horizon=3, plan=PLAN._replace(group=group), key=jax.random.key(0)))
    if group == "state":
        assert len(np.unique(got.observation[1, 0], axis=0)) == PLAN.samples  # they have gone different ways
    np.testing.assert_allclose(got.action, np.tanh(sure(got.observation)[..., :1]), atol=1e-5)


def test_each_step_begins_where_the_last_one_ended():
    steps = transitions(imagine())
    np.testing.assert_array_equal(steps.observation[1:], steps.next_observation[:-1])


@pytest.mark.parametrize("group", ["state", "members"])
@pytest.mark.parametrize("member_per", ["row", "step"])
def test_a_dropped_member_is_never_sampled(group, member_per):
    plan = PLAN._replace(group=group, member_per=member_per)
    kept = MODEL[np.array([2, 0])]
    drawn = np.concatenate([who(imagine(plan, model=kept, seed=seed)) for seed in range(5)])
    assert set(drawn.ravel()) == {0, 2}


MODEL = member_i_always_pays_i(4)


def test_a_member_per_row_gives_each_member_an_equal_share_of_every_step():
    for step in who(imagine()):
        assert np.bincount(step.ravel()).tolist() == [15, 15, 15, 15]


def test_a_member_per_row_is_drawn_anew_at_every_step():
    chosen = who(imagine())
    assert (chosen[0] != chosen[1]).any()


def test_a_member_per_step_is_the_same_for_all_rows():
    plan = PLAN._replace(member_per="step")
    chosen = np.concatenate([who(imagine(plan, seed=seed)) for seed in range(4)])
    assert all(len(np.unique(step)) == 1 for step in chosen)
    assert len(np.unique(chosen)) > 1


def test_rows_that_members_cannot_share_equally_are_all_predicted():
    chosen = who(imagine(model=MODEL[np.array([0, 1, 2])], horizon=1))  # 60 rows, 3 members
    alone = PLAN._replace(samples=1, alpha=0.0)
    seven = rollout(MODEL[np.array([0, 1, 2])], ACTOR, STARTS[:7], horizon=1, plan=alone, key=jax.random.key(0))
    assert np.bincount(chosen.ravel()).tolist() == [20, 20, 20]
    assert sorted(np.bincount(who(seven).ravel()).tolist())[0] >= 1
    np.testing.assert_array_equal(unpack(seven.rows, SPEC).observation[0, :, 0], STARTS[:7])


def test_a_sample_after_the_end_of_an_episode_is_not_valid():
    imagined = imagine(PLAN._replace(termination=always))
    assert imagined.valid[0].all()
    assert not imagined.valid[1:].any()
    assert len(surviving_rows(imagined, SPEC, PLAN._replace(alpha=0.0), discount=0.9)) == 60


def test_without_a_known_rule_termination_is_drawn_with_the_learned_probability():
    imagined = imagine(PLAN._replace(termination=None), horizon=1)  # the logit is 0, so one half
    assert 0.25 < transitions(imagined).terminated.mean() < 0.75


def test_grouped_by_state_the_highest_rewards_among_siblings_are_dropped():
    imagined = imagine()
    kept = surviving_rows(imagined, SPEC, PLAN, discount=0.9)
    rewards = np.sort(transitions(imagined).reward, axis=-1)
    limit = rewards[..., 2:3]  # alpha 0.4 of 5 keeps 3
    assert len(kept) == (rewards <= limit).sum()
    np.testing.assert_allclose(unpack(kept, SPEC).reward.sum(), rewards[rewards <= limit].sum(), rtol=1e-5)


def test_grouped_by_members_the_highest_predictions_of_one_action_are_dropped():
    plan = PLAN._replace(group="members", alpha=0.5)
    imagined = imagine(plan)
    assert imagined.rows.shape == (3, 12, 4, SPEC.row_width)
    kept = surviving_rows(imagined, SPEC, plan, discount=0.9)
    assert set(np.rint(unpack(kept, SPEC).reward).astype(int)) == {0, 1}
    assert len(kept) == 3 * 12 * 2


def test_grouped_by_members_all_of_them_judge_the_same_action():
    steps = transitions(imagine(PLAN._replace(group="members")))
    assert (steps.action == steps.action[:, :, :1]).all()


def test_grouped_by_members_a_rollout_goes_on_from_a_survivor():
    plan = PLAN._replace(group="members", alpha=0.5)
    model = member_i_always_pays_i(4)
    moves = model.members.network.biases[-1].at[:, 0].set(jnp.arange(4) + 1.0)  # member i moves by i + 1
    model = eqx.tree_at(lambda m: m.members.network.biases[-1], model, moves)
    steps = transitions(imagine(plan, model=model))
    moved = np.rint(steps.observation[1:, :, 0, 0] - steps.observation[:-1, :, 0, 0]).astype(int)
    assert set(moved.ravel()) == {1, 2}


def test_grouped_by_batch_one_step_of_all_rollouts_is_compared():
    plan = PLAN._replace(group="batch", alpha=0.5)
    kept = surviving_rows(imagine(plan), SPEC, plan, discount=0.9)
    assert set(np.rint(unpack(kept, SPEC).reward).astype(int)) == {0, 1}


def test_grouped_by_trajectory_whole_rollouts_survive_or_do_not():
    plan = PLAN._replace(group="trajectory")
    imagined = imagine(plan)
    reward = np.random.default_rng(0).normal(size=imagined.valid.shape)  # no two returns are close to each other
    imagined.rows[..., SPEC.observation_size + SPEC.action_size] = reward
    returns = np.tensordot(0.9 ** np.arange(3), reward, axes=1)
    survive = returns <= np.sort(returns, axis=-1)[:, 2:3] + 1e-6
    kept = surviving_rows(imagined, SPEC, plan, discount=0.9)
    expected = imagined.rows[:, survive].reshape(-1, SPEC.row_width)
    np.testing.assert_array_equal(np.sort(kept, axis=0), np.sort(expected, axis=0))


@pytest.mark.parametrize("group", ["state", "members", "batch", "trajectory"])
def test_alpha_zero_keeps_every_valid_sample(group):
    plan = PLAN._replace(group=group, alpha=0.0)
    imagined = imagine(plan)
    assert len(surviving_rows(imagined, SPEC, plan, discount=0.9)) == imagined.valid.sum()


def test_a_reward_that_is_not_finite_never_reaches_d_model():
    imagined = imagine()
    rows = np.array(imagined.rows)
    rows[0, 0, 0, 3] = np.nan
    kept = surviving_rows(imagined._replace(rows=rows), SPEC, PLAN._replace(alpha=0.0), discount=0.9)
    assert len(kept) == imagined.valid.sum() - 1
    assert np.isfinite(kept).all()


def test_predictions_out_of_the_datas_range_are_cut_and_marked():
    model = member_i_always_pays_i(4)
    narrow = eqx.tree_at(lambda m: m.scaling.high, model, jnp.array([jnp.inf, jnp.inf, 2.5]))
    imagined = imagine(model=narrow)
    reward = np.asarray(transitions(imagined).reward)
    assert reward.max() == 2.5
    np.testing.assert_array_equal(imagined.bounded, reward == 2.5)


def test_a_growing_horizon_compiles_nothing():
    imagine(horizon=1)
    with compilations() as seen:
        imagine(horizon=4)
    assert not seen


def in_blocks_of_few_rows(**changes: Any) -> Imagined:
    return imagine(PLAN._replace(block=25, **changes))  # five starts of the twelve


def test_blocks_leave_no_start_out():
    first = transitions(in_blocks_of_few_rows()).observation[0]
    np.testing.assert_array_equal(first, np.broadcast_to(STARTS[:, None], first.shape))


def test_one_member_for_a_step_is_one_for_all_blocks():
    assert all(len(np.unique(step)) == 1 for step in who(in_blocks_of_few_rows(member_per="step")))


def test_blocks_have_noise_of_their_own():
    actions = transitions(in_blocks_of_few_rows()).action[0]
    assert len(np.unique(actions)) == actions.size


GROUPS = ("state", "members", "batch", "trajectory")


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("members", "alpha"), [(6, 0.1), (6, 0.2), (4, 0.1), (8, 0.2), (4, 0.4), (3, 0.5), (8, 0.3)])
def test_the_share_of_imagined_samples_that_is_dropped_is_alpha(group, members, alpha):
    plan = PLAN._replace(group=group, alpha=alpha)
    model = ensemble.create(SPEC, members=members, width=16, depth=2, key=jax.random.key(1))
    starts = np.random.default_rng(0).normal(size=(6_000, 2)).astype(np.float32)
    batch = rollout(model, ACTOR, starts, horizon=1, plan=plan, key=jax.random.key(3))
    kept = len(surviving_rows(batch, SPEC, plan, discount=0.99)) / batch.valid.sum()
    assert abs(1 - kept - alpha) < 0.01


@pytest.mark.parametrize("column", range(SPEC.row_width))
@pytest.mark.parametrize("group", [*GROUPS, "returns"])
def test_a_row_with_a_number_that_is_not_finite_is_left_out(group, column):
    plan = PLAN._replace(group=group, alpha=0.0)
    rows = np.ones((2, 3, 4, SPEC.row_width), np.float32)
    rows[1, 2, 3, column] = np.nan
    batch = Imagined(rows, np.ones((2, 3, 4), bool), np.zeros((2, 3, 4), bool), np.zeros((2, 3), np.float32))
    kept = surviving_rows(batch, SPEC, plan, discount=0.99)
    assert len(kept) == 23
    assert np.isfinite(kept).all()


def test_a_reward_of_nan_after_the_end_leaves_the_trajectory_as_it_is():
    plan = PLAN._replace(group="trajectory", alpha=0.5)
    rows = np.zeros((2, 1, 4, SPEC.row_width), np.float32)
    rows[0, 0, :, SPEC.observation_size + SPEC.action_size] = [1, 2, 3, 4]
    rows[1, 0, 0] = np.nan
    valid = np.ones((2, 1, 4), bool)
    valid[1] = False
    batch = Imagined(rows, valid, ~valid, np.zeros((2, 1), np.float32))
    kept = surviving_rows(batch, SPEC, plan, discount=0.99)
    assert sorted(kept[:, SPEC.observation_size + SPEC.action_size]) == [1, 2]
