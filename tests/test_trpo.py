import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from mbdp.agents import trpo
from mbdp.types import Spec

SPEC = Spec(3, 2)
RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(6, 6))
FISHER = ROOT @ ROOT.T + np.eye(6)
GRADIENT = RNG.normal(size=6)


def agent(key: int = 0) -> trpo.Agent:
    return trpo.create(SPEC, width=8, depth=2, value_width=8, value_learning_rate=1e-2, key=jax.random.key(key))


def samples(count: int = 500) -> trpo.Samples:
    """Actions of the policy, better the larger their first number is."""
    observation = jnp.asarray(np.random.default_rng(1).normal(size=(count, 3)), jnp.float32)
    action, _ = trpo.sample_action(agent().actor, observation, key=jax.random.key(2))
    return trpo.Samples(observation, action, action[:, 0], observation[:, 0], jnp.ones(count))


def test_conjugate_gradients_solve_a_linear_system():
    x = trpo.conjugate_gradients(lambda v: FISHER @ v, jnp.asarray(GRADIENT), 12)
    np.testing.assert_allclose(FISHER @ np.asarray(x), GRADIENT, atol=1e-3)


def test_the_natural_step_on_a_quadratic_is_the_closed_form():
    step = trpo.natural_step(jnp.asarray(GRADIENT), lambda v: FISHER @ v, 0.01)
    direction = np.linalg.solve(FISHER, GRADIENT)
    expected = np.sqrt(2 * 0.01 / (GRADIENT @ direction)) * direction
    np.testing.assert_allclose(step, expected, rtol=1e-3)


def test_the_natural_step_uses_up_the_bound_of_a_quadratic_divergence():
    step = np.asarray(trpo.natural_step(jnp.asarray(GRADIENT), lambda v: FISHER @ v, 0.01))
    assert 0.5 * step @ FISHER @ step == pytest.approx(0.01, rel=1e-3)


def test_no_gradient_is_no_step():
    np.testing.assert_array_equal(trpo.natural_step(jnp.zeros(6), lambda v: FISHER @ v, 0.01), np.zeros(6))


def searched(objective, kl):
    return float(trpo.line_search(objective, kl, jnp.zeros(1), jnp.ones(1), 1.0)[1])


def test_a_line_search_takes_the_whole_step_if_it_may():
    assert searched(lambda x: x[0], lambda x: jnp.abs(x[0])) == 1


def test_a_line_search_backs_off_until_the_bound_holds():
    assert searched(lambda x: x[0], lambda x: 3.5 * jnp.abs(x[0])) == 0.25


def test_a_line_search_backs_off_until_the_step_helps():
    assert searched(lambda x: x[0] - 3 * x[0] ** 2, lambda x: jnp.abs(x[0])) == 0.25


def test_a_line_search_that_finds_nothing_stays_where_it_is():
    assert searched(lambda x: -x[0], lambda x: jnp.abs(x[0])) == 0


def test_an_update_helps_and_keeps_the_bound():
    better, metrics = trpo.update(agent(), samples(), kl_bound=0.01, entropy_bonus=0.0)
    assert 0 < float(metrics["kl"]) <= 0.01
    assert float(metrics["gain"]) > 0
    before, after = (one.actor.mean(samples().observation)[:, 0].mean() for one in (agent(), better))
    assert after > before


def test_a_sample_without_weight_teaches_nothing():
    some = samples(100)
    padded = trpo.Samples(*(jnp.concatenate([x, 7 * x]) for x in some[:4]), jnp.arange(200) < 100)
    short, _ = trpo.update(agent(), some, kl_bound=0.01, entropy_bonus=0.0)
    long, _ = trpo.update(agent(), padded, kl_bound=0.01, entropy_bonus=0.0)
    misled, _ = trpo.update(agent(), padded._replace(weight=jnp.ones(200)), kl_bound=0.01, entropy_bonus=0.0)
    changes = [one.actor.network.weights[0] - agent().actor.network.weights[0] for one in (short, long, misled)]
    distance = [float(jnp.linalg.norm(change - changes[0])) for change in changes]
    assert distance[1] < 0.1 * distance[2]


def test_the_entropy_bonus_widens_the_policy():
    without, with_bonus = (
        trpo.update(agent(), samples(), kl_bound=0.01, entropy_bonus=bonus)[1]["deviation"] for bonus in (0.0, 10.0)
    )
    assert with_bonus > without


def test_the_divergence_of_two_normals_is_the_textbooks():
    old = agent().actor
    new = trpo.Actor(old.network, old.log_deviation + 0.5, old.input_mean, old.input_std)
    ratio = np.exp(-1.0)
    expected = 2 * 0.5 * (ratio - 1 - np.log(ratio))
    np.testing.assert_allclose(trpo.divergence(old, new, samples(4).observation), expected, rtol=1e-5)


def test_advantages_are_discounted_sums_of_errors():
    reward, value = jnp.array([[1.0], [2.0], [3.0]]), jnp.array([[0.5], [0.25], [0.125]])
    following = jnp.array([[0.25], [0.125], [8.0]])
    none, last = jnp.zeros((3, 1)), jnp.array([[0.0], [0.0], [1.0]])
    got = trpo.advantages(reward, value, following, none, last, discount=0.5, trace=0.5)
    errors = [1 + 0.125 - 0.5, 2 + 0.0625 - 0.25, 3 + 4 - 0.125]
    third = errors[2]
    second = errors[1] + 0.25 * third
    np.testing.assert_allclose(got[:, 0], [errors[0] + 0.25 * second, second, third])


