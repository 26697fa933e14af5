"""Algorithm 1 of the paper as one generator: it yields after every env step, and whoever iterates it does the rest."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

from mbdp.agents import expansion, sac
from mbdp.config import Config
from mbdp.dropout import model_dropout
from mbdp.envs.interact import NEVER, Cut, Outcome, World
from mbdp.models import ensemble
from mbdp.models.endings import describe_endings
from mbdp.models.ensemble import Ensemble
from mbdp.models.fit import create_optimiser, fit, replaced
from mbdp.plans import Budget
from mbdp.replay import Replay, mixed_minibatches, unpack
from mbdp.rollout import Imagined, rollout, surviving_rows
from mbdp.streams import generator, key
from mbdp.termination import disagreement
from mbdp.types import Reward, Spec, Termination, Transition
from mbdp.user_functions import reward_error

Explore = Callable[..., np.ndarray]  # (actor, observation, *, rng) -> action in [-1, 1]
Metrics = dict[str, Any]
LATE, LATE_EVERY = 2_000, 250  # env steps that tell what is usual, and how often that is looked at
FROM_DATA = 2**31  # beyond any env step


@dataclass
class Learner:
    """Everything that a run has learned and gathered so far; all chance derives from (seed, purpose, step)."""

    agent: Any  # of agents/ or, where a baseline's has more to it, of baselines/
    model: Ensemble
    model_optimiser: optax.OptState
    d_env: Replay
    d_model: Replay
    step: int = 0  # env steps that are done, with all the work that belongs to them
    acted: bool = False  # whether the next one has been taken in the environment already
    rounds: int = 0  # of SLBO's work that are left of it
    data_left: int = 0  # of a warm start from data, before the first env step: how many steps' worth of work is left
    kept: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # M^beta, least biased first

    @property
    def clock(self) -> int:
        """The step that chance derives from; a warm start's are not those of any env step."""
        return FROM_DATA + self.data_left if self.data_left else self.step

    def settle(self) -> None:
        """All work of the env step is done."""
        self.step, self.acted = self.step + 1, False


class Progress(NamedTuple):
    """One env step: what the world answered, and what the fit, the imagination and the updates say of themselves.

    A step that takes long comes in pieces, of which the first has the outcome and the last is `settled`, so that a
    signal or a checkpoint need not wait for all of it.
    """

    step: int
    outcome: Outcome | None
    metrics: Metrics
    settled: bool = True


def mbdp(
    learner: Learner,
    world: World,
    config: Config,
    *,
    termination: Termination | None,
    reward: Reward | None = None,
    seed: int,
) -> Iterator[Progress]:
    """Model-based reinforcement learning with double dropout planning (Algorithm 1), from where the learner stands."""
    learn = partial(_learn, learner, world, config, termination, reward, seed)
    while learner.data_left:  # a warm start: D_env holds data, and what env steps would have brought is learned from it
        done = config.data_steps - learner.data_left
        metrics = learn(done) | {"data/step": done + 1}
        learner.data_left -= 1
        yield Progress(learner.step, None, metrics, settled=False)
    while learner.step < config.steps:
        past_warm_up = learner.step - config.warm_up
        outcome = None
        if not learner.acted:
            # Take an action in environment using policy pi_theta; add samples to D_env.
            explore = None if past_warm_up < 0 else sac.explore
            outcome = act(learner, world, explore, seed=seed, cut=when_to_cut(learner, config))
            if config.fits_at(past_warm_up):
                yield Progress(learner.step + 1, outcome, Metrics(), settled=False)
                continue
        metrics = learn(past_warm_up)
        learner.settle()
        yield Progress(learner.step, outcome, metrics)


