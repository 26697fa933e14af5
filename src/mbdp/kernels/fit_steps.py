"""Gradient steps of one member of an ensemble: the equations are those of `mbdp.models.fit.loss`."""

from typing import NamedTuple

import numpy as np

from mbdp.kernels import adam
from mbdp.kernels.compiling import compiled, in_widest_vectors, inlined, keep_apart
from mbdp.kernels.denormals import flush_denormals, restore
from mbdp.kernels.elementary import exp
from mbdp.kernels.layout import Shape, row_size, zeros
from mbdp.kernels.networks import MAKE, SMOOTH, SMOOTH_ONCE, START, Bench, Memory, Step, bench, forward, learn, memory
from mbdp.kernels.products import COLUMNS

BLOCK = 256  # rows that go through a member and back before the next ones do, so that they stay in the cache
NUMBERS, MEAN, SQUARE = range(3)  # rows of a member's state
LOW, HIGH = range(2)  # bounds of the log-variances
LOOSE = np.float32(0.01)  # how strongly the bounds are drawn towards each other
ZERO, ONE, TWO = (np.float32(x) for x in (0, 1, 2))


class Settings(NamedTuple):
    """What a fit needs to know."""

    observations: int
    actions: int
    member: Shape
    deterministic: bool
    learn_termination: bool
    learning_rate: float
    batch: int


class Scales(NamedTuple):
    """Means of inputs and targets, and one over their deviations."""

    input_mean: np.ndarray
    input_inverse: np.ndarray
    target_mean: np.ndarray
    target_inverse: np.ndarray


class Room(NamedTuple):
    """Where a fit of one member works."""

    x: np.ndarray  # (row, input)
    target: np.ndarray  # (row, output), of the means
    ended: np.ndarray  # (row,)
    slope_out: np.ndarray  # (row, output)
    of_row: np.ndarray  # (3, output), what is known of one row's variances
    slope_bounds: np.ndarray  # (low or high, output)
    exp_bounds: np.ndarray  # e^(high - low) and e^-low: (2, output)
    gradient: np.ndarray
    kept: Memory
    bench: Bench


