"""SAC's updates by the kernels for a processor: an agent in, a better one out, as `sac.update` has it."""

import dataclasses
import threading
from functools import lru_cache
from typing import Any

import jax
import numpy as np
import optax

from mbdp.kernels import layout, sac_update
from mbdp.kernels.sac_update import MEAN, NUMBERS, SQUARE, TARGET, Settings
from mbdp.kernels.threads import PARTS, in_two_parts
from mbdp.networks import MLP
from mbdp.types import Spec

STATES = 4  # rows of a network: its numbers, Adam's mean and mean square, and a slow copy, which is
AVERAGED = TARGET  # of the actor its average, of a critic its target
METRICS = ("critic_loss", "q_mean", "actor_loss", "entropy", "temperature")


def update(
    agent: Any,
    minibatches: np.ndarray,
    noise: np.ndarray,
    *,
    spec: Spec,
    actor_every: int,
    learning_rate: float,
    discount: float,
    tau: float,
    target_entropy: float,
    new_share: float,
) -> tuple[Any, dict[str, np.ndarray]]:
    """`sac.update_in_jax`, with the same arguments."""
    settings = Settings(
        observations=spec.observation_size,
        actions=spec.action_size,
        actor=layout.shape_of(agent.actor),
        critic=layout.shape_of(agent.critic[0]),
        normalised=bool(agent.critic[0].scales),
        actor_every=actor_every,
        discount=float(discount),
        tau=float(tau),
        target_entropy=float(target_entropy),
        learning_rate=float(learning_rate),
    )
    optimisers = agent.actor_optimiser, agent.critic_optimiser, agent.temperature_optimiser
    of_actor, of_critic, of_temperature = (optimiser[0] for optimiser in optimisers)
    actor = _rows([agent.actor, of_actor.mu, of_actor.nu, agent.averaged_actor])
    states = [[agent.critic[i], of_critic.mu[i], of_critic.nu[i], agent.target_critic[i]] for i in range(PARTS)]
    critics = _rows([network for state in states for network in state])
    temperature = np.array([agent.log_temperature, of_temperature.mu, of_temperature.nu], np.float32)
    counts = np.array([of_actor.count, of_critic.count], np.int64)
    metrics = np.zeros((PARTS, len(METRICS)), np.float32)
    by_critic = critics.reshape(PARTS, STATES, -1)
    with _one_at_a_time:
        room = _room(settings._replace(discount=0.0, tau=0.0, target_entropy=0.0), minibatches.shape[1])
        rows = np.ascontiguousarray(minibatches, np.float32)
        in_two_parts(sac_update.update, rows, noise, actor, by_critic, temperature, counts, metrics, settings, room)
    share = np.float32(new_share)
    actor[AVERAGED] = share * actor[NUMBERS] + (1 - share) * actor[AVERAGED]
    actor_steps = len(minibatches) // actor_every
    trained = _trained(agent, actor, by_critic, temperature, actor_steps, len(minibatches))
    return trained, dict(zip(METRICS, metrics.sum(axis=0) / np.float32(actor_steps), strict=True))


def _trained(
    agent: Any, actor: np.ndarray, critics: np.ndarray, temperature: np.ndarray, actor_steps: int, critic_steps: int
) -> Any:
    """The agent with what is in the rows now: of the actor, of each critic, and of the temperature."""
    as_actor, as_critic = layout.reader(agent.actor), layout.reader(agent.critic[0])

    def actor_row(state: int) -> MLP:
        return as_actor(actor[state])

    def critic_rows(state: int) -> tuple[MLP, ...]:
        return tuple(as_critic(row) for row in critics[:, state])

    return dataclasses.replace(
        agent,
        actor=actor_row(NUMBERS),
        averaged_actor=actor_row(AVERAGED),
        critic=critic_rows(NUMBERS),
        target_critic=critic_rows(TARGET),
        log_temperature=temperature[0],
        actor_optimiser=_optimiser(agent.actor_optimiser, actor_steps, actor_row(MEAN), actor_row(SQUARE)),
        critic_optimiser=_optimiser(agent.critic_optimiser, critic_steps, critic_rows(MEAN), critic_rows(SQUARE)),
        temperature_optimiser=_optimiser(agent.temperature_optimiser, actor_steps, temperature[1], temperature[2]),
    )


def _rows(networks: list[MLP]) -> np.ndarray:
    """Networks of one shape, a row each; at once if they are views of such rows already."""
    shape = len(networks), layout.row_size(layout.shape_of(networks[0]))
    leaves = [leaf for network in networks for leaf in jax.tree.leaves(network)]
    shared = layout.leaves_share(leaves, shape)
    if shared is not None:
        return layout.copy(shared)
    rows = layout.zeros(*shape)
    for row, network in zip(rows, networks, strict=True):
        layout.fill(row, network)
    return rows


def _optimiser(before: optax.OptState, steps: int, mean: Any, square: Any) -> optax.OptState:
    """Adam's memory after so many steps."""
    first, *rest = before
    return (first._replace(count=np.int32(first.count + steps), mu=mean, nu=square), *rest)


_one_at_a_time = threading.Lock()  # of the updates in this process: they share the room
_room = lru_cache(maxsize=2)(sac_update.room)
