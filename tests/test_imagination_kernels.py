"""Steps of imagined rollouts by the kernels for a processor, beside JAX's answer to the same question."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdp import rollout_on_cpu
from mbdp.agents import sac
from mbdp.kernels import imagination
from mbdp.models.ensemble import Ensemble, Normal, predict, sample
from mbdp.models.fit import score, score_in_jax
from mbdp.replay import unpack
from mbdp.rollout import Plan, rollout_block_in_jax
from tests.test_fit_kernels import MEMBERS, SPEC, model, rows

ACTOR = sac.create(
    SPEC, width=20, depth=2, layer_norm=False, learning_rate=1e-3, temperature=1.0, key=jax.random.key(0)
).actor
COUNT = 700  # rows, of which each member has a share that is no whole number of blocks


@pytest.mark.parametrize("every", [1, 7])
def test_actions_are_those_of_jax(every):
    own, rng = rows()[:COUNT], np.random.default_rng(0)
    own[:, : SPEC.observation_size] = np.repeat(own[::every, : SPEC.observation_size], every, axis=0)
    noise = rng.normal(size=(COUNT, SPEC.action_size)).astype(np.float32)
    networks = rollout_on_cpu.Imagination(model(), ACTOR, SPEC)
    wanted, _ = sac.squash(ACTOR(unpack(own, SPEC).observation), noise)
    imagination.act(own, every, noise, networks.actor, networks.settings, imagination.room(networks.settings))
    np.testing.assert_allclose(unpack(own, SPEC).action, wanted, atol=1e-5)


def predicted_by_both(one: Ensemble, limits: np.ndarray):
    """What the kernel says of all rows, and what JAX does: next observation, reward, bounded, logit."""
    own, rng = rows()[:COUNT], np.random.default_rng(0)
    order, noise = rng.permutation(COUNT), rng.normal(size=(COUNT, SPEC.observation_size + 1)).astype(np.float32)
    who = np.empty(COUNT, int)
    who[order] = np.searchsorted(limits, np.arange(COUNT), side="right") - 1
    given = unpack(own.copy(), SPEC)
    normals = [
        predict(jax.tree.map(lambda x, i=i: x[i], one.members), one.scaling, given.observation, given.action)
        for i in range(MEMBERS)
    ]
    normal = Normal(*(jnp.stack(x)[who, np.arange(COUNT)] for x in zip(*normals, strict=True)))
    wanted = (*sample(normal, one.scaling, given.observation, noise=jnp.asarray(noise)), normal.terminated_logit)
    networks = rollout_on_cpu.Imagination(one, ACTOR, SPEC)
    bounded, logits = np.empty(COUNT, bool), np.empty(COUNT, np.float32)
    own[:, SPEC.observation_size + SPEC.action_size :] = np.nan
    imagination.predict(
        own,
        order,
        limits,
        noise,
        networks.members,
        networks.bounds,
        networks.scales,
        bounded,
        logits,
        networks.settings,
        imagination.room(networks.settings),
    )
    after = unpack(own, SPEC)
    return (after.next_observation, after.reward, bounded, logits), wanted


@pytest.mark.parametrize("limits", [[0, 234, 467, COUNT], [0, 0, COUNT, COUNT]])
@pytest.mark.parametrize(("depth", "deterministic"), [(1, False), (4, False), (2, True)])
def test_predictions_are_those_of_jax(depth, deterministic, limits):
    one = model(depth=depth, width=200 if depth == 4 else 20, deterministic=deterministic)
    got, wanted = predicted_by_both(one, np.array(limits))
    assert 0.05 < np.mean(wanted[2]) < 0.95  # some are cut to the data's range, and some are not
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_nan_is_predicted_where_a_member_has_diverged_and_is_marked():
    one = model()
    biases = one.members.network.biases
    biases[-1] = biases[-1].at[1].set(jnp.nan)
    (following, reward, bounded, _), _ = predicted_by_both(one, np.array([0, 234, 467, COUNT]))
    assert np.isnan(reward).sum() == 233
    assert np.isnan(following[np.isnan(reward)]).all()
    assert bounded[np.isnan(reward)].all()


@pytest.mark.parametrize("deterministic", [False, True])
def test_scores_are_those_of_jax(deterministic):
    one, weight = model(depth=4, deterministic=deterministic), (np.arange(700) < 600).astype(np.float32)
    got, wanted = score(one, rows(), weight, SPEC), score_in_jax(one, rows(), weight, SPEC)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("group", ["state", "members"])
@pytest.mark.parametrize("member_per", ["row", "step"])
def test_blocks_of_rollouts_in_jax_have_the_same_moments(group, member_per):
    """JAX's text runs on accelerators only, from other random numbers: what both imagine is alike on average."""
    plan = Plan(group=group, alpha=0.0, samples=MEMBERS, member_per=member_per, termination=None)
    one, starts = model(), np.tile(rows()[:2, : SPEC.observation_size], (2000, 1))
    keys = list(jax.random.split(jax.random.key(1), 2))
    arguments = np.random.default_rng(0), MEMBERS, plan
    in_jax = rollout_block_in_jax(one, ACTOR, starts, jax.random.key(0), *arguments, keys)
    networks = rollout_on_cpu.Imagination(one, ACTOR, SPEC)
    chosen = np.array([int(jax.random.randint(key, (), 0, MEMBERS)) for key in keys])
    by_kernels = rollout_on_cpu.rollout_block(networks, starts, *arguments, chosen)
    for one_step, other_step in zip(in_jax, by_kernels, strict=True):
        for a, b in zip(one_step, other_step, strict=True):
            assert a.shape == b.shape
        both = [np.asarray(step.rows, np.float64).reshape(-1, SPEC.row_width) for step in (one_step, other_step)]
        deviation = np.maximum(both[0].std(axis=0), 1e-3)
        np.testing.assert_allclose((both[0].mean(axis=0) - both[1].mean(axis=0)) / deviation, 0, atol=0.06)
        np.testing.assert_allclose(
            both[1].std(axis=0) / deviation, np.where(both[0].std(axis=0) > 1e-3, 1, 0), atol=0.06
        )
        assert abs(one_step.valid.mean() - other_step.valid.mean()) < 0.03
