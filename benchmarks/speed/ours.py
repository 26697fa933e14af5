"""What is measured of mbdp."""

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np
from benchmarks.filled import take
from benchmarks.speed.settings import (
    BATCH,
    DEPTH,
    DISCOUNT,
    ENV,
    FIT_STEPS,
    KEPT,
    LEARNING_RATE,
    MEMBERS,
    MODEL_DEPTH,
    MODEL_LEARNING_RATE,
    MODEL_WIDTH,
    SAMPLES,
    STEPS_PER_FIT,
    TARGET_ENTROPY,
    TAU,
    UPDATES_PER_STEP,
    WIDTH,
    Sizes,
)

from mbdp import algorithm
from mbdp.agents import sac
from mbdp.envs.interact import World
from mbdp.envs.tasks import make, task_of
from mbdp.models import ensemble
from mbdp.models.fit import create_optimiser, descend, scaling_of, split
from mbdp.plans import Budget, Group, Plan, Shape
from mbdp.presets import preset
from mbdp.replay import Replay, mixed_minibatches, unpack
from mbdp.rollout import rollout, surviving_rows

TERMINATION = task_of(ENV).termination
Way = Callable[[], object]


def sac_update(d_env: Replay, sizes: Sizes, *, layer_norm: bool = False, actor_every: int = 1) -> Way:
    """Minibatches drawn and updates made, as many as there are for two env steps."""
    newest = {"agent": _agent(d_env, layer_norm=layer_norm)}
    rng, key = np.random.default_rng(0), jax.random.key(0)
    settings = {"discount": DISCOUNT, "tau": TAU, "target_entropy": TARGET_ENTROPY, "learning_rate": LEARNING_RATE}

    def way() -> object:
        minibatches = mixed_minibatches(d_env, d_env, real_ratio=1.0, batch=BATCH, count=sizes.updates, rng=rng)
        newest["agent"], _ = sac.update(
            newest["agent"], minibatches, spec=d_env.spec, actor_every=actor_every, **settings, key=key
        )
        return jax.block_until_ready(newest)

    return way


def training_rollout_update(d_env: Replay, sizes: Sizes) -> Way:
    """The updates of the default preset: training rollouts from real states in a fresh model."""
    config = replace(preset("mbdp", ENV), update_every=sizes.updates)
    learner = algorithm.create(config, d_env.spec, seed=0)
    learner.d_env.add(d_env.rows[: len(d_env)])
    learner.d_model = learner.d_env
    learner.model = ensemble.Ensemble(learner.model.members, scaling_of(d_env.rows[: len(d_env)], d_env.spec))
    learner.kept = np.arange(config.members_kept)

    def way() -> object:
        learner.step = config.random_steps + sizes.updates  # a step that brings one bout of updates
        algorithm.improve_policy(learner, config, TERMINATION, seed=0)
        return jax.block_until_ready(learner.agent)

    return way


def ensemble_step(d_env: Replay, sizes: Sizes) -> Way:
    """Each member's minibatches drawn from its bootstrap, and so many gradient steps."""
    model = _model(d_env)
    optimiser = create_optimiser(model, MODEL_LEARNING_RATE)
    budget = Budget(sizes.fit_steps, sizes.fit_steps, BATCH, MODEL_LEARNING_RATE, learn_termination=False)
    rng = np.random.default_rng(0)
    bootstraps, _ = split(len(d_env), MEMBERS, seed=0)

    def way() -> object:
        indices = np.stack([rng.choice(own, sizes.fit_steps * BATCH) for own in bootstraps])
        return descend(model, optimiser, d_env.rows, indices, sizes.fit_steps, d_env.spec, budget)

    return way


def imagination(d_env: Replay, sizes: Sizes, group: Group) -> Way:
    """Starts drawn, one imagined step with the policy's actions, rollout dropout, and storing what survives."""
    model, actor, rng = _model(d_env)[slice(KEPT)], _agent(d_env).actor, np.random.default_rng(0)
    plan = Plan(group, alpha=0.2, samples=SAMPLES, member_per="row", termination=TERMINATION)
    samples = KEPT if group == "members" else plan.samples
    d_model = Replay(4 * sizes.imagined, d_env.spec)
    d_model.rows[:] = 0  # the system gives a page of memory at its first touch, which a run does once

    def way() -> object:
        starts = np.asarray(unpack(d_env.sample(sizes.imagined // samples, rng), d_env.spec).observation)
        imagined = rollout(model, actor, starts, horizon=1, plan=plan, key=jax.random.key(0))
        return d_model.add(surviving_rows(imagined, d_env.spec, plan, discount=DISCOUNT))

    return way


def acting(d_env: Replay, sizes: Sizes) -> Way:
    """Env steps with the stochastic policy."""
    actor, world = _agent(d_env).actor, World(make(ENV), seed=0)

    def way() -> object:
        for step in range(sizes.env_steps):
            world.step(sac.explore(actor, world.observation, rng=np.random.default_rng([0, step])))
        return None

    return way


def whole_algorithm(d_env: Replay, sizes: Sizes) -> Way:
    """A stretch of Algorithm 1 with one fit in it, after as many random steps as there are rows."""
    config = replace(
        preset("mbdp", ENV, "paper"),
        steps=d_env.capacity,
        random_steps=len(d_env),
        members=MEMBERS,
        member_per="row",
        rollouts=sizes.imagined,
        model_every=min(STEPS_PER_FIT, sizes.stretch),
        fit_steps=min(FIT_STEPS, sizes.fit_steps),
        first_fit_steps=min(FIT_STEPS, sizes.fit_steps),
        updates_per_step=UPDATES_PER_STEP,
        target_entropy=TARGET_ENTROPY,
        horizon=(1, 1, 0, 0),
    )
    world = World(make(ENV), seed=0)
    learner = algorithm.create(config, world.spec, seed=0)
    learner.d_env.add(d_env.rows[: len(d_env)])
    learner.step = len(d_env)
    config = replace(config, steps=learner.d_env.capacity)
    run = algorithm.mbdp(learner, world, config, termination=TERMINATION, seed=0)

    def way() -> object:
        take(run, sizes.stretch)
        return jax.block_until_ready(learner.agent)

    return way


def _agent(d_env: Replay, *, layer_norm: bool = False) -> sac.Agent:
    shape = Shape(WIDTH, DEPTH, layer_norm=layer_norm, learning_rate=LEARNING_RATE)
    return sac.create(d_env.spec, shape, key=jax.random.key(0))


def _model(d_env: Replay) -> ensemble.Ensemble:
    shape = {"members": MEMBERS, "width": MODEL_WIDTH, "depth": MODEL_DEPTH}
    fresh = ensemble.create(d_env.spec, **shape, key=jax.random.key(0))
    return ensemble.Ensemble(fresh.members, scaling_of(d_env.rows[: len(d_env)], d_env.spec))
