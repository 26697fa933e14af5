from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import integrate, stats

from mbdp.agents import sac
from mbdp.networks import MLP
from mbdp.plans import Shape
from mbdp.replay import pack, unpack
from mbdp.types import Spec, Transition

SPEC = Spec(2, 1)
SETTINGS: dict[str, Any] = {
    "actor_every": 1,
    "learning_rate": 3e-3,
    "discount": 0.5,
    "tau": 0.05,
    "target_entropy": -0.5,
}


def agent(*, temperature: float = 1e-6, layer_norm: bool = False) -> sac.Agent:
    shape = Shape(16, 2, layer_norm=layer_norm, learning_rate=3e-3, temperature=temperature)
    return sac.create(SPEC, shape, key=jax.random.key(0))


def one_state_forever(terminated: float, updates: int = 400) -> jax.Array:
    """Minibatches of the MDP with one state, reward 1 for every action."""
    shape = (updates, 16)
    actions = np.random.default_rng(0).uniform(-1, 1, (*shape, 1)).astype(np.float32)
    zeros, ones = np.zeros((*shape, 2), np.float32), np.ones(shape, np.float32)
    return pack(Transition(zeros, actions, ones, zeros, terminated * ones))


def learned_value(terminated: float) -> float:
    cold = SETTINGS | {"target_entropy": -1e3}
    trained, _ = sac.update(agent(), one_state_forever(terminated), spec=SPEC, **cold, key=jax.random.key(1))
    return float(jnp.mean(sac.q_values(trained.critic, jnp.zeros((1, 2)), jnp.zeros((1, 1)))))


def test_a_termination_does_not_bootstrap():
    assert learned_value(terminated=1.0) == pytest.approx(1.0, abs=0.05)


def test_a_time_limit_bootstraps():
    assert learned_value(terminated=0.0) == pytest.approx(2.0, abs=0.1)  # 1 / (1 - 0.5)


def test_the_probability_of_all_actions_is_one():
    actor = agent().actor
    observation = jnp.array([0.3, -0.2])
    mean, log_std = np.asarray(actor(observation)).tolist()

    def density(action: float) -> float:
        raw = np.arctanh(action)
        noise = (raw - mean) / np.exp(log_std)
        return np.exp(-0.5 * noise**2) / np.sqrt(2 * np.pi) / np.exp(log_std) / (1 - action**2)

    actions, log_probability = sac.squash(actor(observation), jax.random.normal(jax.random.key(0), (50, 1)))
    np.testing.assert_allclose(np.exp(log_probability), [density(float(a)) for a in actions[:, 0]], rtol=2e-3)
    assert integrate.quad(density, -1, 1)[0] == pytest.approx(1.0, abs=1e-4)


def test_the_averaged_actor_follows_the_newest_one_at_its_own_pace():
    rows, ends = one_state_forever(0.0, updates=8), {}
    begun = eqx.tree_at(lambda a: a.actor_optimiser[0].count, agent(), jnp.asarray(8 * 1000))
    for over in (1, 4):
        after, _ = sac.update(begun, rows, spec=SPEC, **SETTINGS, average_over=over, key=jax.random.key(1))
        again, _ = sac.update(after, rows, spec=SPEC, **SETTINGS, average_over=over, key=jax.random.key(2))
        ends[over] = [one.biases[-1] for one in (after.actor, again.actor, again.averaged_actor)]
    first, second, newest = ends[1]
    np.testing.assert_array_equal(newest, second)
    np.testing.assert_array_equal(ends[4][1], second)  # nothing is learned from the average
    expected = (begun.actor.biases[-1] * 3 / 4 + first / 4) * 3 / 4 + second / 4
    np.testing.assert_allclose(ends[4][2], expected, atol=1e-6)
    assert np.abs(second - expected).max() > 1e-3


@pytest.mark.parametrize(("calls", "share"), [(0, 1), (19, 0.5), (99, 0.1), (10_000, 0.01)])
def test_a_young_average_covers_a_tenth_of_all_calls(calls, share):
    begun = eqx.tree_at(lambda a: a.actor_optimiser[0].count, agent(), jnp.asarray(2 * calls))
    rows = one_state_forever(0.0, updates=2)
    after, _ = sac.update(begun, rows, spec=SPEC, **SETTINGS, average_over=100, key=jax.random.key(1))
    first, newest, average = (a.biases[-1] for a in (begun.actor, after.actor, after.averaged_actor))
    np.testing.assert_allclose(average, first + share * (newest - first), atol=1e-6)


