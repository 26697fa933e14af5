"""Soft actor-critic: one immutable agent in, a better one out, many updates in one compiled call."""

import dataclasses
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from mbdp import networks
from mbdp.networks import MLP, fan_in_uniform, on_host, plain_layers
from mbdp.plans import Shape
from mbdp.replay import unpack
from mbdp.types import Spec, Transition

LOG_STD_RANGE = (-20.0, 2.0)
AVERAGED_SHARE = 0.1  # of all calls of `update` so far, at most, lest an average lags behind a young actor


# A tuple and not one stacked network: XLA's batched products on a CPU are slower than plain ones.
Critics = tuple[MLP, ...]
ACTIVATIONS = {"relu": jax.nn.relu, "silu": jax.nn.silu}


class Agent(eqx.Module):
    """Squashed Gaussian actor, twin critics with their targets, temperature, and the optimisers' memories.

    What an actor learns last may be a fall that it unlearns at once; the average of its weights over some env steps
    is the policy to use.
    """

    actor: MLP
    averaged_actor: MLP
    critic: Critics
    target_critic: Critics
    log_temperature: jax.Array
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    temperature_optimiser: optax.OptState


def create(spec: Spec, shape: Shape, *, key: jax.Array) -> Agent:
    """A fresh agent."""
    key_actor, *keys_critic = jax.random.split(key, 1 + shape.critics)
    hidden, activation = [shape.width] * shape.depth, ACTIVATIONS[shape.activation]

    def network(inputs: int, outputs: int, key: jax.Array, layer_norm: bool = False) -> MLP:
        sizes = [inputs, *hidden, outputs]
        scaled = shape.normalised_inputs
        return MLP(sizes, activation, fan_in_uniform, layer_norm=layer_norm, normalised_inputs=scaled, key=key)

    actor = network(spec.observation_size, 2 * spec.action_size, key_actor)
    inputs = spec.observation_size + spec.action_size
    critic = tuple(network(inputs, 1, k, shape.layer_norm) for k in keys_critic)
    log_temperature = jnp.log(jnp.asarray(shape.temperature, jnp.float32))
    optimiser = optax.adam(shape.learning_rate)
    return Agent(
        actor=actor,
        averaged_actor=actor,
        critic=critic,
        target_critic=critic,
        log_temperature=log_temperature,
        actor_optimiser=optimiser.init(actor),
        critic_optimiser=optimiser.init(critic),
        temperature_optimiser=optimiser.init(log_temperature),
    )


def with_input_scale(agent: Agent, mean: jax.Array, std: jax.Array) -> Agent:
    """The agent with its inputs normalised by these statistics of the observations, if it normalises them at all."""

    def scaled(network: MLP) -> MLP:
        return networks.with_input_scale(network, mean, std)

    return dataclasses.replace(
        agent,
        actor=scaled(agent.actor),
        averaged_actor=scaled(agent.averaged_actor),
        critic=tuple(map(scaled, agent.critic)),
        target_critic=tuple(map(scaled, agent.target_critic)),
    )


