"""Deterministic policy gradient with an ensemble of critics, as STEVE builds on it: an agent in, a better one out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from mbdp.agents.sac import q_values
from mbdp.networks import MLP, each_on_its_share, fan_in_uniform, on_host
from mbdp.types import Spec, Transition

Critics = tuple[MLP, ...]
REPLACED = 0.05  # probability, for each number of an action, of exploring with noise in its place
SATURATION_PENALTY = 1e-3  # on squared actions before tanh: a saturated actor has no gradient


class Agent(eqx.Module):
    """Actor, critics, the critics' last hard copy, and the optimisers' memories."""

    actor: MLP
    critic: Critics
    target_critic: Critics
    updates: jax.Array
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState


def create(spec: Spec, *, critics: int, width: int, depth: int, learning_rate: float, key: jax.Array) -> Agent:
    """A fresh agent."""
    key_actor, key_critic = jax.random.split(key)
    hidden = [width] * depth
    actor = MLP([spec.observation_size, *hidden, spec.action_size], jax.nn.relu, fan_in_uniform, key=key_actor)
    sizes = [spec.observation_size + spec.action_size, *hidden, 1]
    critic = tuple(MLP(sizes, jax.nn.relu, fan_in_uniform, key=k) for k in jax.random.split(key_critic, critics))
    adam = optax.adam(learning_rate)
    return Agent(actor, critic, critic, jnp.zeros((), jnp.int32), adam.init(actor), adam.init(critic))


def explore(actor: MLP, observation: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
    """The policy's action with a few of its numbers drawn anew: tanh of a standard normal."""
    raw = on_host(actor, observation)
    which = rng.random(raw.shape) < REPLACED
    return np.tanh(np.where(which, rng.standard_normal(raw.shape, np.float32), raw))


def greedy(agent: Any, actions: int) -> dict[str, Any]:
    """The deterministic policy's layers, as `Policy` takes them."""
    layers = agent.actor.weights, agent.actor.biases
    weights, biases = (tuple(np.asarray(x) for x in one) for one in layers)
    return {"weights": weights, "biases": biases, "hidden": "relu", "output": "tanh"}


def value(agent: Agent, observation: jax.Array, action: jax.Array) -> jax.Array:
    """The discounted return that the critics expect, on average."""
    return jnp.mean(q_values(agent.critic, observation, action), axis=0)


def update(
    agent: Agent, batch: Transition, target: jax.Array, *, learning_rate: float, target_every: int
) -> tuple[Agent, dict[str, jax.Array]]:
    """Critics towards `target`, actor uphill in their mean, and every `target_every` updates a copy of the critics.

    A row teaches one critic, so that critics differ where little is known.
    """
    adam = optax.adam(learning_rate)

    def critic_loss(critic: Critics) -> tuple[jax.Array, jax.Array]:
        q = each_on_its_share(critic, jnp.concatenate([batch.observation, batch.action], axis=-1))
        return jnp.mean((q - target) ** 2), jnp.mean(q)

    (loss, q), gradient = jax.value_and_grad(critic_loss, has_aux=True)(agent.critic)
    changes, critic_optimiser = adam.update(gradient, agent.critic_optimiser)
    critic = optax.apply_updates(agent.critic, changes)

    def actor_loss(actor: MLP) -> jax.Array:
        raw = actor(batch.observation)
        q = jnp.mean(q_values(critic, batch.observation, jnp.tanh(raw)))
        return SATURATION_PENALTY * jnp.mean(raw**2) - q

    actor_value, gradient = jax.value_and_grad(actor_loss)(agent.actor)
    changes, actor_optimiser = adam.update(gradient, agent.actor_optimiser)
    updates = agent.updates + 1
    copy = updates % target_every == 0
    target_critic = jax.tree.map(lambda new, old: jnp.where(copy, new, old), critic, agent.target_critic)
    actor = optax.apply_updates(agent.actor, changes)
    better = Agent(actor, critic, target_critic, updates, actor_optimiser, critic_optimiser)
    return better, {"critic_loss": loss, "q_mean": q, "actor_loss": actor_value}
