"""The training rollout: SAC whose critics and actor learn from H differentiable steps in the model (double horizon).

From a state of `d_model` the actor acts H times in the kept members. The soft return of that path,

    G = sum_{h<H} gamma^h alive_h (r_h - T log pi_h) + gamma^H alive_H (Q(s_H, a_H) - T log pi_H),

is what the actor climbs, through the model, with Q the critics' mean. Without its first entropy term, and with Q the
smaller of two target critics, it is what the critics regress on at (s_0, a_0).
Critics may also regress on real transitions (s, a, r, s', d): a rollout that starts in s' gives the target
r + gamma (1 - d) G(s'). So they see ends of episodes that the models do not predict.
Rollout dropout has a reading of its own here: each (s_0, a_0) is imagined in several members, and the highest fraction
alpha of these returns is dropped. That is Theorem 3.1's V_alpha, of returns and not of rewards, with a gradient.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from mbdp.agents import sac
from mbdp.agents.sac import Critics, q_values, squash
from mbdp.dropout import rollout_dropout
from mbdp.models.ensemble import Ensemble, Normal, predict, sample
from mbdp.networks import MLP
from mbdp.plans import Shape, TrainingRollout
from mbdp.types import Spec, Transition

BOUND_QUANTILES = (0.01, 0.99)  # of the soft rewards, which bound what critics may say


class Agent(sac.Agent):
    """SAC's agent whose critics speak in units of `bounds`: what a return is at least and at most."""

    bounds: jax.Array


class TrainingPath(NamedTuple):
    """A training rollout of n rows: rewards (H, n), log pi and the probability of being alive (H + 1, n)."""

    reward: jax.Array
    log_probability: jax.Array
    alive: jax.Array
    first: tuple[jax.Array, jax.Array]  # observation and action
    last: tuple[jax.Array, jax.Array]


def create(spec: Spec, shape: Shape, *, key: jax.Array) -> Agent:
    """A fresh agent; its critics say the middle of their bounds, because their last layers are zero."""
    agent = sac.create(spec, shape, key=key)
    critic = tuple(eqx.tree_at(lambda n: n.weights[-1], one, jnp.zeros_like(one.weights[-1])) for one in agent.critic)
    fields = {one.name: getattr(agent, one.name) for one in dataclasses.fields(agent)}
    return Agent(**fields | {"critic": critic, "target_critic": critic}, bounds=jnp.zeros(2))


def value(agent: Agent, observation: jax.Array, action: jax.Array) -> jax.Array:
    """The discounted return, entropy bonus included, that the critics expect on average."""
    return jnp.mean(_bounded_q(agent.critic, agent.bounds, observation, action), axis=0)


@partial(jax.jit, static_argnames="plan")
def update(
    agent: Agent,
    model: Ensemble,
    starts: jax.Array,
    real: Transition,
    *,
    plan: TrainingRollout,
    new_share: float,
    key: jax.Array,
) -> tuple[Agent, dict[str, jax.Array]]:
    """An update for each minibatch of start states (update, row, observation); the metrics are means over them.

    Beside them, a share of real transitions (update, row, ...), which may have no rows.
    """
    adam = optax.adam(plan.learning_rate)

    def step(agent: Agent, inputs: tuple[jax.Array, Transition, jax.Array]) -> tuple[Agent, dict[str, jax.Array]]:
        own, really, key = inputs
        temperature = jnp.exp(agent.log_temperature)
        gradient, (target, first, soft_reward, metrics) = jax.grad(_loss, has_aux=True)(
            agent.actor, agent, model, own, really, plan, key
        )
        bounds = _followed(agent.bounds, soft_reward, plan)
        critic_loss, of_critic = jax.value_and_grad(_critic_loss)(agent.critic, bounds, first, target)
        changes, critic_optimiser = adam.update(of_critic, agent.critic_optimiser)
        critic = optax.apply_updates(agent.critic, changes)
        changes, actor_optimiser = adam.update(gradient, agent.actor_optimiser)
        warmer, temperature_optimiser = adam.update(
            metrics["entropy"] - plan.target_entropy, agent.temperature_optimiser
        )
        updated = dataclasses.replace(
            agent,
            actor=optax.apply_updates(agent.actor, changes),
            critic=critic,
            target_critic=optax.incremental_update(critic, agent.target_critic, plan.tau),
            log_temperature=agent.log_temperature + warmer,
            actor_optimiser=actor_optimiser,
            critic_optimiser=critic_optimiser,
            temperature_optimiser=temperature_optimiser,
            bounds=bounds,
        )
        said = {"critic_loss": critic_loss, "temperature": temperature, "actor_gradient": optax.tree.norm(gradient)}
        return updated, metrics | said

    agent, metrics = jax.lax.scan(step, agent, (starts, real, jax.random.split(key, len(starts))))
    averaged = optax.incremental_update(agent.actor, agent.averaged_actor, new_share)
    return dataclasses.replace(agent, averaged_actor=averaged), jax.tree.map(jnp.mean, metrics)