def _learn(
    learner: Learner,
    world: World,
    config: Config,
    termination: Termination | None,
    reward: Reward | None,
    seed: int,
    past_warm_up: int,
) -> Metrics:
    """What Algorithm 1 learns at one env step."""
    metrics = Metrics()
    if config.fits_at(past_warm_up):
        if reward is not None:
            metrics["model/reward_mismatch"] = reward_error(reward, learner.d_env)
        # Train probabilistic model M on D_env; build a model subset M^beta according to bias(phi_i).
        metrics |= fit_model(learner, config, config.budget(termination), termination, seed=seed)
        learner.agent = sac.with_input_scale(learner.agent, *learner.model.scaling.of_observation(world.spec))
        # Perform rollouts on M^beta with policy pi_theta; fill x into D_model if r(x) <= r_{1-alpha}(B | s).
        metrics |= fill_d_model(learner, config, termination, reward, seed=seed)
    for part in range(config.updates_at(past_warm_up)):
        # Optimize pi_theta on D_model, and on the share of D_env that MBPO mixes in.
        metrics |= improve_policy(learner, config, termination, reward, seed=seed, part=part)
    return metrics


def act(learner: Learner, world: World, explore: Explore | None, *, seed: int, cut: Cut = NEVER) -> Outcome:
    """One env step as the policy explores, or at random, and what it brought added to D_env."""
    rng = generator(seed, "action", learner.step)

    def choose(observation: np.ndarray) -> np.ndarray:  # of one environment, or a row for each
        if explore is None:
            return rng.uniform(-1, 1, (*observation.shape[:-1], world.spec.action_size))
        return explore(learner.agent.actor, observation, rng=rng)

    outcome = world.take(choose, cut=cut)
    learner.d_env.add(outcome.rows)
    learner.acted = True
    return outcome


def when_to_cut(learner: Learner, config: Config) -> Cut:
    """Random episodes are short; later ones go on while they earn at least half of what steps earned of late."""
    if not config.cut_episodes:
        return NEVER
    if learner.step < config.warm_up:
        return Cut(config.cut_episodes, math.inf)
    # Not looked at in every step, so that the processes of several environments need not be told each time.
    known = len(learner.d_env) // LATE_EVERY * LATE_EVERY
    late = unpack(learner.d_env.rows[max(0, known - LATE) : known], learner.d_env.spec).reward
    usual = float(np.mean(late)) if known else -math.inf
    return Cut(config.cut_episodes, usual - abs(usual) / 2)


def fit_model(learner: Learner, config: Any, budget: Budget, termination: Termination | None, *, seed: int) -> Metrics:
    """Fit the ensemble to D_env, rank its members, and choose those that are kept; a diverged member begins anew."""
    metrics = Metrics()
    if termination is not None:
        metrics["model/termination_mismatch"] = disagreement(termination, learner.d_env)
    steps_before = int(learner.model_optimiser[0].count)
    rng = generator(seed, "fit", learner.clock)
    learner.model, learner.model_optimiser, score = fit(
        learner.model, learner.model_optimiser, learner.d_env, budget, seed=seed, rng=rng
    )
    bias = np.asarray(getattr(score, config.bias))
    learner.kept = np.asarray(model_dropout(bias, config.beta))
    metrics |= describe_model(bias, learner.kept)
    metrics |= {"model/steps": int(learner.model_optimiser[0].count) - steps_before}
    if budget.learn_termination and len(learner.kept):
        metrics |= describe_endings(learner.model[learner.kept], learner.d_env, seed=seed)
    if len(diverged := np.flatnonzero(~np.isfinite(bias))):
        fresh = create_model(config, learner.d_env.spec, key=key(seed, "new member", learner.clock))
        learner.model, learner.model_optimiser = replaced(learner.model, learner.model_optimiser, diverged, fresh)
        metrics["model/recreated"] = [int(i) for i in diverged]
    return metrics


def fill_d_model(
    learner: Learner, config: Config, termination: Termination | None, reward: Reward | None = None, *, seed: int
) -> Metrics:
    """Imagine rollouts in the kept members and add the samples that survive rollout dropout to D_model."""
    spec, plan, horizon = learner.d_env.spec, config.plan(termination, reward), config.horizon_at(learner.step + 1)
    learner.d_model = learner.d_model.resized(config.d_model_capacity(horizon))
    if not len(learner.kept):  # every member has diverged: what they imagined is not to be trusted, real data is
        learner.d_model = Replay(learner.d_model.capacity, spec)
        return {}
    rng = generator(seed, "start", learner.clock)
    count = config.starts(len(learner.kept), horizon)
    starts = unpack(learner.d_env.sample(count, rng, recent=config.recent), spec).observation
    model, actor, key_rollout = learner.model[learner.kept], learner.agent.actor, key(seed, "rollout", learner.clock)
    batch = rollout(model, actor, np.asarray(starts), horizon=horizon, plan=plan, key=key_rollout)
    rows = surviving_rows(batch, spec, plan, discount=config.discount_at(learner.step + 1))
    learner.d_model.add(rows)
    return describe_imagination(batch, rows, spec)


