"""The training rollout: what critics regress on and what the actor climbs, against answers that are known."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdp.agents import expansion, sac
from mbdp.agents.expansion import TrainingPath, imagine, kept_share, soft_return
from mbdp.models import ensemble
from mbdp.models.ensemble import Ensemble, Scaling
from mbdp.plans import Shape, TrainingRollout
from mbdp.types import Spec, Transition

SPEC = Spec(1, 1)
A, B = 0.9, 0.5  # s' = A s + B a
KEY = jax.random.key(0)


def never(observation, action, following):
    return jnp.zeros(following.shape[:-1], bool)


def plan(**changes: Any) -> TrainingRollout:
    usual = TrainingRollout(
        steps=3,
        siblings=1,
        alpha=0.0,
        member_per_row=False,
        termination=never,
        discount=0.9,
        tau=0.01,
        target_entropy=-1.0,
        learning_rate=1e-3,
    )
    return usual._replace(**changes)


def linear(members: int = 2, pay: Any = 0.0, logit: float = -50.0) -> Ensemble:
    """Members without noise or hidden layers: s' = A s + B a and r = s + 2 a + a number of the member's own."""
    model = ensemble.create(SPEC, members=members, width=1, depth=0, noise="output", key=KEY)
    weights = jnp.array([[A - 1, 1.0, 0.0], [B, 2.0, 0.0]])  # from (s, a) to (change, reward, logit)
    own = jnp.broadcast_to(jnp.asarray(pay, jnp.float32), (members,))
    biases = jnp.stack([jnp.zeros(members), own, jnp.full(members, logit)], axis=1)
    scaling = Scaling(jnp.zeros(2), jnp.ones(2), jnp.zeros(2), jnp.ones(2), jnp.full(2, -jnp.inf), jnp.full(2, jnp.inf))
    network = eqx.tree_at(
        lambda n: (n.weights, n.biases), model.members.network, ([jnp.tile(weights, (members, 1, 1))], [biases])
    )
    quiet = jnp.full((members, 2), -200.0)
    return Ensemble(eqx.tree_at(lambda m: (m.network, m.log_variance), model.members, (network, quiet)), scaling)


def actor(gain: float, log_std: float = -20.0) -> Any:
    """A linear policy a = tanh(gain s + noise): with a small gain times state, nearly a = gain s."""
    made = sac.create(SPEC, Shape(width=1, depth=0), key=KEY).actor
    return eqx.tree_at(lambda n: (n.weights, n.biases), made, ([jnp.array([[gain, 0.0]])], [jnp.array([0.0, log_std])]))


def test_a_path_is_the_linear_system():
    start = jnp.array([[1e-3], [-2e-3]])
    path = imagine(actor(0.7), linear(), start, plan(), key=KEY)
    closed = A + B * 0.7
    states = start[:, 0] * closed ** jnp.arange(4)[:, None]
    np.testing.assert_allclose(path.reward, (1 + 2 * 0.7) * states[:3], rtol=1e-3)
    np.testing.assert_allclose(path.last[0][:, 0], states[3], rtol=1e-3)
    np.testing.assert_allclose(path.last[1][:, 0], 0.7 * states[3], rtol=1e-3)
    np.testing.assert_array_equal(path.first[0], start)


def test_the_gradient_through_the_model_is_that_of_the_closed_form():
    start, discount = jnp.array([[1e-2]]), 0.9

    def by_path(gain):
        path = imagine(actor(gain), linear(), start, plan(), key=KEY)
        end = 5 * path.last[0][:, 0] + path.last[1][:, 0]  # a linear critic
        return soft_return(path, end, jnp.asarray(0.0), discount)[0]

    def by_hand(gain):
        closed = A + B * gain
        rewards = sum(discount**h * (1 + 2 * gain) * closed**h for h in range(3))
        return 1e-2 * (rewards + discount**3 * closed**3 * (5 + gain))

    for gain in (-0.8, 0.0, 0.5):
        np.testing.assert_allclose(by_path(gain), by_hand(gain), rtol=1e-3)
        np.testing.assert_allclose(jax.grad(by_path)(gain), jax.grad(by_hand)(gain), rtol=1e-3)


def test_a_soft_return_worked_by_hand():
    path = TrainingPath(
        reward=jnp.array([[1.0], [2.0]]),
        log_probability=jnp.array([[0.1], [0.2], [0.3]]),
        alive=jnp.array([[1.0], [1.0], [1.0]]),
        first=(KEY, KEY),
        last=(KEY, KEY),
    )
    by_hand = (1 - 0.05) + 0.9 * (2 - 0.1) + 0.81 * (10 - 0.15)
    np.testing.assert_allclose(soft_return(path, jnp.array([10.0]), jnp.asarray(0.5), 0.9), [by_hand], rtol=1e-6)


def test_nothing_counts_after_the_end():
    path = TrainingPath(
        jnp.array([[1.0], [2.0]]), jnp.zeros((3, 1)), jnp.array([[1.0], [0.0], [0.0]]), (KEY, KEY), (KEY, KEY)
    )
    np.testing.assert_allclose(soft_return(path, jnp.array([10.0]), jnp.asarray(0.5), 0.9), [1.0])


def test_a_known_rule_ends_a_path_after_the_step_that_meets_it():
    def falls(observation, action, following):
        return following[..., 0] > 0.5

    path = imagine(actor(0.0), linear(), jnp.array([[0.7], [0.5]]), plan(termination=falls), key=KEY)
    np.testing.assert_array_equal(path.alive, [[1, 1], [0, 1], [0, 1], [0, 1]])


def test_a_learned_end_counts_with_its_probability_and_has_a_gradient():
    model = linear(logit=-1.0)
    path = imagine(actor(0.0), model, jnp.array([[0.1]]), plan(termination=None), key=KEY)
    goes_on = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(path.alive[:, 0], goes_on ** np.arange(4), rtol=1e-5)

    def returned(shift):
        moved = eqx.tree_at(
            lambda m: m.members.network.biases, model, [model.members.network.biases[0].at[:, -1].add(shift)]
        )
        own = imagine(actor(0.0), moved, jnp.array([[0.1]]), plan(termination=None), key=KEY)
        return soft_return(own, jnp.ones(1), jnp.asarray(0.0), 0.9)[0]

    assert jax.grad(returned)(0.0) < 0


def test_siblings_share_the_first_action_and_differ_in_their_members():
    model = linear(members=4, pay=[0.0, 1.0, 2.0, 3.0])
    path = imagine(actor(0.3, log_std=-1.0), model, jnp.zeros((5, 1)), plan(steps=1, siblings=4), key=KEY)
    actions = path.first[1].reshape(4, 5)
    np.testing.assert_array_equal(actions, jnp.broadcast_to(actions[0], (4, 5)))
    assert len(np.unique(np.asarray(actions[0]))) == 5
    paid = np.sort(np.asarray(path.reward[0].reshape(4, 5) - 2 * actions), axis=0)
    np.testing.assert_allclose(paid, np.broadcast_to([[0.0], [1.0], [2.0], [3.0]], (4, 5)), atol=1e-5)


def test_siblings_share_all_noise_so_that_in_one_member_they_are_the_same():
    model = linear(members=1)
    noisy = eqx.tree_at(lambda m: m.members.log_variance, model, jnp.zeros((1, 2)))
    path = imagine(actor(0.3, log_std=-1.0), noisy, jnp.zeros((5, 1)), plan(siblings=2), key=KEY)
    reward = np.asarray(path.reward).reshape(3, 2, 5)
    np.testing.assert_array_equal(reward[:, 0], reward[:, 1])
    assert len(np.unique(reward[:, 0])) == 15


@pytest.mark.parametrize("per_row", [True, False])
def test_without_siblings_a_step_has_one_member_or_a_share_of_the_rows_each(per_row):
    model = linear(members=3, pay=[0.0, 1.0, 2.0])
    path = imagine(actor(0.0), model, jnp.zeros((7, 1)), plan(steps=1, member_per_row=per_row), key=KEY)
    assert len(np.unique(np.round(np.asarray(path.reward[0] - 2 * path.first[1][:, 0]), 3))) == (3 if per_row else 1)


def test_the_highest_returns_are_dropped_and_the_rest_averaged():
    returns = jnp.array([[3.0, 10.0], [1.0, 40.0], [2.0, 20.0], [4.0, 30.0]])
    share = kept_share(returns, 0.25, jnp.zeros(2))
    np.testing.assert_allclose(jnp.sum(share * returns, axis=0), [2.0, 20.0])
    np.testing.assert_allclose(share[:, 0], [1 / 3, 1 / 3, 1 / 3, 0], rtol=1e-6)


def test_without_alpha_all_returns_count_the_same():
    np.testing.assert_array_equal(kept_share(jnp.arange(8.0).reshape(4, 2), 0.0, jnp.zeros(2)), np.full((4, 2), 0.25))


@pytest.mark.parametrize("alpha", [0.1, 0.2, 0.4])
@pytest.mark.parametrize("siblings", [2, 4, 5])
def test_the_share_of_returns_that_is_dropped_is_alpha(alpha, siblings):
    returns = jax.random.normal(KEY, (siblings, 20_000))
    share = kept_share(returns, alpha, jax.random.uniform(jax.random.key(1), (20_000,)))
    assert abs(float(jnp.mean(share == 0)) - alpha) < 0.01


def test_the_actors_gradient_passes_through_the_kept_returns_only():
    model = linear(members=2, pay=[0.0, 100.0])

    def climbed(pays):
        own = eqx.tree_at(
            lambda m: m.members.network.biases, model, [model.members.network.biases[0].at[:, 1].set(pays)]
        )
        path = imagine(actor(0.1), own, jnp.ones((1, 1)), plan(steps=1, siblings=2), key=KEY)
        returns = soft_return(path, jnp.zeros(2), jnp.asarray(0.0), 0.9).reshape(2, 1)
        share = kept_share(jax.lax.stop_gradient(returns), 0.5, jnp.zeros(1))
        return jnp.sum(share * returns)

    np.testing.assert_allclose(jax.grad(climbed)(jnp.array([0.0, 100.0])), [1.0, 0.0])


def trained(updates: int, **changes: Any) -> expansion.Agent:
    own = plan(learning_rate=3e-3, discount=0.5, tau=0.05, **changes)
    shape = Shape(16, 2, activation="silu", layer_norm=True, normalised_inputs=True, learning_rate=3e-3)
    agent = expansion.create(SPEC, shape, key=KEY)
    starts = jax.random.normal(KEY, (updates, 32 // own.siblings, 1))
    model, nothing = linear(members=4, pay=[-1, 0, 1, 2]), real_rows(jnp.zeros((updates, 0)))
    return expansion.update(agent, model, starts, nothing, plan=own, new_share=1.0, key=KEY)[0]


def real_rows(reward: jax.Array, terminated: Any = 0.0) -> Transition:
    """Real transitions from 2 to 3 with action 0.5."""
    state = jnp.ones((*reward.shape, 1))
    return Transition(2 * state, state / 2, reward, 3 * state, jnp.broadcast_to(terminated, reward.shape))


def test_the_target_of_a_real_transition_is_its_reward_and_what_the_rollout_from_its_end_returns():
    agent = expansion.create(SPEC, Shape(16, 2), key=KEY)
    agent = eqx.tree_at(lambda a: (a.bounds, a.log_temperature), agent, (jnp.array([-10.0, 30.0]), jnp.asarray(-50.0)))
    real = real_rows(jnp.array([5.0, 7.0]), jnp.array([0.0, 1.0]))
    _, (target, (observation, action), *_) = expansion._loss(
        agent.actor, agent, linear(), jnp.zeros((4, 1)), real, plan(), KEY
    )
    np.testing.assert_allclose(observation[:, 0], [3, 3, 0, 0, 0, 0, 2, 2])
    np.testing.assert_allclose(action[-2:, 0], 0.5)
    assert target[0] > 1  # the return of the rollout from 3, where the episode goes on
    np.testing.assert_allclose(target[1], 0.0)  # nothing is earned after the end
    np.testing.assert_allclose(target[-2:], [5.0 + 0.9 * target[0], 7.0], rtol=1e-6)


def test_the_actor_learns_to_act_where_acting_pays():
    agent = trained(600)
    action = sac.explore(agent.actor, np.zeros((100, 1), np.float32), rng=np.random.default_rng(0))
    assert action.mean() > 0.5


def test_dropping_the_highest_returns_lowers_what_critics_expect():
    state, action = jnp.zeros((1, 1)), jnp.zeros((1, 1))
    plain, doubting = (expansion.value(trained(600, siblings=4, alpha=alpha), state, action) for alpha in (0.0, 0.5))
    assert doubting[0] < plain[0] - 0.3


def test_a_fresh_agent_says_the_middle_of_the_bounds():
    agent = expansion.create(SPEC, Shape(16, 2), key=KEY)
    agent = eqx.tree_at(lambda a: a.bounds, agent, jnp.array([-10.0, 30.0]))
    np.testing.assert_allclose(expansion.value(agent, jnp.ones((3, 1)), jnp.ones((3, 1))), 10.0)


@pytest.mark.parametrize("earned", [-7.0, 7.0])
def test_the_end_of_an_episode_is_worth_0_whatever_each_step_earns(earned):
    low, high = trained(1, reward=lambda observation, action, following: jnp.full(len(following), earned)).bounds
    assert 0 in (low, high)
    assert low < 2 * earned < high  # earned for ever at a discount of 0.5, give or take the entropy