Learned = tuple[jax.Array, tuple[jax.Array, jax.Array], jax.Array, dict[str, jax.Array]]


def _loss(
    actor: MLP,
    agent: Agent,
    model: Ensemble,
    starts: jax.Array,
    real: Transition,
    plan: TrainingRollout,
    key: jax.Array,
) -> tuple[jax.Array, Learned]:
    """Minus the actor's mean soft return; beside it the critics' targets, where they hold, and the soft rewards."""
    key_path, key_pair, key_rounding = jax.random.split(key, 3)
    temperature = jnp.exp(agent.log_temperature)
    starts = jnp.concatenate([real.next_observation, starts])
    alive = jnp.ones(len(starts)).at[: len(real.terminated)].set(1 - real.terminated)
    path = imagine(actor, model, starts, plan, at_start=alive, key=key_path)
    hoped = jnp.mean(_bounded_q(agent.critic, agent.bounds, *path.last), axis=0)
    pair = jax.random.choice(key_pair, len(agent.critic), (2,), replace=False) if len(agent.critic) > 2 else slice(2)
    doubted = jnp.min(_bounded_q(agent.target_critic, agent.bounds, *path.last)[pair], axis=0)
    climbed = soft_return(path, hoped, temperature, plan.discount)
    target = soft_return(path, jnp.clip(doubted, *agent.bounds), temperature, plan.discount)
    entropy_bonus = -temperature * path.alive[0] * path.log_probability[0]  # of a_0, not part of Q(s_0, a_0)
    target = target - entropy_bonus
    rounding = jax.random.uniform(key_rounding, (len(starts),))
    share = kept_share(jax.lax.stop_gradient(target).reshape(plan.siblings, -1), plan.alpha, rounding)
    climbed, target = (jnp.sum(share * x.reshape(share.shape), axis=0) for x in (climbed, target))
    after = target[: len(real.reward)] + entropy_bonus[: len(real.reward)]
    target = jnp.concatenate([target, real.reward + plan.discount * after])
    first = (  # the same for all siblings
        jnp.concatenate([path.first[0][: len(starts)], real.observation]),
        jnp.concatenate([path.first[1][: len(starts)], real.action]),
    )
    soft_reward = path.reward - temperature * path.log_probability[:-1]
    metrics = {
        "actor_loss": -jnp.mean(climbed),
        "entropy": -jnp.mean(path.log_probability[0]),
        "q_mean": jnp.mean(target),
        "alpha_effective": jnp.mean(share == 0),
    }
    return -jnp.mean(climbed), jax.lax.stop_gradient((target, first, soft_reward, metrics))


