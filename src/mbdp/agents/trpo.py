"""Trust region policy optimisation: the natural gradient, as far as a bound on the KL divergence allows."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import norm

from mbdp.networks import MLP, fan_in_uniform, on_host, unit_columns
from mbdp.types import Spec

INITIAL_DEVIATION = 1.0
INITIAL_SCALE = 0.01  # of the last layer: a fresh policy's actions are noise and nothing else
REACH = 2.0  # of the actions whose entropy is rewarded; the world bounds them to 1
ITERATIONS, DAMPING = 10, 0.1  # of conjugate gradients
BACKTRACKS = 10  # halvings of a step before it is given up


class Actor(eqx.Module):
    """A normal distribution with a learned mean and a deviation that does not depend on the state."""

    network: MLP
    log_deviation: jax.Array
    input_mean: jax.Array
    input_std: jax.Array

    def mean(self, observation: jax.Array) -> jax.Array:
        return self.network((observation - self.input_mean) / self.input_std)


class Agent(eqx.Module):
    """An actor, a value function, and the memory of the latter's optimiser."""

    actor: Actor
    value: MLP
    value_optimiser: optax.OptState


class Samples(NamedTuple):
    """What one policy did, what it was worth, and which samples count: (n, ...) each."""

    observation: jax.Array
    action: jax.Array
    advantage: jax.Array
    value_target: jax.Array
    weight: jax.Array  # 1 or 0


def create(
    spec: Spec, *, width: int, depth: int, value_width: int, value_learning_rate: float, key: jax.Array
) -> Agent:
    """A fresh agent."""
    key_actor, key_value = jax.random.split(key)
    o, a = spec
    network = MLP([o, *[width] * depth, a], jnp.tanh, unit_columns, key=key_actor)
    network = eqx.tree_at(lambda n: n.weights[-1], network, INITIAL_SCALE * network.weights[-1])
    actor = Actor(network, jnp.full(a, jnp.log(INITIAL_DEVIATION)), jnp.zeros(o), jnp.ones(o))
    value = MLP([o, *[value_width] * depth, 1], jnp.tanh, fan_in_uniform, key=key_value)
    return Agent(actor, value, optax.adam(value_learning_rate).init(value))


