"""STEVE, stochastic ensemble value expansion (Buckman et al., 2018): critics' targets from imagined futures.

Model dropout chooses the members that imagine, rollout dropout drops the most hopeful of the candidate targets.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from mbdp.agents import ddpg
from mbdp.agents.sac import q_values
from mbdp.algorithm import Learner, Progress, act, create_model, fit_model
from mbdp.baselines.steve_config import Config
from mbdp.compiling import compiled_with_eigen
from mbdp.dropout import rollout_dropout
from mbdp.envs.interact import World
from mbdp.models import ensemble
from mbdp.models.ensemble import Ensemble
from mbdp.models.fit import create_optimiser
from mbdp.networks import MLP, each_on_its_share, fan_in_uniform
from mbdp.plans import Budget
from mbdp.replay import Replay, mixed_minibatches, unpack
from mbdp.streams import generator, key
from mbdp.types import Spec, Termination, Transition

CERTAIN = 1e-8  # is added to a variance before it divides


class Agent(eqx.Module):
    """A DDPG agent and an ensemble of reward networks r(s, a, s')."""

    policy: ddpg.Agent
    rewards: tuple[MLP, ...]
    reward_optimiser: optax.OptState

    @property
    def actor(self) -> MLP:
        return self.policy.actor


def create(config: Config, spec: Spec, *, seed: int) -> Learner:
    """A learner that knows nothing."""
    key_policy, key_rewards = jax.random.split(key(seed, "agent"))
    model = create_model(config, spec, key=key(seed, "model"))
    shape = {"width": config.width, "depth": config.depth, "learning_rate": config.learning_rate}
    sizes = [2 * spec.observation_size + spec.action_size, *[config.width] * config.depth, 1]
    keys = jax.random.split(key_rewards, config.reward_members)
    rewards = tuple(MLP(sizes, jax.nn.relu, fan_in_uniform, key=k) for k in keys)
    return Learner(
        agent=Agent(
            ddpg.create(spec, critics=config.critics, **shape, key=key_policy),  # type: ignore[arg-type]
            rewards,
            optax.adam(config.learning_rate).init(rewards),
        ),
        model=model,
        model_optimiser=create_optimiser(model, config.model_learning_rate),
        d_env=Replay(config.steps, spec),
        d_model=Replay(1, spec),  # nothing imagined is ever stored
    )


def value(agent: Agent, observation: jax.Array, action: jax.Array) -> jax.Array:
    """The discounted return that the critics expect, on average."""
    return ddpg.value(agent.policy, observation, action)


def steve(
    learner: Learner, world: World, config: Config, *, termination: Termination | None, seed: int
) -> Iterator[Progress]:
    """STEVE from where the learner stands. It always learns when episodes end, whatever is known of the task."""
    budget = Budget(config.fit_steps, config.first_fit_steps, config.fit_batch, config.model_learning_rate, True)
    settings = {name: getattr(config, name) for name in ("alpha", "learning_rate", "target_every")}
    improve = partial(update, spec=world.spec, discount=config.discount, **settings)
    while learner.step < config.steps:
        past_warm_up = learner.step - config.random_steps
        fits = past_warm_up >= 0 and past_warm_up % config.model_every == 0
        outcome, metrics = None, dict[str, Any]()
        if not learner.acted:
            outcome = act(learner, world, None if past_warm_up < 0 else ddpg.explore, seed=seed)
            if fits:
                yield Progress(learner.step + 1, outcome, metrics, settled=False)
                continue
        if fits:
            metrics |= fit_model(learner, config, budget, None, seed=seed)
        if past_warm_up >= 0:
            kept = learner.kept
            model, expansion = (learner.model[kept], config.expansion) if len(kept) else (learner.model, 0)
            counts = {"batch": config.batch, "count": config.updates_per_step}
            rng = generator(seed, "minibatch", learner.step)
            minibatches = mixed_minibatches(learner.d_env, learner.d_model, real_ratio=1.0, **counts, rng=rng)
            learner.agent, train = improve(learner.agent, model, minibatches, expansion=expansion)
            metrics |= {f"train/{name}": x for name, x in train.items()}
        learner.settle()
        yield Progress(learner.step, outcome, metrics)


@compiled_with_eigen(static_argnames=("spec", "alpha", "expansion", "learning_rate", "target_every"))
def update(
    agent: Agent,
    model: Ensemble,
    minibatches: jax.Array,
    *,
    spec: Spec,
    alpha: float,
    expansion: int,
    discount: float,
    learning_rate: float,
    target_every: int,
) -> tuple[Agent, dict[str, jax.Array]]:
    """An update of critics, actor and reward networks for each minibatch of rows (updates, batch, row)."""
    adam = optax.adam(learning_rate)

    def step(agent: Agent, rows: jax.Array) -> tuple[Agent, dict[str, jax.Array]]:
        batch = unpack(rows, spec)
        candidates = candidate_targets(agent, model, batch, expansion=expansion, discount=discount)
        target, weight = weigh(candidates, alpha)
        policy, metrics = ddpg.update(
            agent.policy, batch, target, learning_rate=learning_rate, target_every=target_every
        )
        loss, gradient = jax.value_and_grad(reward_loss)(agent.rewards, batch)
        changes, optimiser = adam.update(gradient, agent.reward_optimiser)
        horizon = jnp.mean(weight @ jnp.arange(expansion + 1.0))
        metrics |= {"reward_loss": loss, "expansion": horizon}
        return Agent(policy, optax.apply_updates(agent.rewards, changes), optimiser), metrics

    agent, metrics = jax.lax.scan(step, agent, minibatches)
    return agent, jax.tree.map(jnp.mean, metrics)


def candidate_targets(
    agent: Agent, model: Ensemble, batch: Transition, *, expansion: int, discount: float
) -> jax.Array:
    """T_k for k = 0 ... expansion, by every combination of model, reward network and critic: (batch, k, combination).

    T_k is the real reward, k imagined ones, each worth the probability that the episode still goes on, and a critic.
    """
    members, rewards, critics = len(model), len(agent.rewards), len(agent.policy.target_critic)
    rows = len(batch.reward)
    observation, alive, gathered = batch.next_observation[None], 1 - batch.terminated, batch.reward
    targets = []
    for k in range(expansion + 1):
        action = jnp.tanh(agent.actor(observation))
        q = jnp.moveaxis(q_values(agent.policy.target_critic, observation, action), 0, 1)[:, None]
        worth = discount ** (k + 1) * alive
        targets.append(jnp.broadcast_to(gathered + worth * q, (members, rewards, critics, rows)))
        if k < expansion:
            observation, action = (jnp.broadcast_to(x, (members, *x.shape[1:])) for x in (observation, action))
            normal = model(observation, action)
            following, _, _ = ensemble.sample(normal, model.scaling, observation, noise=jnp.zeros_like(normal.mean))
            reward = jnp.moveaxis(reward_of(agent.rewards, observation, action, following), 0, 1)[:, :, None]
            gathered = gathered + worth * reward
            alive = alive * (1 - jax.nn.sigmoid(normal.terminated_logit))[:, None, None]
            observation = following
    return jnp.moveaxis(jnp.stack(targets).reshape(expansion + 1, -1, rows), -1, 0)


def weigh(candidates: jax.Array, alpha: float) -> tuple[jax.Array, jax.Array]:
    """The target, sum_k w_k mean(T_k) with w_k ~ 1 / variance(T_k), of (batch, k, combination), and the weights.

    One combination has no variance: then all k weigh the same.
    """
    kept = rollout_dropout(candidates, alpha)
    mean = jnp.mean(candidates, axis=-1, where=kept)
    inverse = 1 / (jnp.var(candidates, axis=-1, where=kept) + CERTAIN)
    weight = inverse / jnp.sum(inverse, axis=-1, keepdims=True)
    return jnp.sum(weight * mean, axis=-1), weight


def reward_of(rewards: tuple[MLP, ...], observation: jax.Array, action: jax.Array, following: jax.Array) -> jax.Array:
    """What each reward network says of (s, a, s'), (network, ...)."""
    x = jnp.concatenate([observation, action, following], axis=-1)
    return jnp.stack([one(x)[..., 0] for one in rewards])


def reward_loss(rewards: tuple[MLP, ...], batch: Transition) -> jax.Array:
    """Mean squared error of the reward networks, of which each row teaches one."""
    x = jnp.concatenate([batch.observation, batch.action, batch.next_observation], axis=-1)
    return jnp.mean((each_on_its_share(rewards, x) - batch.reward) ** 2)