def imagine(
    actor: MLP,
    model: Ensemble,
    starts: jax.Array,
    plan: TrainingRollout,
    *,
    at_start: jax.Array | float = 1.0,
    key: jax.Array,
) -> TrainingPath:
    """H steps from each start, `plan.siblings` times: they share the first action and all noise, but not the members.

    So what dropout compares differs by what members believe, and not by chance.

    `at_start` is 0 for starts in which an episode has ended. A known end is sharp and has no gradient; a learned one
    counts with its probability and has one.
    """
    observation = jnp.tile(starts, (plan.siblings, 1))
    alive = jnp.tile(jnp.broadcast_to(jnp.asarray(at_start, jnp.float32), len(starts)), plan.siblings)
    rewards, log_probabilities, lives, first = [], [], [alive], (observation, observation)
    for h, key_step in enumerate(jax.random.split(key, plan.steps + 1)):
        key_action, key_noise, key_members = jax.random.split(key_step, 3)
        output = actor(observation if h else starts)
        noise = jax.random.normal(key_action, (len(starts), output.shape[-1] // 2))
        action, log_probability = squash(output, jnp.tile(noise, (plan.siblings, 1)) if h else noise)
        if h == 0:
            action, log_probability = jnp.tile(action, (plan.siblings, 1)), jnp.tile(log_probability, plan.siblings)
        log_probabilities.append(log_probability)
        first = (observation, action) if h == 0 else first
        if h == plan.steps:
            break
        normal = _predict(model, observation, action, plan, key=key_members)
        noise = jax.random.normal(key_noise, (len(starts), normal.mean.shape[-1]))
        noise = jnp.tile(noise, (plan.siblings, 1))
        following, reward, _ = sample(normal, model.scaling, observation, noise=noise)
        reward = reward if plan.reward is None else plan.reward(observation, action, following)
        if plan.termination is None:
            alive = alive * jax.nn.sigmoid(-normal.terminated_logit)
        else:
            alive = alive * (1 - plan.termination(observation, action, following))
        rewards.append(reward)
        lives.append(alive)
        observation = following
    reward, log_probability, alive = map(jnp.stack, (rewards, log_probabilities, lives))
    return TrainingPath(reward, log_probability, alive, first, (observation, action))


def soft_return(path: TrainingPath, end: jax.Array, temperature: jax.Array, discount: float) -> jax.Array:
    """G of each row, where `end` is what critics say of the last state and action."""
    weight = discount ** jnp.arange(len(path.alive))[:, None] * path.alive
    gained = jnp.concatenate([path.reward, end[None]]) - temperature * path.log_probability
    return jnp.sum(weight * gained, axis=0)


def kept_share(returns: jax.Array, alpha: float, rounding: jax.Array) -> jax.Array:
    """Weights (sibling, state) with which siblings are averaged: 0 for the highest returns, which are dropped."""
    kept = rollout_dropout(returns, alpha, axis=0, rounding=rounding) if alpha else jnp.isfinite(returns)
    return kept / jnp.maximum(jnp.sum(kept, axis=0), 1)


def _predict(
    model: Ensemble, observation: jax.Array, action: jax.Array, plan: TrainingRollout, *, key: jax.Array
) -> Normal:
    """One step of all rows: each sibling, or each share of the rows, in a member of its own, drawn anew every step."""
    order = jax.random.permutation(key, len(model))
    shares = plan.siblings if plan.siblings > 1 else len(model) if plan.member_per_row else 1
    parts = zip(*(jnp.array_split(x, shares) for x in (observation, action)), strict=True)
    said = [
        predict(jax.tree.map(lambda x, i=i: x[order[i % len(model)]], model.members), model.scaling, *part)
        for i, part in enumerate(parts)
    ]
    return Normal(*map(jnp.concatenate, zip(*said, strict=True)))


def _critic_loss(
    critic: Critics, bounds: jax.Array, first: tuple[jax.Array, jax.Array], target: jax.Array
) -> jax.Array:
    """Squared error of all critics at the first state and action."""
    return jnp.sum(jnp.mean((_bounded_q(critic, bounds, *first) - target) ** 2, axis=-1))


def _bounded_q(critic: Critics, bounds: jax.Array, observation: jax.Array, action: jax.Array) -> jax.Array:
    """What each critic says: the middle of the bounds plus half their width times its network."""
    low, high = bounds
    return (high + low) / 2 + (high - low) / 2 * q_values(critic, observation, action)


def _followed(bounds: jax.Array, soft_reward: jax.Array, plan: TrainingRollout) -> jax.Array:
    """Bounds on returns, as slow as the target critics: quantiles of the soft reward, for ever, or 0, an episode's end.

    Without the 0, a hopper that earns 1 in every step could never be told that it is about to fall.
    """
    low, high = jnp.quantile(soft_reward, jnp.array(BOUND_QUANTILES)) / (1 - plan.discount)
    fresh = jnp.stack([jnp.minimum(low, 0.0), jnp.maximum(high, 0.0)])
    return jnp.where(bounds[0] == bounds[1], fresh, bounds + plan.tau * (fresh - bounds))
