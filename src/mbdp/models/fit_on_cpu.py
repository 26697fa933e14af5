"""Gradient steps of an ensemble by the kernels for a processor, as `fit.descend` has them."""

from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mbdp.kernels import fit_steps, layout
from mbdp.kernels.fit_steps import HIGH, LOW, Scales, Settings
from mbdp.models.ensemble import Ensemble, Member, Scaling
from mbdp.models.fit import Budget, weight_decays
from mbdp.parallel import side_by_side
from mbdp.types import Spec


def descend(
    model: Ensemble,
    optimiser: optax.OptState,
    rows: np.ndarray,
    indices: np.ndarray,
    steps: int,
    spec: Spec,
    budget: Budget,
) -> tuple[Member, optax.OptState]:
    """`fit.descend_in_jax`, with the same arguments."""
    adam, *rest = optimiser
    states = [jax.tree.map(np.asarray, state) for state in (model.members, adam.mu, adam.nu)]
    settings, scales, count = _settings(states[0], spec, budget), _scales(model.scaling), int(adam.count)
    decays = np.array(weight_decays(settings.member.depth + 1), np.float32)
    minibatches = indices[:, : steps * budget.batch].astype(np.int32).reshape(len(model), steps, budget.batch)

    def one(number: int) -> tuple[Member, ...]:
        own = [one_of(state, number) for state in states]  # its numbers, Adam's mean and mean square
        network, bounds = rows_of(own)
        room = fit_steps.room(settings)
        fit_steps.descend(rows, minibatches[number], network, bounds, count, decays, scales, settings, room)
        return tuple(_member(network[i], bounds[i], like) for i, like in enumerate(own))

    fitted = side_by_side(one, range(len(model)))
    members, mean, square = (jax.tree.map(_stacked, *own) for own in zip(*fitted, strict=True))
    return members, (adam._replace(count=jnp.asarray(count + steps, jnp.int32), mu=mean, nu=square), *rest)


def score(model: Ensemble, rows: np.ndarray, spec: Spec) -> tuple[jax.Array, jax.Array]:
    """Each member's mean distance and mean squared error on these rows."""
    members, scales = jax.tree.map(np.asarray, model.members), _scales(model.scaling)
    settings = _settings(members, spec, Budget(0, 0, fit_steps.BLOCK, 0.0, learn_termination=False))

    def one(number: int) -> tuple[float, float]:
        network = layout.zeros(layout.row_size(settings.member))
        layout.fill(network, one_of(members, number).network)
        return fit_steps.examine(rows, network, scales, settings, fit_steps.room(settings))

    sums = jnp.asarray(side_by_side(one, range(len(model))), jnp.float32)
    return sums[:, 0] / len(rows), sums[:, 1] / len(rows)


def _settings(members: Member, spec: Spec, budget: Budget) -> Settings:
    return Settings(
        observations=spec.observation_size,
        actions=spec.action_size,
        member=layout.shape_of(one_of(members, 0).network),
        deterministic=members.deterministic,
        learn_termination=budget.learn_termination,
        learning_rate=float(budget.learning_rate),
        batch=budget.batch,
    )


def one_of(members: Member, number: int) -> Member:
    """A member of those that are stacked."""
    return jax.tree.map(lambda leaf: leaf[number], members)


def rows_of(members: list[Member]) -> tuple[np.ndarray, np.ndarray]:
    """Members, or what Adam knows of them, as the kernels have them: (member, number) and (member, bound, output)."""
    shape, targets = layout.shape_of(members[0].network), len(members[0].min_log_variance)
    network = layout.zeros(len(members), layout.row_size(shape))
    bounds = layout.zeros(len(members), 2, layout.padded(shape.outputs))
    for i, member in enumerate(members):
        layout.fill(network[i], member.network)
        bounds[i, LOW, targets : 2 * targets] = member.min_log_variance
        bounds[i, HIGH, targets : 2 * targets] = member.max_log_variance
    return network, bounds


def _member(network: np.ndarray, bounds: np.ndarray, like: Member) -> Member:
    """The member that `rows_of` wrote, as views."""
    targets = len(like.min_log_variance)
    low, high = (cast(jax.Array, bounds[which, targets : 2 * targets]) for which in (LOW, HIGH))
    return Member(layout.reader(like.network)(network), low, high, like.deterministic)


def _stacked(*leaves: np.ndarray) -> jax.Array:
    return jnp.asarray(np.stack(leaves))


def _scales(scaling: Scaling) -> Scales:
    mean, deviation = np.asarray(scaling.input_mean), np.asarray(scaling.input_std)
    target_mean, target_deviation = np.asarray(scaling.target_mean), np.asarray(scaling.target_std)
    return Scales(mean, 1 / deviation, target_mean, 1 / target_deviation)
