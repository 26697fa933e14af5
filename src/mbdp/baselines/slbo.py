"""SLBO, stochastic lower bound optimisation (Luo et al., 2019): a model fitted over several steps, and TRPO inside it.

Model dropout chooses the members that imagine, rollout dropout the imagined samples that TRPO learns from. The authors
know the reward; here it is learned with the rest of the model.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdp.agents import trpo
from mbdp.algorithm import Learner, Progress, act, create_model, describe_model
from mbdp.baselines.slbo_config import Config
from mbdp.dropout import model_dropout, rollout_dropout
from mbdp.envs.interact import World
from mbdp.models import ensemble
from mbdp.models.ensemble import Ensemble, Scaling
from mbdp.models.fit import create_optimiser, examination, scaling_of, score, split
from mbdp.models.multi_step_fit import fit_over_several_steps, goes_on, sequences
from mbdp.replay import Replay, unpack
from mbdp.rollout import ends, predict_with_one_member
from mbdp.streams import generator, key
from mbdp.types import Spec, Termination

PULL, PUSH = 0.15, 0.3  # of the Ornstein-Uhlenbeck noise that explores


class Agent(eqx.Module):
    """A TRPO agent, and the noise that it explores with."""

    policy: trpo.Agent
    noise: jax.Array

    @property
    def actor(self) -> trpo.Actor:
        return self.policy.actor


def create(config: Config, spec: Spec, *, seed: int) -> Learner:
    """A learner that knows nothing."""
    names = ("width", "depth", "value_width", "value_learning_rate")
    model = create_model(config, spec, key=key(seed, "model"))
    policy = trpo.create(spec, **{name: getattr(config, name) for name in names}, key=key(seed, "agent"))
    return Learner(
        agent=Agent(policy, jnp.zeros(spec.action_size)),
        model=model,
        model_optimiser=create_optimiser(model, config.model_learning_rate),
        d_env=Replay(config.steps, spec),
        d_model=Replay(1, spec),  # nothing imagined outlives the step that learns from it
    )


def value(agent: Agent, observation: jax.Array, action: jax.Array) -> jax.Array:
    """The discounted return that is expected from a state."""
    return trpo.value(agent.policy, observation)


def slbo(
    learner: Learner, world: World, config: Config, *, termination: Termination | None, seed: int
) -> Iterator[Progress]:
    """SLBO from where the learner stands; it yields after each round of a stage."""
    while learner.step < config.steps:
        outcome, metrics = None, dict[str, Any]()
        if learner.acted:
            metrics = _round(learner, config, termination, world.longest_episode, seed)
            learner.rounds -= 1
        else:
            before = np.asarray(learner.agent.noise)
            push = generator(seed, "action", learner.step, part=1).standard_normal(before.shape, np.float32)
            noise = (1 - PULL) * before + PUSH * push
            outcome = act(learner, world, partial(trpo.explore, noise=noise), seed=seed)
            learner.agent = Agent(learner.agent.policy, jnp.asarray(noise))
            learner.rounds = config.rounds if (learner.step + 1) % config.stage == 0 else 0
        if settled := not learner.rounds:
            learner.settle()
        yield Progress(learner.step if settled else learner.step + 1, outcome, metrics, settled)


def _round(
    learner: Learner, config: Config, termination: Termination | None, longest: int | None, seed: int
) -> dict[str, Any]:
    """Model steps on all that is known of the world, then TRPO steps in what the best members imagine."""
    rng = generator(seed, "minibatch", learner.step, learner.rounds)
    spec, rows = learner.d_env.spec, learner.d_env.rows[: len(learner.d_env)]
    if len(rows) < config.steps_ahead:
        return {}
    scaling = scaling_of(rows, spec)
    held_out = split(len(rows), 1, seed)[1]
    pieces = sequences(rows, spec, config.steps_ahead, held_out)
    chosen = rng.choice(pieces, (config.model_steps, config.members, config.fit_batch))
    batches = rows[chosen[..., None] + np.arange(config.steps_ahead)]
    members, learner.model_optimiser, loss = fit_over_several_steps(
        Ensemble(learner.model.members, scaling),
        learner.model_optimiser,
        batches,
        spec=spec,
        learning_rate=config.model_learning_rate,
        learn_termination=termination is None,
    )
    learner.model = Ensemble(members, scaling)
    bias = np.asarray(getattr(score(learner.model, *examination(rows, held_out, rng), spec), config.bias))
    kept = model_dropout(bias, config.beta)
    metrics = describe_model(bias, kept) | {"train/model_loss": loss}
    if not len(kept):  # every member has diverged: there is nothing to learn from
        return metrics
    starts = episode_starts(rows, spec)
    names = "alpha discount trace kl_bound entropy_bonus value_epochs value_batch value_learning_rate"
    policy, train = improve(
        rescaled(learner.agent.policy, scaling),
        learner.model[kept],
        starts[rng.integers(len(starts), size=(config.policy_steps, config.imagined_steps, config.lanes))],
        termination=termination,
        longest=longest,
        key=key(seed, "rollout", learner.step, learner.rounds),
        **{name: getattr(config, name) for name in names.split()},
    )
    learner.agent = Agent(policy, learner.agent.noise)
    metrics["imagination/kept_fraction"] = train.pop("kept_fraction")
    return metrics | {f"train/{name}": x for name, x in train.items()}


def episode_starts(rows: np.ndarray, spec: Spec) -> np.ndarray:
    """The observations that episodes began with."""
    return unpack(rows, spec).observation[np.concatenate([[True], ~goes_on(rows, spec)])]


@partial(
    jax.jit,
    static_argnames=("termination", "longest", "alpha", "value_epochs", "value_batch", "value_learning_rate"),
)
def improve(
    agent: trpo.Agent,
    model: Ensemble,
    starts: jax.Array,
    *,
    termination: Termination | None,
    longest: int | None,
    alpha: float,
    discount: float,
    trace: float,
    kl_bound: float,
    entropy_bonus: float,
    value_epochs: int,
    value_batch: int,
    value_learning_rate: float,
    key: jax.Array,
) -> tuple[trpo.Agent, dict[str, jax.Array]]:
    """A TRPO step for each of `starts` (policy step, time, lane, observation), each on freshly imagined episodes."""

    def step(agent: trpo.Agent, inputs: tuple[jax.Array, jax.Array]) -> tuple[trpo.Agent, dict[str, jax.Array]]:
        starts, key = inputs
        key_path, key_value = jax.random.split(key)
        path = imagine(model, agent.actor, starts, termination=termination, longest=longest, key=key_path)
        value, following = (trpo.value(agent, x) for x in (path.observation, path.following))
        ended, cut = path.terminated.astype(jnp.float32), path.cut.astype(jnp.float32).at[-1].set(1.0)
        advantage = trpo.advantages(path.reward, value, following, ended, cut, discount=discount, trace=trace)
        kept = rollout_dropout(path.reward.reshape(-1), alpha).astype(jnp.float32)
        lanes = (path.observation, path.action, advantage, advantage + value)
        observation, action, *numbers = (x.reshape(-1, *x.shape[2:]) for x in lanes)
        samples = trpo.Samples(observation, action, numbers[0], numbers[1], kept)
        agent, metrics = trpo.update(agent, samples, kl_bound=kl_bound, entropy_bonus=entropy_bonus)
        agent, error = trpo.fit_value(
            agent,
            samples,
            epochs=value_epochs,
            batch=value_batch,
            learning_rate=value_learning_rate,
            key=key_value,
        )
        imagined = {"reward_mean": jnp.mean(path.reward), "q_mean": jnp.mean(value), "critic_loss": error}
        return agent, metrics | imagined | {"ended": jnp.mean(ended), "kept_fraction": jnp.mean(kept)}

    agent, metrics = jax.lax.scan(step, agent, (starts, jax.random.split(key, len(starts))))
    return agent, jax.tree.map(jnp.mean, metrics)


class ImaginedPath(NamedTuple):
    """Imagined steps, (time, lane, ...) each; actions as drawn, before the world bounds them."""

    observation: jax.Array
    action: jax.Array
    reward: jax.Array
    following: jax.Array
    terminated: jax.Array
    cut: jax.Array


def imagine(
    model: Ensemble,
    actor: trpo.Actor,
    starts: jax.Array,
    *,
    termination: Termination | None,
    longest: int | None,
    key: jax.Array,
) -> ImaginedPath:
    """Lanes of imagined episodes; where one ends the next begins, from `starts` (time, lane, observation).

    One that does not end by itself is cut after its `longest` number of steps, as in the real world.
    """

    def step(
        here: tuple[jax.Array, jax.Array], inputs: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], ImaginedPath]:
        (observation, age), (fresh, key) = here, inputs
        key_action, key_member, key_end = jax.random.split(key, 3)
        action, _ = trpo.sample_action(actor, observation, key=key_action)
        bounded = jnp.clip(action, -1, 1)
        normal = predict_with_one_member(model, observation, bounded, key=key_member)
        following, reward, _ = ensemble.sample(normal, model.scaling, observation, noise=jnp.zeros_like(normal.mean))
        terminated = ends(termination, observation, bounded, following, normal.terminated_logit, key=key_end)
        cut = ~terminated & (age + 1 == (longest or 0))
        over = terminated | cut
        there = jnp.where(over[:, None], fresh, following), jnp.where(over, 0, age + 1)
        return there, ImaginedPath(observation, action, reward, following, terminated, cut)

    begin = starts[0], jnp.zeros(starts.shape[1], int)
    return jax.lax.scan(step, begin, (starts, jax.random.split(key, len(starts))))[1]


def rescaled(agent: trpo.Agent, scaling: Scaling) -> trpo.Agent:
    """The agent with its inputs in units of what has been seen so far."""
    size = len(agent.actor.input_mean)
    known = (scaling.input_mean[:size], scaling.input_std[:size])
    return eqx.tree_at(lambda a: (a.actor.input_mean, a.actor.input_std), agent, known)
