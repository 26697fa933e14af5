"""Fitting an ensemble by likelihood, and how biased each member is afterwards."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mbdp.interruption import stop_if_asked
from mbdp.models.ensemble import Ensemble, Member, Scaling, predict
from mbdp.parallel import side_by_side
from mbdp.plans import Budget
from mbdp.replay import NEWEST_PART, Replay, unpack
from mbdp.streams import generator
from mbdp.types import Spec, Transition

# MBPO's decay of each layer's weights, first to last; other depths are interpolated.
WEIGHT_DECAY = (2.5e-5, 5e-5, 7.5e-5, 7.5e-5, 1e-4)
HELD_OUT_SHARE, HELD_OUT_ENOUGH = 0.2, 5000
PATIENCE, WORTHWHILE = 5, 0.01  # early stopping: epochs without, and the relative size of, an improvement


class Score(NamedTuple):
    """How wrong each member is on held-out real data, (member,) each."""

    distance: (
        jax.Array
    )  # Section 3.2's bias: mean Euclidean distance of next states, each dimension in units of its change
    mse: jax.Array  # MBPO's: mean squared error of scaled (change of observation, reward)


def fit(
    model: Ensemble, optimiser: optax.OptState, d_env: Replay, budget: Budget, *, seed: int, rng: np.random.Generator
) -> tuple[Ensemble, optax.OptState, Score]:
    """The ensemble, warm-started and fitted to `d_env`; `seed` fixes each member's bootstrap, `rng` its minibatches."""
    bootstraps, held_out = split(len(d_env), len(model), seed, bootstrap=budget.bootstrap)
    model = Ensemble(model.members, scaling_of(d_env.rows[: len(d_env)], d_env.spec))
    examined = examination(d_env.rows, held_out, rng)
    if budget.steps:
        fresh = int(optimiser[0].count) == 0
        for _ in range(-(-budget.first_steps // budget.steps) if fresh else 1):
            stop_if_asked()
            indices = np.stack([_drawn(own, len(d_env), budget, rng) for own in bootstraps])
            members, optimiser = descend(model, optimiser, d_env.rows, indices, budget.steps, d_env.spec, budget)
            model = Ensemble(members, model.scaling)
        return model, optimiser, score(model, *examined, d_env.spec)
    return _fit_until_it_stops_helping(model, optimiser, d_env.rows, bootstraps, examined, d_env.spec, budget, rng)


def _drawn(own: np.ndarray, count: int, budget: Budget, rng: np.random.Generator) -> np.ndarray:
    """Rows of a member's bootstrap for all steps of a fit; of each minibatch, a share from the newest of all rows."""
    chosen = rng.choice(own, (budget.steps, budget.batch))
    newest = own[own >= count - count // NEWEST_PART]
    if len(newest) and (share := round(budget.recent * budget.batch)):
        chosen[:, :share] = rng.choice(newest, (budget.steps, share))
    return chosen.ravel()


def create_optimiser(model: Ensemble, learning_rate: float) -> optax.OptState:
    """Adam's memory for a fresh ensemble."""
    return optax.adam(learning_rate).init(model.members)


def replaced(
    model: Ensemble, optimiser: optax.OptState, members: np.ndarray, fresh: Ensemble
) -> tuple[Ensemble, optax.OptState]:
    """The ensemble with these members taken from a fresh one, and their optimiser states reset."""

    def put(old: jax.Array, new: Any) -> jax.Array:
        return old.at[members].set(new) if old.ndim else old

    adam, *rest = optimiser
    chosen = jax.tree.map(lambda leaf: leaf[members], fresh.members)
    forgotten = (jax.tree.map(lambda leaf: put(leaf, 0.0), moment) for moment in (adam.mu, adam.nu))
    mu, nu = forgotten
    return Ensemble(jax.tree.map(put, model.members, chosen), model.scaling), (adam._replace(mu=mu, nu=nu), *rest)


def split(count: int, members: int, seed: int, *, bootstrap: bool = True) -> tuple[list[np.ndarray], np.ndarray]:
    """Each member's bootstrap of the training rows, or all of them, and the rows that are held out from all members.

    Decided once for each row by its number, so that a refit never trains on what an earlier one held out.
    """
    share = np.minimum(HELD_OUT_SHARE, HELD_OUT_ENOUGH / np.arange(1, count + 1))
    held = generator(seed, "hold-out").random(count) < share
    held[0], held[1:2] = True, False
    times = np.ones((count, members), int)
    if bootstrap:
        times = generator(seed, "bootstrap").poisson(1.0, (count, members))
    times[1:2] = 1  # no member is without data
    times[held] = 0
    return [np.repeat(np.arange(count), times[:, member]) for member in range(members)], np.flatnonzero(held)


def scaling_of(rows: np.ndarray, spec: Spec) -> Scaling:
    """Mean, deviation and range of the real transitions."""
    data = unpack(rows, spec)
    inputs = np.concatenate([data.observation, data.action], axis=-1)
    targets = np.concatenate([data.next_observation - data.observation, np.asarray(data.reward)[:, None]], axis=-1)
    reached = np.concatenate([data.next_observation, np.asarray(data.reward)[:, None]], axis=-1)
    low, high = reached.min(axis=0), reached.max(axis=0)
    low[:-1] = np.minimum(low[:-1], np.asarray(data.observation).min(axis=0))
    high[:-1] = np.maximum(high[:-1], np.asarray(data.observation).max(axis=0))
    input_std = inputs.std(axis=0)
    return Scaling(
        input_mean=jnp.asarray(inputs.mean(axis=0)),
        input_std=jnp.asarray(np.where(input_std < 1e-6, 1.0, input_std)),  # a constant input stays quiet
        target_mean=jnp.asarray(targets.mean(axis=0)),
        target_std=jnp.asarray(np.maximum(targets.std(axis=0), 1e-6)),
        low=jnp.asarray(low),
        high=jnp.asarray(high),
    )


def loss(member: Member, scaling: Scaling, batch: Transition, learn_termination: bool) -> jax.Array:
    """Negative log-likelihood (up to a constant), loose variance bounds and weight decay of one member."""
    normal = predict(member, scaling, batch.observation, batch.action)
    error = normal.mean - scaled_targets(scaling, batch)
    likelihood = jnp.mean(error**2 * jnp.exp(-normal.log_variance) + normal.log_variance)
    bounded = not member.deterministic and member.log_variance is None
    bounds = bounded * 0.01 * jnp.sum(member.max_log_variance - member.min_log_variance)
    layers = member.network.weights if not member.network.scales else []  # layer normalisation undoes any decay
    decay = sum(own * jnp.sum(w**2) / 2 for own, w in zip(weight_decays(len(layers)), layers, strict=True))
    termination = jnp.mean(optax.sigmoid_binary_cross_entropy(normal.terminated_logit, batch.terminated))
    return likelihood + bounds + decay + learn_termination * termination


def weight_decays(layers: int) -> list[float]:
    """Of each layer."""
    own = np.interp(np.linspace(0, 1, layers), np.linspace(0, 1, len(WEIGHT_DECAY)), WEIGHT_DECAY)
    return [float(one) for one in own]


def descend(
    model: Ensemble,
    optimiser: optax.OptState,
    rows: np.ndarray,
    indices: np.ndarray,
    steps: int,
    spec: Spec,
    budget: Budget,
) -> tuple[Member, optax.OptState]:
    """`steps` Adam steps; step i of a member uses rows indices[member, i * batch : (i + 1) * batch]."""
    rows_there, indices_there = jnp.asarray(rows), jnp.asarray(indices)

    def one(member: int) -> tuple[Member, optax.OptState]:
        return descend_one(member, model, optimiser, rows_there, indices_there, steps, spec=spec, budget=budget)

    return _stacked(*side_by_side(one, range(len(model))))


@partial(jax.jit, static_argnames=("spec", "budget"))
def descend_one(
    number: int,
    model: Ensemble,
    optimiser: optax.OptState,
    rows: jax.Array,
    indices: jax.Array,
    steps: int,
    *,
    spec: Spec,
    budget: Budget,
) -> tuple[Member, optax.OptState]:
    """The descent of one member."""
    adam = optax.adam(budget.learning_rate)
    gradient = jax.grad(lambda member, batch: loss(member, model.scaling, batch, budget.learn_termination))
    own = indices[number]

    def step(i: jax.Array, carry: tuple[Member, optax.OptState]) -> tuple[Member, optax.OptState]:
        member, optimiser = carry
        chosen = jax.lax.dynamic_slice_in_dim(own, i * budget.batch, budget.batch)
        changes, optimiser = adam.update(gradient(member, unpack(rows[chosen], spec)), optimiser)
        return optax.apply_updates(member, changes), optimiser

    start = jax.tree.map(lambda leaf: leaf[number] if leaf.ndim else leaf, (model.members, optimiser))
    return jax.lax.fori_loop(0, steps, step, start)


def examination(rows: np.ndarray, held_out: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows to judge members by, some of those held out, and their weights.

    Filled up to a fixed size with rows of no weight, so that nothing recompiles as data grows.
    """
    chosen = rng.permutation(held_out)[:HELD_OUT_ENOUGH]
    full = np.zeros((HELD_OUT_ENOUGH, rows.shape[1]), np.float32)
    full[: len(chosen)] = rows[chosen]
    return full, (np.arange(HELD_OUT_ENOUGH) < len(chosen)).astype(np.float32)


@partial(jax.jit, static_argnames="spec")
def score(model: Ensemble, rows: jax.Array, weight: jax.Array, spec: Spec) -> Score:
    """Each member's error on those of the rows that have a weight of 1 and not of 0."""
    batch = unpack(rows, spec)
    targets = scaled_targets(model.scaling, batch)

    def one(member: Member) -> Score:
        normal = predict(member, model.scaling, batch.observation, batch.action)
        error = normal.mean - targets
        distance = jnp.linalg.norm(error[:, :-1], axis=-1)
        mean = partial(jnp.average, weights=weight)
        return Score(mean(distance), mean(jnp.mean(error**2, axis=-1)))

    return jax.lax.map(one, model.members)


def _fit_until_it_stops_helping(
    model: Ensemble,
    optimiser: optax.OptState,
    rows: np.ndarray,
    bootstraps: list[np.ndarray],
    examined: tuple[np.ndarray, np.ndarray],
    spec: Spec,
    budget: Budget,
    rng: np.random.Generator,
) -> tuple[Ensemble, optax.OptState, Score]:
    """Epochs until no member's hold-out error has improved by 1 % for 5 of them; each member's best weights win.

    They win by any improvement: a short fit may well have none of 1 %.
    """
    capacity = -(-len(rows) // budget.batch) * budget.batch
    steps = min(-(-max(map(len, bootstraps)) // budget.batch), capacity // budget.batch)
    most = budget.most_steps if budget.most_steps and int(optimiser[0].count) else math.inf
    steps = int(min(steps, budget.longest_epoch or steps, most))
    indices = np.zeros((len(model), capacity), np.int32)
    best, best_mse = model.members, score(model, *examined, spec).mse
    to_improve, idle, taken = best_mse, 0, 0
    while idle < PATIENCE and taken + steps <= most:
        stop_if_asked()
        for member, own in enumerate(bootstraps):
            indices[member, : steps * budget.batch] = np.resize(rng.permutation(own), steps * budget.batch)
        members, optimiser = descend(model, optimiser, rows, indices, steps, spec, budget)
        model, taken = Ensemble(members, model.scaling), taken + steps
        mse = score(model, *examined, spec).mse
        better, worthwhile = mse < best_mse, mse < to_improve * (1 - WORTHWHILE)
        best = jax.tree.map(lambda new, old, b=better: jnp.where(_like(b, new), new, old), members, best)
        best_mse, to_improve = jnp.where(better, mse, best_mse), jnp.where(worthwhile, mse, to_improve)
        idle = 0 if bool(worthwhile.any()) else idle + 1
    model = Ensemble(best, model.scaling)
    return model, optimiser, score(model, *examined, spec)


def scaled_targets(scaling: Scaling, batch: Transition) -> jax.Array:
    change = batch.next_observation - batch.observation
    targets = jnp.concatenate([change, jnp.expand_dims(batch.reward, -1)], axis=-1)
    return (targets - scaling.target_mean) / scaling.target_std


@jax.jit
def _stacked(*trees: Any) -> Any:
    """One tree with a first axis for the members; Adam's count, which has no axis, is the same for all of them."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves) if leaves[0].ndim else leaves[0], *trees)


def _like(flags: jax.Array, x: jax.Array) -> jax.Array:
    return flags.reshape(-1, *[1] * (x.ndim - 1))
