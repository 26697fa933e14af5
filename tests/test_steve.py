from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdp import MBDP, algorithm
from mbdp.agents import ddpg
from mbdp.baselines import steve
from mbdp.envs.toy import POINT_MASS
from mbdp.models.ensemble import Ensemble
from mbdp.types import BadInput, Spec, Transition
from tests.conftest import TINY_STEVE

SPEC = Spec(2, 1)
DISCOUNT = 0.9


def learner(**settings):
    shape = {"members": 2, "reward_members": 3, "critics": 2, "model_width": 8, "model_depth": 1, "width": 8}
    return steve.create(replace(steve.Config(steps=10), **(shape | settings)), SPEC, seed=0)


def constants(networks, values):
    """The networks with outputs that are these numbers, whatever the input."""
    return tuple(
        eqx.tree_at(lambda n: (n.weights[-1], n.biases[-1]), one, (0 * one.weights[-1], jnp.full(1, float(value))))
        for one, value in zip(networks, values, strict=True)
    )


def knowing(rewards, critics, logit: float = -100.0):
    """An agent whose networks say these numbers, and a model whose episodes end with the logit's probability."""
    known = learner(reward_members=len(rewards), critics=len(critics))
    policy = eqx.tree_at(
        lambda p: p.target_critic, known.agent.policy, constants(known.agent.policy.target_critic, critics)
    )
    agent = replace(known.agent, policy=policy, rewards=constants(known.agent.rewards, rewards))
    biases = known.model.members.network.biases
    model = eqx.tree_at(lambda m: m.members.network.biases[-1], known.model, biases[-1].at[:, -1].set(logit))
    model = eqx.tree_at(lambda m: m.members.network.weights[-1], model, 0 * model.members.network.weights[-1])
    return agent, model


def batch(rows: int = 4, terminated: float = 0.0) -> Transition:
    rng = np.random.default_rng(0)
    observation, following = (jnp.asarray(rng.normal(size=(rows, 2)), jnp.float32) for _ in range(2))
    return Transition(observation, jnp.zeros((rows, 1)), jnp.ones(rows), following, jnp.full(rows, terminated))


def candidates(agent, model, expansion=2, **rest):
    return np.asarray(steve.candidate_targets(agent, model, batch(**rest), expansion=expansion, discount=DISCOUNT))


def test_every_combination_of_networks_gives_a_candidate_for_every_expansion():
    assert candidates(*knowing([0, 1, 2], [3, 4])).shape == (4, 3, 2 * 3 * 2)


def test_the_candidates_are_those_worked_out_by_hand():
    got = candidates(*knowing([2.0], [10.0]))[0, :, 0]
    expected = [1 + 0.9 * 10, 1 + 0.9 * 2 + 0.81 * 10, 1 + 0.9 * 2 + 0.81 * 2 + 0.729 * 10]
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_what_follows_counts_as_much_as_the_episode_probably_goes_on():
    got = candidates(*knowing([2.0], [10.0], logit=0.0))[0, :, 0]
    expected = [1 + 0.9 * 10, 1 + 0.9 * 2 + 0.81 * 0.5 * 10, 1 + 0.9 * 2 + 0.81 * 0.5 * 2 + 0.729 * 0.25 * 10]
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_nothing_follows_a_real_termination():
    np.testing.assert_allclose(candidates(*knowing([2.0], [10.0]), terminated=1.0), 1.0)


def test_horizons_are_weighed_by_their_inverse_variance():
    # T_0 is 0 or 2 (mean 1, variance 1), T_1 is 4 or 8 (mean 6, variance 4): weights 4/5 and 1/5.
    target, weight = steve.weigh(jnp.array([[[0.0, 2.0], [4.0, 8.0]]]), 0.0)
    np.testing.assert_allclose(weight, [[0.8, 0.2]], rtol=1e-6)
    np.testing.assert_allclose(target, [0.8 * 1 + 0.2 * 6], rtol=1e-6)


def test_with_one_member_everywhere_all_horizons_weigh_the_same():
    known = learner(members=1, reward_members=1, critics=1)
    one = candidates(known.agent, known.model)
    target, weight = steve.weigh(jnp.asarray(one), 0.0)
    np.testing.assert_allclose(weight, np.full((4, 3), 1 / 3), rtol=1e-6)
    np.testing.assert_allclose(target, one.mean(axis=(1, 2)), rtol=1e-5)


def test_a_certain_horizon_takes_all_the_weight():
    _, weight = steve.weigh(jnp.array([[[1.0, 1.0], [0.0, 9.0]]]), 0.0)
    np.testing.assert_allclose(weight, [[1.0, 0.0]], atol=1e-6)


def test_rollout_dropout_makes_the_target_more_cautious():
    hopeful = jnp.asarray(np.random.default_rng(0).normal(size=(50, 4, 64)))
    assert (steve.weigh(hopeful, 0.2)[0] < steve.weigh(hopeful, 0.0)[0]).all()


def test_without_dropout_the_weighing_is_the_plain_one():
    some = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3, 8)))
    inverse = 1 / (some.var(axis=-1) + steve.CERTAIN)
    plain = jnp.sum(inverse / inverse.sum(axis=-1, keepdims=True) * some.mean(axis=-1), axis=-1)
    np.testing.assert_allclose(steve.weigh(some, 0.0)[0], plain, rtol=1e-6)


