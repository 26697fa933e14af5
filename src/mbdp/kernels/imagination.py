"""Steps of imagined rollouts: the policy's actions, and what members of an ensemble predict for them.

The equations are those of `mbdp.agents.sac.squash` and `mbdp.models.ensemble`.
"""

from typing import NamedTuple

import numpy as np

from mbdp.kernels.compiling import compiled, in_widest_vectors, inlined, keep_apart
from mbdp.kernels.denormals import flush_denormals, restore
from mbdp.kernels.elementary import exp, tanh
from mbdp.kernels.fit_steps import HIGH, LOW
from mbdp.kernels.layout import Shape, padded, zeros
from mbdp.kernels.networks import (
    KEEP,
    RECTIFIED,
    REUSE,
    SMOOTH_ONCE,
    START,
    Bench,
    Memory,
    bench,
    forward,
    memory,
)
from mbdp.kernels.sac_update import HIGHEST, LOWEST

BLOCK = 256  # rows that go through all layers before the next ones do, so that they stay in the cache
ONE = np.float32(1)


class Settings(NamedTuple):
    """What a step needs to know."""

    observations: int
    actions: int
    actor: Shape
    member: Shape
    deterministic: bool


class Scales(NamedTuple):
    """Means of inputs, one over their deviations, means and deviations of targets, and the range of predictions."""

    input_mean: np.ndarray
    input_inverse: np.ndarray
    target_mean: np.ndarray
    target_deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Room(NamedTuple):
    """Where a thread works."""

    x: np.ndarray  # (row, input), of an actor or a member
    deviation: np.ndarray  # (output,), of one row, at the places of the log-variances
    least: np.ndarray  # (output,), the lowest variances, and how much larger they may be
    span: np.ndarray
    of_actor: Memory
    of_member: Memory
    bench: Bench


def room(settings: Settings) -> Room:
    """All of it, for blocks of rows."""
    inputs, outputs = padded(settings.observations + settings.actions), padded(settings.member.outputs)
    return Room(
        x=zeros(BLOCK, inputs),
        deviation=zeros(outputs),
        least=zeros(outputs),
        span=zeros(outputs),
        of_actor=memory(settings.actor, BLOCK),
        of_member=memory(settings.member, BLOCK),
        bench=bench(BLOCK, settings.actor, settings.member),
    )


@compiled
def act(rows, every, noise, actor, settings, room):  # type: ignore[no-untyped-def]
    """Write the policy's actions into rows (row, column), whose observations are there already.

    So many rows in succession have one observation: the actor is asked about the first one. `noise` is (row, action).
    """
    float_mode = flush_denormals()
    o, a, out = settings.observations, settings.actions, room.of_actor.out
    room.x[:] = 0  # a member's inputs were here
    for first in range(0, len(rows) // every, BLOCK):
        count = min(BLOCK, len(rows) // every - first)
        for i in range(count):
            for j in range(o):
                room.x[i, j] = rows[(first + i) * every, j]
        packing = REUSE if first else KEEP
        forward(actor, settings.actor, RECTIFIED, room.x, START, count, room.of_actor, START, packing, room.bench)
        for i in range(count):
            for row in range((first + i) * every, (first + i + 1) * every):
                for j in range(a):
                    log_deviation = min(max(out[i, a + j], LOWEST), HIGHEST)
                    rows[row, o + j] = tanh(out[i, j] + noise[row, j] * exp(log_deviation))
    restore(float_mode)


@compiled
def predict(rows, order, limits, noise, members, bounds, scales, bounded, logits, settings, room):  # type: ignore[no-untyped-def]
    """Write rewards and next observations into rows (row, column), whose observations and actions are there already.

    Member i predicts rows order[limits[i]] to order[limits[i + 1]]; `members` are (member, number), `bounds` (member,
    low or high, output), `noise` is (row, target). `bounded` and `logits` get a number for each row.
    """
    float_mode = flush_denormals()
    for member in range(len(members)):
        for first in range(limits[member], limits[member + 1], BLOCK):
            chosen = order[first : min(first + BLOCK, limits[member + 1])]
            _gather(rows, chosen, scales, settings, room)
            shape, kept, packing = settings.member, room.of_member, KEEP if first == limits[member] else REUSE
            forward(members[member], shape, SMOOTH_ONCE, room.x, START, len(chosen), kept, START, packing, room.bench)
            _draw(rows, chosen, noise, bounds[member], scales, bounded, logits, settings, room)
    restore(float_mode)


@inlined
def _gather(rows, chosen, scales, settings, room):  # type: ignore[no-untyped-def]
    """Inputs in units of their scales."""
    for i in range(len(chosen)):
        row = rows[chosen[i]]
        for j in range(settings.observations + settings.actions):
            room.x[i, j] = (row[j] - scales.input_mean[j]) * scales.input_inverse[j]


@inlined
def _draw(rows, chosen, noise, bounds, scales, bounded, logits, settings, room):  # type: ignore[no-untyped-def]
    """`ensemble.sample`; the variances are those of `fit_steps`."""
    keep_apart()
    in_widest_vectors()
    o, targets = settings.observations, settings.observations + 1
    reward, deviation, high, least, span = o + settings.actions, room.deviation, bounds[HIGH], room.least, room.span
    for j in range(len(high)):
        least[j], span[j] = exp(bounds[LOW, j]), exp(high[j])
    for i in range(len(chosen)):
        number, out = chosen[i], room.of_member.out[i]
        row, own_noise, outside = rows[number], noise[number], 0
        for j in range(len(out)):  # all columns, whatever they mean: whole vectors
            w = exp(high[j] - out[j])
            deviation[j] = np.sqrt(least[j] + span[j] / (ONE + w))
        if settings.deterministic:
            deviation[:] = ONE
        for j in range(o):
            drawn = out[j] + own_noise[j] * deviation[targets + j]
            free = row[j] + drawn * scales.target_deviation[j] + scales.target_mean[j]
            kept = _within(free, scales.low[j], scales.high[j])
            outside += kept != free
            row[reward + 1 + j] = kept
        drawn = out[o] + own_noise[o] * deviation[targets + o]
        free = drawn * scales.target_deviation[o] + scales.target_mean[o]
        row[reward] = _within(free, scales.low[o], scales.high[o])
        bounded[number] = outside > 0 or row[reward] != free
        logits[number] = out[2 * targets]


@inlined
def _within(x, low, high):  # type: ignore[no-untyped-def]
    """`np.clip`: NaN stays NaN."""
    return low if x < low else high if x > high else x
