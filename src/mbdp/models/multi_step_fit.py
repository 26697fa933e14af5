"""Fitting an ensemble by how far it strays over several steps, as SLBO does."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mbdp.models.ensemble import Ensemble, Member, Scaling, predict, sample
from mbdp.models.fit import scaled_targets
from mbdp.replay import unpack
from mbdp.types import Spec, Transition

WEIGHT_DECAY, GRADIENT_NORM = 1e-5, 2.0


def sequences(rows: np.ndarray, spec: Spec, length: int, held_out: np.ndarray) -> np.ndarray:
    """Where `length` rows in a row belong to one episode and none is held out; anywhere, if there is no such place."""
    follows = goes_on(rows, spec)
    free = np.ones(len(rows), bool)
    free[held_out] = False
    good = free[: len(rows) - length + 1].copy()
    for ahead in range(1, length):
        window = slice(ahead, len(rows) - length + 1 + ahead)
        good &= free[window] & follows[ahead - 1 : len(rows) - length + ahead]
    found = np.flatnonzero(good)
    return found if len(found) else np.arange(len(rows) - length + 1)


def goes_on(rows: np.ndarray, spec: Spec) -> np.ndarray:
    """Of each row but the last, whether the next one goes on with its episode."""
    data = unpack(rows, spec)
    return (data.observation[1:] == data.next_observation[:-1]).all(axis=-1) & (data.terminated[:-1] == 0)


@partial(jax.jit, static_argnames=("spec", "learning_rate", "learn_termination"))
def fit_over_several_steps(
    model: Ensemble,
    optimiser: optax.OptState,
    batches: jax.Array,
    *,
    spec: Spec,
    learning_rate: float,
    learn_termination: bool,
) -> tuple[Member, optax.OptState, jax.Array]:
    """A gradient step for each minibatch of sequences, (step, member, batch, ahead, row), and the mean loss."""
    adam = optax.adam(learning_rate)

    def clipped_gradient(member: Member, rows: jax.Array) -> tuple[jax.Array, Member]:
        value, gradient = jax.value_and_grad(loss_over_several_steps)(
            member, model.scaling, unpack(rows, spec), learn_termination
        )
        shrinkage = jnp.minimum(1.0, GRADIENT_NORM / (optax.tree.norm(gradient) + 1e-12))
        return value, jax.tree.map(lambda x: shrinkage * x, gradient)

    def step(state: tuple[Member, optax.OptState], rows: jax.Array) -> tuple[Any, jax.Array]:
        members, optimiser = state
        value, gradient = jax.vmap(clipped_gradient)(members, rows)
        changes, optimiser = adam.update(gradient, optimiser)
        return (optax.apply_updates(members, changes), optimiser), jnp.mean(value)

    (members, optimiser), values = jax.lax.scan(step, (model.members, optimiser), batches)
    return members, optimiser, jnp.mean(values)


def loss_over_several_steps(member: Member, scaling: Scaling, real: Transition, learn_termination: bool) -> jax.Array:
    """The norm, not squared, of the error of each change and reward, along a path that the model itself goes.

    `real` are sequences (batch, ahead, ...); an error is in units of the targets' deviations.
    """
    observation = real.observation[:, 0]
    norms, terminations = [], []
    for ahead in range(real.reward.shape[1]):
        now = Transition(*(x[:, ahead] for x in real))
        normal = predict(member, scaling, observation, now.action)
        squares = jnp.mean((normal.mean - scaled_targets(scaling, now)) ** 2, axis=-1)
        norms.append(jnp.sqrt(squares + 1e-12))
        terminations.append(optax.sigmoid_binary_cross_entropy(normal.terminated_logit, now.terminated))
        observation, _, _ = sample(normal, scaling, observation, noise=jnp.zeros_like(normal.mean))
    decay = WEIGHT_DECAY * sum(jnp.sum(w**2) for w in member.network.weights)
    return jnp.mean(jnp.stack(norms)) + decay + learn_termination * jnp.mean(jnp.stack(terminations))