def test_nothing_follows_the_end_of_an_episode():
    reward, ended = jnp.ones((2, 1)), jnp.array([[1.0], [0.0]])
    got = trpo.advantages(
        reward, jnp.zeros((2, 1)), jnp.full((2, 1), 9.0), ended, jnp.zeros((2, 1)), discount=1.0, trace=1.0
    )
    np.testing.assert_allclose(got[:, 0], [1.0, 10.0])


def test_the_value_function_learns_its_targets():
    fitted, before = trpo.fit_value(agent(), samples(), epochs=50, batch=32, learning_rate=1e-2, key=jax.random.key(3))
    error = jnp.mean((trpo.value(fitted, samples().observation) - samples().value_target) ** 2)
    assert float(error) < 0.05 * float(before)


def test_a_pass_of_the_value_function_sees_every_sample_once():
    settings = {"epochs": 1, "learning_rate": 1e-2, "key": jax.random.key(3)}
    batch = samples()
    whole, _ = trpo.fit_value(agent(), batch, batch=len(batch.weight), **settings)
    larger, _ = trpo.fit_value(agent(), batch, batch=10 * len(batch.weight), **settings)
    halves, _ = trpo.fit_value(agent(), batch, batch=len(batch.weight) // 2, **settings)
    assert [int(x.value_optimiser[0].count) for x in (whole, larger, halves)] == [1, 1, 2]
    np.testing.assert_allclose(whole.value.weights[0], larger.value.weights[0], rtol=1e-5)


@pytest.mark.parametrize(("deviation", "mean"), [(0.1, 0.0), (0.5, 1.8), (1.0, 0.3), (30.0, -1.0)])
def test_entropy_is_that_of_actions_within_reach(deviation, mean):
    actor = eqx.tree_at(
        lambda a: (a.network.weights[-1], a.network.biases[-1], a.log_deviation),
        agent().actor,
        (jnp.zeros((8, 2)), jnp.full(2, mean), jnp.full(2, np.log(deviation))),
    )

    def share(x):
        density = stats.norm.pdf(x, mean, deviation)
        return -density * np.log(density)

    wanted = 2 * integrate.quad(share, -trpo.REACH, trpo.REACH, points=[np.clip(mean, -2, 2)])[0]
    assert float(trpo.entropy(actor, jnp.ones(3))) == pytest.approx(wanted, abs=1e-3)


def test_noise_is_not_scaled_up_to_look_like_something_to_gain():
    """With nothing but tiny differences to learn from, the entropy bonus decides and the policy does not narrow."""
    noise = 1e-4 * jax.random.normal(jax.random.key(7), (500,))
    narrow = eqx.tree_at(lambda a: a.actor.log_deviation, agent(), jnp.full(2, -3.0))
    action, _ = trpo.sample_action(narrow.actor, samples().observation, key=jax.random.key(8))
    batch = samples()._replace(action=action, advantage=noise)
    after, _ = trpo.update(narrow, batch, kl_bound=0.01, entropy_bonus=0.005)
    assert (np.asarray(after.actor.log_deviation) > -2.95).all()


def test_exploration_draws_from_the_policys_distribution_and_adds_noise_within_the_bounds():
    narrow = eqx.tree_at(
        lambda actor: (actor.log_deviation, actor.input_std), agent().actor, (jnp.full(2, -3.0), 2 * jnp.ones(3))
    )
    observations = np.random.default_rng(1).normal(size=(1000, 3)).astype(np.float32)
    plain, moved, bounded = (
        trpo.explore(narrow, observations, rng=np.random.default_rng(0), noise=np.array([0.0, shift]))
        for shift in (0.0, 0.3, 9.0)
    )
    assert stats.kstest(((plain - narrow.mean(observations)) / np.exp(-3.0)).ravel(), "norm").pvalue > 0.01
    np.testing.assert_allclose(moved - plain, np.broadcast_to([0.0, 0.3], plain.shape), atol=1e-6)
    np.testing.assert_array_equal(bounded[:, 1], 1.0)


def test_a_fresh_policy_is_noise_around_zero():
    observation = 3 * jax.random.normal(jax.random.key(0), (1000, SPEC.observation_size))
    action, _ = trpo.sample_action(agent().actor, observation, key=jax.random.key(1))
    assert np.abs(agent().actor.mean(observation)).max() < 0.03
    np.testing.assert_allclose(np.std(action, axis=0), 1.0, atol=0.1)
    np.testing.assert_allclose(np.linalg.norm(agent().actor.network.weights[0], axis=0), 1.0, rtol=1e-5)


def test_the_exported_policy_acts_as_the_actor_whatever_its_inputs_are_scaled_by():
    from mbdp.policies.policy import Policy

    old = agent().actor
    actor = trpo.Actor(old.network, old.log_deviation, jnp.array([1.0, -2.0, 3.0]), jnp.array([0.5, 2.0, 4.0]))
    policy = Policy(
        **trpo.greedy(eqx.tree_at(lambda a: a.actor, agent(), actor), 2), action_low=-np.ones(2), action_high=np.ones(2)
    )
    observations = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    np.testing.assert_allclose(policy(observations), np.clip(actor.mean(observations), -1, 1), atol=1e-5)