def squash(output: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The action that an actor's output and standard normal noise make, and its log-probability."""
    mean, log_std = jnp.split(output, 2, axis=-1)
    log_std = jnp.clip(log_std, *LOG_STD_RANGE)
    raw = mean + noise * jnp.exp(log_std)
    log_density = -0.5 * (noise**2 + jnp.log(2 * jnp.pi)) - log_std
    # log(1 - tanh(x)^2) in a form that does not underflow; log1p would gain no digits here and costs far more
    size = jnp.abs(raw)
    log_jacobian = 2 * (jnp.log(2.0) - size - jnp.log(1 + jnp.exp(-2 * size)))
    return jnp.tanh(raw), jnp.sum(log_density - log_jacobian, axis=-1)


def explore(actor: MLP, observation: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
    """The stochastic action that collects real samples."""
    mean, log_std = np.split(on_host(actor, observation), 2, axis=-1)
    return np.tanh(mean + rng.standard_normal(mean.shape, np.float32) * np.exp(np.clip(log_std, *LOG_STD_RANGE)))


def greedy(agent: Agent, actions: int) -> dict[str, Any]:
    """The layers of the averaged actor's most likely action, as `Policy` takes them."""
    weights, biases = plain_layers(agent.averaged_actor)
    hidden = networks.NAMES[agent.averaged_actor.activation]
    weights[-1], biases[-1] = weights[-1][:, :actions], biases[-1][:actions]  # the mean; the rest is the deviation
    return {"weights": tuple(weights), "biases": tuple(biases), "hidden": hidden, "output": "tanh"}


def value(agent: Agent, observation: jax.Array, action: jax.Array) -> jax.Array:
    """The discounted return, entropy bonus included, that the critics expect."""
    return jnp.min(q_values(agent.critic, observation, action), axis=0)


def q_values(critic: tuple[MLP, ...], observation: jax.Array, action: jax.Array) -> jax.Array:
    """What each critic says: (critic, batch)."""
    x = jnp.concatenate([observation, action], axis=-1)
    return jnp.stack([one(x)[..., 0] for one in critic])


def update(
    agent: Agent,
    minibatches: Any,
    *,
    spec: Spec,
    actor_every: int,
    learning_rate: float,
    discount: float,
    tau: float,
    target_entropy: float,
    key: jax.Array,
    average_over: float = 1,
) -> tuple[Agent, dict[str, Any]]:
    """A critic step for each minibatch of rows (updates, batch, row), an actor step after every `actor_every` of them.

    If that is one, both start from the same critics, so that neither waits for the other. The averaged actor
    covers about the last `average_over` calls. The metrics are means over the steps.
    """
    steps = len(minibatches) // actor_every
    settings: dict[str, Any] = {
        "spec": spec,
        "actor_every": actor_every,
        "learning_rate": learning_rate,
        "discount": discount,
        "tau": tau,
        "target_entropy": target_entropy,
        "new_share": new_share(agent, steps, average_over),
    }
    noise = noise_of(key, minibatches, actor_every, spec)
    return _update(agent, minibatches, noise, **settings)


def new_share(agent: Agent, steps: int, average_over: float) -> float:
    """Of the newest actor in the averaged one after a call of `steps` actor steps."""
    calls = (int(agent.actor_optimiser[0].count) + steps) / steps
    return 1 / min(max(AVERAGED_SHARE * calls, 1), average_over)


def noise_of(key: jax.Array, minibatches: Any, actor_every: int, spec: Spec) -> np.ndarray:
    """What the actor draws: (actor step, one for it and one for each critic step, row, action)."""
    updates, batch, _ = minibatches.shape
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    return rng.standard_normal((updates // actor_every, 1 + actor_every, batch, spec.action_size), np.float32)


@partial(jax.jit, static_argnames=("spec", "actor_every", "learning_rate"))
def _update(
    agent: Agent,
    minibatches: jax.Array,
    noise: jax.Array,
    *,
    spec: Spec,
    actor_every: int,
    learning_rate: float,
    discount: float,
    tau: float,
    target_entropy: float,
    new_share: float,
) -> tuple[Agent, dict[str, jax.Array]]:
    """`update`, compiled; the newest actor has `new_share` in the average."""
    optimiser = optax.adam(learning_rate)

    def step(agent: Agent, inputs: tuple[jax.Array, jax.Array]) -> tuple[Agent, dict[str, jax.Array]]:
        rows, (noise_actor, *noise_critic) = inputs
        before = agent.critic
        for some, own in zip(rows, noise_critic, strict=True):
            batch = unpack(some, spec)
            agent, critic_metrics = update_critic(agent, batch, optimiser, discount=discount, tau=tau, noise=own)
        critic = before if actor_every == 1 else agent.critic
        agent, actor_metrics = update_actor(
            agent, critic, batch, optimiser, target_entropy=target_entropy, noise=noise_actor
        )
        return agent, critic_metrics | actor_metrics

    groups = minibatches.reshape(-1, actor_every, *minibatches.shape[1:])
    agent, metrics = jax.lax.scan(step, agent, (groups, noise))
    averaged = optax.incremental_update(agent.actor, agent.averaged_actor, new_share)
    return _replace(agent, averaged_actor=averaged), jax.tree.map(jnp.mean, metrics)


def update_critic(
    agent: Agent,
    batch: Transition,
    optimiser: optax.GradientTransformation,
    *,
    discount: float,
    tau: float,
    noise: jax.Array,
) -> tuple[Agent, dict[str, jax.Array]]:
    """Towards r + gamma (1 - terminated) (min Q_target(s', a') - temperature log pi(a'|s')): time limits bootstrap."""
    next_action, next_log_probability = squash(agent.actor(batch.next_observation), noise)
    next_q = jnp.min(q_values(agent.target_critic, batch.next_observation, next_action), axis=0)
    next_value = next_q - jnp.exp(agent.log_temperature) * next_log_probability
    target = batch.reward + discount * (1 - batch.terminated) * next_value

    def loss(critic: Critics) -> tuple[jax.Array, jax.Array]:
        q = q_values(critic, batch.observation, batch.action)
        return jnp.sum(jnp.mean((q - target) ** 2, axis=-1)), jnp.mean(q)

    (value, q), gradient = jax.value_and_grad(loss, has_aux=True)(agent.critic)
    changes, state = optimiser.update(gradient, agent.critic_optimiser)
    critic = optax.apply_updates(agent.critic, changes)
    target_critic = optax.incremental_update(critic, agent.target_critic, tau)
    agent = _replace(agent, critic=critic, target_critic=target_critic, critic_optimiser=state)
    return agent, {"critic_loss": value, "q_mean": q}


def update_actor(
    agent: Agent,
    critic: Critics,
    batch: Transition,
    optimiser: optax.GradientTransformation,
    *,
    target_entropy: float,
    noise: jax.Array,
) -> tuple[Agent, dict[str, jax.Array]]:
    """Actor towards high soft value in the critics' eyes, temperature towards the target entropy."""
    temperature = jnp.exp(agent.log_temperature)

    def actor_loss(actor: MLP) -> tuple[jax.Array, jax.Array]:
        action, log_probability = squash(actor(batch.observation), noise)
        q = jnp.min(q_values(critic, batch.observation, action), axis=0)
        return jnp.mean(temperature * log_probability - q), -jnp.mean(log_probability)

    (value, entropy), gradient = jax.value_and_grad(actor_loss, has_aux=True)(agent.actor)
    changes, state = optimiser.update(gradient, agent.actor_optimiser)
    surplus = entropy - target_entropy
    step, temperature_state = optimiser.update(surplus, agent.temperature_optimiser)
    agent = _replace(
        agent,
        actor=optax.apply_updates(agent.actor, changes),
        actor_optimiser=state,
        log_temperature=agent.log_temperature + step,
        temperature_optimiser=temperature_state,
    )
    return agent, {"actor_loss": value, "entropy": entropy, "temperature": temperature}


def _replace(agent: Agent, **changes: Any) -> Agent:
    return dataclasses.replace(agent, **changes)