def room(settings: Settings) -> Room:
    """All of it, for blocks of rows."""
    rows = -(-min(BLOCK, settings.batch) // COLUMNS) * COLUMNS
    inputs, outputs = (-(-size // COLUMNS) * COLUMNS for size in (settings.member.inputs, settings.member.outputs))
    return Room(
        x=zeros(rows, inputs),
        target=zeros(rows, outputs),
        ended=zeros(rows),
        slope_out=zeros(rows, outputs),
        of_row=zeros(3, outputs),
        slope_bounds=zeros(2, outputs),
        exp_bounds=zeros(2, outputs),
        gradient=zeros(row_size(settings.member)),
        kept=memory(settings.member, rows),
        bench=bench(rows, settings.member),
    )


@compiled
def descend(rows, indices, network, bounds, count, decays, scales, settings, room):  # type: ignore[no-untyped-def]
    """Steps with the rows of `indices` (step, row), of which `count` were taken before.

    `network` (state, number) and `bounds` (state, low or high, output) are changed where they are. `decays` are those
    of the layers' weights.
    """
    float_mode = flush_denormals()
    shape, batch, numbers, gradient = settings.member, settings.batch, network[NUMBERS], room.gradient
    for number in range(len(indices)):
        rate, of_square = adam.corrected(settings.learning_rate, count + number + 1)
        step = Step(network[MEAN], network[SQUARE], rate, of_square, decays)
        _begin(bounds[NUMBERS], room)
        for first in range(0, batch, BLOCK):
            rows_here = min(BLOCK, batch - first)
            _gather(rows, indices[number, first : first + rows_here], scales, settings, room)
            forward(numbers, shape, SMOOTH, room.x, START, rows_here, room.kept, START, MAKE, room.bench)
            if settings.deterministic:
                _slopes_of_means(rows_here, settings, room)
            else:
                _slopes(bounds[NUMBERS], rows_here, settings, room)
            # Adam takes its step with the last of the blocks.
            learns = first + rows_here == batch
            learn(numbers, shape, SMOOTH, room.x, START, rows_here, room.kept, START, room.slope_out, gradient,
                  first > 0, learns, step, MAKE, room.bench)  # fmt: skip
        if not settings.deterministic:
            for which in range(2):
                own, slope = bounds[:, which], room.slope_bounds[which]
                adam.descend(own[NUMBERS], own[MEAN], own[SQUARE], slope, 0, len(slope), rate, of_square, ZERO)
    restore(float_mode)


@compiled
def examine(rows, network, scales, settings, room):  # type: ignore[no-untyped-def]
    """Sums over all rows of the distance from the predicted to the real next observation, and of the mean square."""
    float_mode = flush_denormals()
    o, distance, squares = settings.observations, 0.0, 0.0
    for first in range(0, len(rows), settings.batch):
        chosen = np.arange(first, min(first + settings.batch, len(rows)))
        _gather(rows, chosen, scales, settings, room)
        forward(network, settings.member, SMOOTH_ONCE, room.x, START, len(chosen), room.kept, START, MAKE, room.bench)
        for i in range(len(chosen)):
            of_row = ZERO
            for j in range(o):
                of_row += (room.kept.out[i, j] - room.target[i, j]) ** 2
            of_reward = room.kept.out[i, o] - room.target[i, o]
            distance += np.sqrt(of_row)
            squares += (of_row + of_reward * of_reward) / np.float32(o + 1)
    restore(float_mode)
    return distance, squares


@inlined
def _begin(bounds, room):  # type: ignore[no-untyped-def]
    """What of the bounds all rows need, and the slope that they have by themselves."""
    for j in range(bounds.shape[1]):
        room.exp_bounds[0, j] = exp(bounds[HIGH, j] - bounds[LOW, j])
        room.exp_bounds[1, j] = exp(-bounds[LOW, j])
        room.slope_bounds[LOW, j] = -LOOSE
        room.slope_bounds[HIGH, j] = LOOSE


@inlined
def _gather(rows, chosen, scales, settings, room):  # type: ignore[no-untyped-def]
    """A block's inputs and targets in units of their scales."""
    o, a = settings.observations, settings.actions
    following = o + a + 1
    for i in range(len(chosen)):
        row = rows[chosen[i]]
        for j in range(o + a):
            room.x[i, j] = (row[j] - scales.input_mean[j]) * scales.input_inverse[j]
        for j in range(o):
            change = row[following + j] - row[j]
            room.target[i, j] = (change - scales.target_mean[j]) * scales.target_inverse[j]
        room.target[i, o] = (row[o + a] - scales.target_mean[o]) * scales.target_inverse[o]
        room.ended[i] = row[following + o]


@inlined
def _slopes(bounds, size, settings, room):  # type: ignore[no-untyped-def]
    """Of the loss along the outputs and the bounds.

    With w = e^(high - raw) and u = e^(high - low) / (1 + w), both of the two soft bounds in a row are quotients: the
    variance is e^low (1 + u), its logarithm's slope along raw w / (1 + w) u / (1 + u).
    """
    keep_apart()
    in_widest_vectors()
    targets = settings.observations + 1
    share, terminations = ONE / np.float32(settings.batch * targets), ONE / np.float32(settings.batch)
    high, span, of_low = bounds[HIGH], room.exp_bounds[0], room.exp_bounds[1]
    precision, along_low, along_raw = room.of_row[0], room.of_row[1], room.of_row[2]
    for i in range(size):
        out, slope, target = room.kept.out[i], room.slope_out[i], room.target[i]
        for j in range(len(out)):  # all columns, whatever they mean: whole vectors
            w = exp(high[j] - out[j])
            one_over = ONE / (ONE + w)
            u = span[j] * one_over
            one_over_other = ONE / (ONE + u)
            precision[j] = of_low[j] * one_over_other
            along_low[j] = u * one_over_other
            along_raw[j] = w * one_over
        for j in range(targets):
            k = targets + j
            error = out[j] - target[j]
            weighted = error * precision[k]
            of_log_variance = share * (ONE - error * weighted)
            slope[j] = TWO * share * weighted
            slope[k] = of_log_variance * along_low[k] * along_raw[k]
            room.slope_bounds[LOW, k] += of_log_variance * (ONE - along_low[k])
            room.slope_bounds[HIGH, k] += of_log_variance * along_low[k] * (ONE - along_raw[k])
        if settings.learn_termination:
            slope[2 * targets] = terminations * (ONE / (ONE + exp(-out[2 * targets])) - room.ended[i])


@inlined
def _slopes_of_means(size, settings, room):  # type: ignore[no-untyped-def]
    """The same where the variance is 1."""
    targets = settings.observations + 1
    share, terminations = ONE / np.float32(settings.batch * targets), ONE / np.float32(settings.batch)
    for i in range(size):
        out, slope = room.kept.out[i], room.slope_out[i]
        for j in range(targets):
            slope[j] = TWO * share * (out[j] - room.target[i, j])
        if settings.learn_termination:
            slope[2 * targets] = terminations * (ONE / (ONE + exp(-out[2 * targets])) - room.ended[i])