def test_the_policy_is_of_the_averaged_actor():
    begun = agent()
    learned, _ = sac.update(begun, one_state_forever(0.0, 8), spec=SPEC, **SETTINGS, key=jax.random.key(1))
    apart = eqx.tree_at(lambda a: a.averaged_actor, learned, begun.actor)
    assert learned.actor.biases[-1][0] != begun.actor.biases[-1][0]
    np.testing.assert_array_equal(sac.greedy(apart, 1)["biases"][-1], begun.actor.biases[-1][:1])


def test_exploration_draws_from_the_actors_distribution():
    actor, observation = agent().actor, np.array([0.3, -0.2], np.float32)
    mean, log_std = np.asarray(actor(observation)).tolist()
    rng = np.random.default_rng(0)
    noise = [(np.arctanh(sac.explore(actor, observation, rng=rng).item()) - mean) / np.exp(log_std) for _ in range(500)]
    assert stats.kstest(noise, "norm").pvalue > 0.01


def test_an_extreme_action_has_a_finite_log_probability():
    actor = agent().actor
    extreme: MLP = jax.tree.map(lambda x: x * 0 + 50.0, actor)
    assert np.isfinite(sac.squash(extreme(jnp.ones(2)), jnp.ones(1))[1])


@pytest.mark.parametrize(("target", "direction"), [(10.0, 1), (-10.0, -1)])
def test_the_temperature_rises_when_entropy_is_short_and_falls_when_it_is_plenty(target, direction):
    settings = SETTINGS | {"target_entropy": target}
    before = agent(temperature=0.1)
    after, _ = sac.update(before, one_state_forever(1.0), spec=SPEC, **settings, key=jax.random.key(0))
    assert np.sign(float(after.log_temperature) - np.log(0.1)) == direction


def test_target_critics_follow_by_tau():
    before = agent()
    after, _ = sac.update(before, one_state_forever(1.0)[:1], spec=SPEC, **SETTINGS, key=jax.random.key(0))
    for old, new, target in zip(*map(jax.tree.leaves, (before.critic, after.critic, after.target_critic)), strict=True):
        np.testing.assert_allclose(target, 0.95 * old + 0.05 * new, atol=1e-6)


def test_the_actor_moves_once_in_every_group_of_critic_updates():
    rows = one_state_forever(1.0)[:4]
    every = sac.update(agent(), rows, spec=SPEC, **(SETTINGS | {"actor_every": 4}), key=jax.random.key(0))[0]
    assert int(every.actor_optimiser[0].count) == 1
    assert int(every.critic_optimiser[0].count) == 4


@pytest.mark.parametrize("actor_every", [1, 2])
def test_the_actor_learns_from_the_critics_before_their_step_only_if_it_learns_at_every_one(actor_every):
    before, rows, key = agent(), one_state_forever(1.0)[:actor_every], jax.random.key(0)
    after, _ = sac.update(before, rows, spec=SPEC, **(SETTINGS | {"actor_every": actor_every}), key=key)
    noise = sac.noise_of(key, rows, actor_every, SPEC)[0, 0]
    critic = before.critic if actor_every == 1 else after.critic
    other = after.critic if actor_every == 1 else before.critic
    optimiser = optax.adam(SETTINGS["learning_rate"])
    rest = {"target_entropy": SETTINGS["target_entropy"], "noise": noise}
    batch = unpack(rows[-1], SPEC)
    wanted, unwanted = (sac.update_actor(before, c, batch, optimiser, **rest)[0] for c in (critic, other))
    got, wanted, unwanted = (x.actor_optimiser[0].mu.biases[-1] for x in (after, wanted, unwanted))
    np.testing.assert_allclose(got, wanted, rtol=1e-4)
    assert not np.allclose(got, unwanted, rtol=1e-3)


def test_layer_norm_is_in_the_critics_only():
    normal = agent(layer_norm=True)
    assert normal.critic[0].scales
    assert not normal.actor.scales


def test_layer_norm_keeps_the_value_of_far_away_actions_small():
    far = jnp.full((1, 2), 1e4), jnp.zeros((1, 1))
    plain, normalised = (float(jnp.abs(sac.q_values(agent(layer_norm=n).critic, *far)).max()) for n in (False, True))
    assert normalised < 10 < plain