def sample_action(actor: Actor, observation: jax.Array, *, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A stochastic action, not bounded, and its log-probability."""
    mean = actor.mean(observation)
    action = mean + jnp.exp(actor.log_deviation) * jax.random.normal(key, mean.shape)
    return action, log_probability(actor, observation, action)


def explore(
    actor: Actor, observation: np.ndarray, *, rng: np.random.Generator, noise: np.ndarray | float = 0.0
) -> np.ndarray:
    """The stochastic action, with noise added if there is any, as the world bounds it."""
    mean = on_host(actor.network, (observation - np.asarray(actor.input_mean)) / np.asarray(actor.input_std))
    deviation = np.exp(np.asarray(actor.log_deviation))
    return np.clip(mean + deviation * rng.standard_normal(mean.shape, np.float32) + noise, -1, 1)


def greedy(agent: Any, actions: int) -> dict[str, Any]:
    """The layers of the mean action, its inputs' scaling folded into the first, as `Policy` takes them."""
    actor: Actor = agent.actor
    weights = [np.asarray(w, np.float64) for w in actor.network.weights]
    biases = [np.asarray(b, np.float64) for b in actor.network.biases]
    weights[0] = weights[0] / np.asarray(actor.input_std)[:, None]
    biases[0] = biases[0] - np.asarray(actor.input_mean) @ weights[0]
    return {"weights": tuple(weights), "biases": tuple(biases), "hidden": "tanh", "output": "clip"}


def value(agent: Agent, observation: jax.Array, action: jax.Array | None = None) -> jax.Array:
    """The discounted return that is expected from a state."""
    return agent.value((observation - agent.actor.input_mean) / agent.actor.input_std)[..., 0]


def log_probability(actor: Actor, observation: jax.Array, action: jax.Array) -> jax.Array:
    """Of actions that are not bounded."""
    scaled = (action - actor.mean(observation)) / jnp.exp(actor.log_deviation)
    return jnp.sum(-0.5 * (scaled**2 + jnp.log(2 * jnp.pi)) - actor.log_deviation, axis=-1)


def entropy(actor: Actor, observation: jax.Array) -> jax.Array:
    """Of actions within `REACH`; what lies beyond counts nothing, so that ever more noise is not worth ever more."""
    mean, deviation = actor.mean(observation), jnp.exp(actor.log_deviation)
    low, high = (-REACH - mean) / deviation, (REACH - mean) / deviation
    inside = norm.cdf(high) - norm.cdf(low)
    whole = actor.log_deviation + 0.5 * jnp.log(2 * jnp.pi * jnp.e)
    return jnp.sum(whole * inside - 0.5 * (high * norm.pdf(high) - low * norm.pdf(low)), axis=-1)


def divergence(old: Actor, new: Actor, observation: jax.Array) -> jax.Array:
    """KL(old || new) in each state."""
    ratio = jnp.exp(2 * (old.log_deviation - new.log_deviation))
    distance = ((old.mean(observation) - new.mean(observation)) / jnp.exp(new.log_deviation)) ** 2
    return 0.5 * jnp.sum(ratio + distance - 1 - jnp.log(ratio), axis=-1)


def advantages(
    reward: jax.Array,
    value: jax.Array,
    following_value: jax.Array,
    ended: jax.Array,
    cut: jax.Array,
    *,
    discount: float,
    trace: float,
) -> jax.Array:
    """Generalised advantages (Schulman et al., 2016) of lanes in time, (time, lane) each.

    Where an episode has `ended` nothing follows; where it was `cut` the value of what would have followed stands in.
    """
    errors = reward + discount * (1 - ended) * following_value - value

    def step(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, goes_on = now
        total = error + discount * trace * goes_on * later
        return total, total

    goes_on = (1 - ended) * (1 - cut)
    return jax.lax.scan(step, jnp.zeros_like(reward[0]), (errors, goes_on), reverse=True)[1]


def update(agent: Agent, samples: Samples, *, kl_bound: float, entropy_bonus: float) -> tuple[Agent, dict[str, Any]]:
    """One step of the policy uphill within the trust region."""
    old = agent.actor
    old_log_probability = log_probability(old, samples.observation, samples.action)
    start, actor_of = _parameters(old)

    def mean(x: jax.Array) -> jax.Array:
        return jnp.sum(x * samples.weight) / jnp.sum(samples.weight)

    centred = samples.advantage - mean(samples.advantage)
    # Never scaled up: where all there is to gain is noise, the entropy bonus decides, and not the noise.
    advantage = centred / jnp.maximum(jnp.sqrt(mean(centred**2)), 1.0)

    def objective(parameters: jax.Array) -> jax.Array:
        actor = actor_of(parameters)
        ratio = jnp.exp(log_probability(actor, samples.observation, samples.action) - old_log_probability)
        return mean(ratio * advantage) + entropy_bonus * mean(entropy(actor, samples.observation))

    def kl(parameters: jax.Array) -> jax.Array:
        return mean(divergence(old, actor_of(parameters), samples.observation))

    def fisher(vector: jax.Array) -> jax.Array:
        return jax.jvp(jax.grad(kl), (start,), (vector,))[1] + DAMPING * vector

    step = natural_step(jax.grad(objective)(start), fisher, kl_bound)
    parameters, shrinkage = line_search(objective, kl, start, step, kl_bound)
    actor = actor_of(parameters)
    metrics = {
        "kl": kl(parameters),
        "step_size": shrinkage,
        "deviation": jnp.mean(jnp.exp(actor.log_deviation)),
        "gain": objective(parameters) - objective(start),
    }
    return eqx.tree_at(lambda a: a.actor, agent, actor), metrics


def natural_step(gradient: jax.Array, fisher: Callable[[jax.Array], jax.Array], kl_bound: float) -> jax.Array:
    """sqrt(2 bound / g F^-1 g) F^-1 g: the step uphill that a quadratic model of the divergence says is as long as
    the bound allows."""
    direction = conjugate_gradients(fisher, gradient, ITERATIONS)
    length = jnp.sqrt(2 * kl_bound / jnp.maximum(direction @ fisher(direction), 1e-20))
    return length * direction


def conjugate_gradients(product: Callable[[jax.Array], jax.Array], wanted: jax.Array, iterations: int) -> jax.Array:
    """x with product(x) = wanted, for a symmetric positive definite product."""

    def step(_: int, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        x, residual, direction, square = state
        image = product(direction)
        size = square / jnp.maximum(direction @ image, 1e-20)
        x, residual = x + size * direction, residual - size * image
        smaller = residual @ residual
        return x, residual, residual + smaller / jnp.maximum(square, 1e-20) * direction, smaller

    state = (jnp.zeros_like(wanted), wanted, wanted, wanted @ wanted)
    return jax.lax.fori_loop(0, iterations, step, state)[0]


def line_search(
    objective: Callable[[jax.Array], jax.Array],
    kl: Callable[[jax.Array], jax.Array],
    start: jax.Array,
    step: jax.Array,
    kl_bound: float,
) -> tuple[jax.Array, jax.Array]:
    """The first of the step, its half, its quarter, ... that helps and keeps the bound, and its share; or no step."""
    before = objective(start)

    def fails(shrinkage: jax.Array) -> jax.Array:
        there = start + shrinkage * step
        return ~((objective(there) > before) & (kl(there) <= kl_bound))

    def more(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        shrinkage, tries = state
        return (tries < BACKTRACKS) & fails(shrinkage)

    shrinkage, tries = jax.lax.while_loop(more, lambda s: (s[0] / 2, s[1] + 1), (jnp.ones(()), jnp.zeros((), int)))
    shrinkage = jnp.where(tries < BACKTRACKS, shrinkage, 0.0)
    return start + shrinkage * step, shrinkage


def fit_value(
    agent: Agent, samples: Samples, *, epochs: int, batch: int, learning_rate: float, key: jax.Array
) -> tuple[Agent, jax.Array]:
    """The value function after `epochs` of Adam through all samples, a small batch at a time, and its mean squared
    error before them."""
    adam = optax.adam(learning_rate)
    inputs = (samples.observation - agent.actor.input_mean) / agent.actor.input_std
    size = min(batch, len(inputs))
    batches = len(inputs) // size
    orders = jax.vmap(lambda k: jax.random.permutation(k, len(inputs)))(jax.random.split(key, epochs))
    rows = orders[:, : batches * size].reshape(epochs * batches, size)

    def loss(value: MLP, rows: jax.Array | slice) -> jax.Array:
        return jnp.mean((value(inputs[rows])[..., 0] - samples.value_target[rows]) ** 2)

    def step(state: tuple[MLP, optax.OptState], rows: jax.Array) -> tuple[tuple[MLP, optax.OptState], None]:
        changes, memory = adam.update(jax.grad(loss)(state[0], rows), state[1])
        return (optax.apply_updates(state[0], changes), memory), None

    (fitted, memory), _ = jax.lax.scan(step, (agent.value, agent.value_optimiser), rows)
    return Agent(agent.actor, fitted, memory), loss(agent.value, slice(None))


def _parameters(actor: Actor) -> tuple[jax.Array, Callable[[jax.Array], Actor]]:
    """What is learned of an actor as one vector, and the actor of a vector."""
    flat, back = ravel_pytree((actor.network, actor.log_deviation))

    def actor_of(vector: jax.Array) -> Actor:
        network, log_deviation = back(vector)
        return Actor(network, log_deviation, actor.input_mean, actor.input_std)

    return flat, actor_of