def test_a_member_that_model_dropout_drops_never_enters_the_expansion():
    def critics_after(poison, worst):
        """After one step that does not refit, with two of four members kept and the first one poisoned."""
        agent = MBDP(POINT_MASS, algo="steve", beta=0.5, **TINY_STEVE).learn(61)
        poisoned = jax.tree.map(lambda x: x.at[0].add(poison), agent.learner.model.members)
        agent.learner.model = Ensemble(poisoned, agent.learner.model.scaling)
        agent.learner.kept = np.array([i for i in range(4) if i != worst][:2])
        return [np.asarray(leaf) for leaf in jax.tree.leaves(agent.learn(1).learner.agent.policy.critic)]

    def same(poison, worst):
        pairs = zip(critics_after(0.0, worst), critics_after(poison, worst), strict=True)
        return all(np.array_equal(a, b) for a, b in pairs)

    assert same(0.5, worst=0)
    assert not same(0.5, worst=3)


def test_without_dropout_a_run_is_that_of_a_loop_without_the_two_functions(monkeypatch):
    borrowed = MBDP(POINT_MASS, algo="steve", **TINY_STEVE).learn(70).policy().weights
    monkeypatch.setattr(algorithm, "model_dropout", lambda bias, beta: np.argsort(bias, kind="stable"))
    monkeypatch.setattr(steve, "rollout_dropout", lambda candidates, alpha: jnp.ones(candidates.shape, bool))
    static = ("spec", "alpha", "expansion", "learning_rate", "target_every")
    plain = steve.update.__wrapped__  # compiled anew: the other one has the functions in it
    monkeypatch.setattr(steve, "update", jax.jit(lambda *a, **k: plain(*a, **k), static_argnames=static))
    got = MBDP(POINT_MASS, algo="steve", **TINY_STEVE).learn(70).policy().weights
    for a, b in zip(borrowed, got, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_row_teaches_one_critic_and_one_reward_network():
    def taught(reward_of_first_row: float) -> tuple[list[bool], list[bool]]:
        """Whether each critic and reward network has learned something else than with a reward of 1."""
        known = learner(reward_members=2, critics=2)
        some = batch(rows=4)
        after = []
        for reward in (1.0, reward_of_first_row):
            row = some._replace(reward=some.reward.at[0].set(reward))
            policy, _ = ddpg.update(known.agent.policy, row, row.reward, learning_rate=1e-2, target_every=9)
            after.append((policy.critic, jax.grad(steve.reward_loss)(known.agent.rewards, row)))
        (critics, rewards), (others, other_rewards) = after
        return (
            [not eqx.tree_equal(a, b) for a, b in zip(critics, others, strict=True)],
            [not eqx.tree_equal(a, b) for a, b in zip(rewards, other_rewards, strict=True)],
        )

    assert taught(5.0) == ([True, False], [True, False])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"members": 1, "beta": 0.5}, "members must be at least 2 for beta=0.5"),
        ({"members": 1, "reward_members": 1, "critics": 1, "alpha": 0.2}, "at least 2 for alpha=0.2"),
    ],
)
def test_dropout_that_has_nothing_to_drop_is_refused(settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        steve.Config(**settings)


def test_a_saturated_actor_is_pulled_back():
    agent = ddpg.create(SPEC, critics=1, width=8, depth=1, learning_rate=1e-2, key=jax.random.key(0))
    flat = eqx.tree_at(lambda a: a.critic, agent, constants(agent.critic, [0.0]))
    saturated = eqx.tree_at(lambda a: a.actor.biases[-1], flat, jnp.full(1, 9.0))
    after, _ = ddpg.update(saturated, batch(), jnp.zeros(4), learning_rate=1e-2, target_every=9)
    assert float(after.actor.biases[-1][0]) < 9.0


def test_if_every_member_has_diverged_learning_goes_on_with_real_targets():
    agent = MBDP(POINT_MASS, algo="steve", **TINY_STEVE).learn(61)
    agent.learner.kept = np.zeros(0, np.int64)
    before = agent.learner.agent.policy.updates
    agent.learn(1)
    assert agent.learner.agent.policy.updates > before
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(agent.learner.agent.policy))


def test_the_targets_are_copied_whole_and_only_when_it_is_time():
    agent = ddpg.create(SPEC, critics=2, width=8, depth=1, learning_rate=1e-2, key=jax.random.key(0))
    equal = []
    for _ in range(4):
        agent, _ = ddpg.update(agent, batch(), jnp.ones(4), learning_rate=1e-2, target_every=2)
        equal.append(bool(eqx.tree_equal(agent.critic, agent.target_critic)))
    assert equal == [False, True, False, True]


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_exploration_replaces_numbers_of_an_action_by_noise(rate, monkeypatch):
    monkeypatch.setattr(ddpg, "REPLACED", rate)
    actor = ddpg.create(SPEC, critics=1, width=8, depth=1, learning_rate=1e-2, key=jax.random.key(0)).actor
    actions = ddpg.explore(actor, np.zeros((200, 2)), rng=np.random.default_rng(1))
    assert len(np.unique(actions)) == (1 if rate == 0 else 200)
