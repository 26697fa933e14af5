"""Algorithm 1 of the paper as one generator: it yields after every env step, and whoever iterates it does the rest."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

from mbdp.agents import sac
from mbdp.config import Config
from mbdp.dropout import model_dropout
from mbdp.envs.interact import Outcome, World
from mbdp.models import ensemble
from mbdp.models.ensemble import Ensemble
from mbdp.models.fit import create_optimiser, fit
from mbdp.replay import Replay, mixed_minibatches, unpack
from mbdp.rollout import Imagined, rollout, surviving_rows
from mbdp.types import Spec, Termination

Explore = Callable[..., np.ndarray]  # (actor, observation, *, rng) -> action in [-1, 1]


@dataclass
class Learner:
    """Everything that a run has learned and gathered so far; all chance derives from (seed, step)."""

    agent: Any  # of agents/ or, where a baseline's has more to it, of baselines/
    model: Ensemble
    model_optimiser: optax.OptState
    d_env: Replay
    d_model: Replay
    step: int = 0
    due: int = 0  # pieces of work that are left of this step: a fit, or the rounds of SLBO


class Progress(NamedTuple):
    """One env step: what the world answered, and what the fit, the imagination and the updates say of themselves.

    A step that takes long comes in pieces, of which the first has the outcome and the last is `settled`, so that a
    signal or a checkpoint need not wait for all of it.
    """

    step: int
    outcome: Outcome | None
    metrics: dict[str, Any]
    settled: bool = True


def mbdp(
    learner: Learner, world: World, config: Config, *, termination: Termination | None, seed: int
) -> Iterator[Progress]:
    """Model-based reinforcement learning with double dropout planning (Algorithm 1), from where the learner stands."""
    spec, plan, budget = world.spec, config.plan(termination), config.budget(termination)
    update_policy: Callable[..., Any] = partial(sac.update, spec=spec, **config.sac_settings(spec))
    while learner.due or learner.step < config.steps:
        rng = np.random.default_rng([seed, learner.step - learner.due])
        key_rollout, key_update = step_keys(seed, learner.step - learner.due)
        past_warm_up = learner.step - learner.due - config.random_steps
        outcome, metrics = None, dict[str, Any]()

        if not learner.due:
            # Take an action in environment using policy pi_theta; add samples to D_env.
            outcome = act(learner, world, None if past_warm_up < 0 else sac.explore, rng=rng)
            learner.due = int(config.imagines and past_warm_up >= 0 and past_warm_up % config.model_every == 0)
            if learner.due:
                yield Progress(learner.step, outcome, metrics, settled=False)
                continue
        else:
            # Train probabilistic model M on D_env; build a model subset M^beta according to bias(phi_i).
            steps_before = int(learner.model_optimiser[0].count)
            learner.model, learner.model_optimiser, score = fit(
                learner.model, learner.model_optimiser, learner.d_env, budget, seed=seed, rng=rng
            )
            bias = np.asarray(getattr(score, config.bias))
            kept = model_dropout(bias, config.beta)
            metrics |= describe_model(bias, kept)
            metrics |= {"model/steps": int(learner.model_optimiser[0].count) - steps_before}
            # Perform rollouts on M^beta with policy pi_theta; fill x into D_model if r(x) <= r_{1-alpha}(B | s).
            horizon = config.horizon_at(learner.step)
            learner.d_model = learner.d_model.resized(config.d_model_capacity(horizon))
            if len(kept):
                real = unpack(learner.d_env.sample(config.starts(len(kept), horizon), rng), spec)
                starts = np.asarray(real.observation)
                batch = rollout(
                    learner.model[kept], learner.agent.actor, starts, horizon=horizon, plan=plan, key=key_rollout
                )
                rows = surviving_rows(batch, spec, plan, discount=config.discount_at(learner.step))
                learner.d_model.add(rows)
                metrics |= describe_imagination(batch, rows, spec)
            else:  # every member has diverged: nothing that they ever imagined is to be trusted, real data is
                learner.d_model = Replay(learner.d_model.capacity, spec)
            learner.due = 0

        # Optimize pi_theta on D_model, and on the share of D_env that MBPO mixes in.
        if past_warm_up >= 0:
            minibatches = mixed_minibatches(learner.d_env, learner.d_model, **config.minibatches, rng=rng)
            discount = config.discount_at(learner.step)
            learner.agent, train = update_policy(learner.agent, minibatches, discount=discount, key=key_update)
            metrics |= {f"train/{name}": value for name, value in train.items()}
        yield Progress(learner.step, outcome, metrics)


def act(learner: Learner, world: World, explore: Explore | None, *, rng: np.random.Generator) -> Outcome:
    """One env step as the policy explores, or at random, and what it brought added to D_env."""
    if explore is None:
        action = rng.uniform(-1, 1, world.spec.action_size)
    else:
        action = explore(learner.agent.actor, world.observation, rng=rng)
    outcome = world.step(action)
    learner.d_env.add(outcome.rows)
    learner.step += 1
    return outcome


def create(config: Config, spec: Spec, *, seed: int) -> Learner:
    """A learner that knows nothing."""
    key_agent, key_model = jax.random.split(jax.random.key(seed))
    model = ensemble.create(spec, **config.model_shape, key=key_model)
    return Learner(
        agent=sac.create(spec, **config.agent_shape, key=key_agent),
        model=model,
        model_optimiser=create_optimiser(model, config.model_learning_rate),
        d_env=Replay(config.steps, spec),
        d_model=Replay(config.d_model_capacity(config.horizon_at(0)), spec),
    )


@jax.jit
def step_keys(seed: int, step: int) -> tuple[jax.Array, jax.Array]:
    """The keys of one env step: for the imagination and the updates."""
    key_rollout, key_update = jax.random.split(jax.random.fold_in(jax.random.key(seed), step))
    return key_rollout, key_update


def describe_model(bias: np.ndarray, kept: np.ndarray) -> dict[str, Any]:
    """What to log of a fit."""
    return {
        **{f"model/bias_{i}": float(value) for i, value in enumerate(bias)},
        "model/bias": float(bias[kept].mean()) if len(kept) else float("nan"),
        "model/kept": [int(i) for i in kept],
    }


def describe_imagination(batch: Imagined, rows: np.ndarray, spec: Spec) -> dict[str, Any]:
    """What to log of the rollouts that followed a fit."""
    valid = max(int(batch.valid.sum()), 1)
    reward = np.asarray(unpack(batch.rows, spec).reward)
    return {
        "imagination/horizon": len(batch.rows),
        "imagination/samples": valid,
        "imagination/kept_fraction": len(rows) / valid,
        "imagination/bounded_fraction": float(batch.bounded.sum()) / valid,
        "imagination/reward_mean": float(reward[batch.valid].mean()),
        "imagination/kept_reward_mean": float(np.asarray(unpack(rows, spec).reward).mean()),
        "imagination/terminated_fraction": float(np.asarray(unpack(rows, spec).terminated).mean()),
    }