def improve_policy(
    learner: Learner,
    config: Config,
    termination: Termination | None,
    reward: Reward | None = None,
    *,
    seed: int,
    part: int = 0,
) -> Metrics:
    """A bout of updates: SAC's on D_model's rows, or along training rollouts from its states."""
    spec, clock = learner.d_env.spec, learner.clock
    rng, key_update = generator(seed, "minibatch", clock, part), key(seed, "update", clock, part)
    minibatches = mixed_minibatches(learner.d_env, learner.d_model, **config.minibatches, rng=rng)
    if not config.expansion:
        settings = config.sac_settings(spec) | {"discount": config.discount_at(learner.step + 1)}
        learner.agent, train = sac.update(learner.agent, minibatches, spec=spec, **settings, key=key_update)
    elif len(learner.kept):
        learner.agent, train = expansion.update(
            learner.agent,
            learner.model[learner.kept],
            *split_real(unpack(minibatches, spec), config.real_target_rows),
            plan=config.training_rollout(spec, termination, reward),
            new_share=sac.new_share(learner.agent, len(minibatches), config.average_over / config.update_every),
            key=key_update,
        )
    else:
        return {}
    metrics = {f"train/{name}": value for name, value in train.items()}
    if "train/alpha_effective" in metrics:
        metrics["imagination/alpha_effective"] = metrics.pop("train/alpha_effective")
    return metrics


def split_real(rows: Transition, real: int) -> tuple[np.ndarray, Transition]:
    """Start states of training rollouts, and the first `real` rows of each minibatch as transitions."""
    return rows.observation[:, real:], Transition(*(x[:, :real] for x in rows))


def create(config: Config, spec: Spec, *, seed: int) -> Learner:
    """A learner that knows nothing."""
    model = create_model(config, spec, key=key(seed, "model"))
    create_agent = expansion.create if config.expansion else sac.create
    return Learner(
        agent=create_agent(spec, config.agent_shape, key=key(seed, "agent")),
        model=model,
        model_optimiser=create_optimiser(model, config.model_learning_rate),
        d_env=Replay(max(config.steps, 1), spec),
        d_model=Replay(config.d_model_capacity(config.horizon_at(0)), spec),
    )


def create_model(config: Any, spec: Spec, *, key: jax.Array) -> Ensemble:
    """A fresh ensemble as configured."""
    return ensemble.create(spec, **config.model_shape, key=key)


def value(agent: Any, observation: jax.Array, action: jax.Array) -> jax.Array:
    """The discounted return that the agent's critics expect."""
    of = expansion.value if isinstance(agent, expansion.Agent) else sac.value
    return of(agent, observation, action)


def describe_model(bias: np.ndarray, kept: np.ndarray) -> Metrics:
    """What to log of a fit."""
    return {
        **{f"model/bias_{i}": float(value) for i, value in enumerate(bias)},
        "model/bias": float(bias[kept].mean()) if len(kept) else float("nan"),
        "model/kept": [int(i) for i in kept],
        "model/beta_effective": 1 - len(kept) / len(bias),
    }


def describe_imagination(batch: Imagined, rows: np.ndarray, spec: Spec) -> Metrics:
    """What to log of the rollouts that followed a fit."""
    valid = max(int(batch.valid.sum()), 1)
    reward = np.asarray(unpack(batch.rows, spec).reward)
    return {
        "imagination/horizon": len(batch.rows),
        "imagination/samples": valid,
        "imagination/kept_fraction": len(rows) / valid,
        "imagination/alpha_effective": 1 - len(rows) / valid,
        "imagination/bounded_fraction": float(batch.bounded.sum()) / valid,
        "imagination/reward_mean": float(reward[batch.valid].mean()),
        "imagination/kept_reward_mean": float(np.asarray(unpack(rows, spec).reward).mean()),
        "imagination/terminated_fraction": float(np.asarray(unpack(rows, spec).terminated).mean()),
    }
