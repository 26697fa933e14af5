"""Updates of SAC in two parts: each has half of the rows where the actor works, and one of the critics elsewhere.

The equations are those of `mbdp.agents.sac`, whose names are used here.
"""

from typing import NamedTuple

import numpy as np

from mbdp.kernels import adam
from mbdp.kernels.compiling import compiled, inlined
from mbdp.kernels.denormals import flush_denormals, restore
from mbdp.kernels.elementary import exp, tanh
from mbdp.kernels.layout import Shape, row_size, zeros
from mbdp.kernels.networks import (
    KEEP,
    MAKE,
    NO,
    NORMALISED,
    RECTIFIED,
    REUSE,
    START,
    YES,
    Bench,
    Memory,
    Step,
    backward,
    bench,
    forward,
    learn,
    memory,
    move_together,
)
from mbdp.kernels.products import COLUMNS, ROWS
from mbdp.kernels.threads import PARTS, wait

BLOCK = 128  # rows that go through a critic and back before the next ones do, so that they stay in the cache
NUMBERS, MEAN, SQUARE, TARGET = range(4)  # rows of a network's state
LOWEST, HIGHEST = np.float32(-20), np.float32(2)  # log-deviation of an action
LN_2, HALF_LN_2_PI = np.float32(np.log(2)), np.float32(0.5 * np.log(2 * np.pi))
ZERO, HALF, ONE, TWO = (np.float32(x) for x in (0, 0.5, 1, 2))


class Settings(NamedTuple):
    """What an update needs to know."""

    observations: int
    actions: int
    actor: Shape
    critic: Shape
    normalised: bool  # the critics' hidden layers
    actor_every: int
    discount: float
    tau: float
    target_entropy: float
    learning_rate: float


class Room(NamedTuple):
    """Where an update works: inputs of networks (row, input), and what is known of every row."""

    next_observation: np.ndarray
    observation: np.ndarray
    next_policy: np.ndarray  # inputs of a critic: state and action
    data: np.ndarray
    policy: np.ndarray
    log_probability: np.ndarray  # (next state or state, row)
    action: np.ndarray  # of the policy in the state, with its deviation, for the way back
    deviation: np.ndarray
    q: np.ndarray  # (next state or state, critic, row), of the policy's action
    slope_q: np.ndarray  # (critic, row, output), padded
    slope_action: np.ndarray  # (critic, row, action)
    lower: np.ndarray  # (critic, place), rows for which this critic is the lower one
    slope_out: np.ndarray  # of the actor's output
    actor_gradient: np.ndarray  # (part, number)
    critic_gradient: np.ndarray  # (critic, number)
    no_decays: np.ndarray  # of the critics' layers
    actor_memory: Memory  # of both halves
    data_memory: tuple[Memory, Memory]  # of a block of rows
    policy_memory: tuple[Memory, Memory]
    benches: tuple[Bench, Bench]


def room(settings: Settings, batch: int) -> Room:
    """All of it, for minibatches of so many rows."""
    rows = -(-batch // COLUMNS) * COLUMNS

    def table(columns: int) -> np.ndarray:
        return zeros(rows, -(-columns // COLUMNS) * COLUMNS)

    pairs = settings.observations + settings.actions
    return Room(
        next_observation=table(settings.observations),
        observation=table(settings.observations),
        next_policy=table(pairs),
        data=table(pairs),
        policy=table(pairs),
        log_probability=zeros(2, rows),
        action=table(settings.actions),
        deviation=table(settings.actions),
        q=zeros(2, PARTS, rows),
        slope_q=zeros(PARTS, rows, COLUMNS),
        slope_action=zeros(PARTS, *table(settings.actions).shape),
        lower=np.zeros((PARTS, rows), np.int64),
        slope_out=table(2 * settings.actions),
        actor_gradient=zeros(PARTS, row_size(settings.actor)),
        critic_gradient=zeros(PARTS, row_size(settings.critic)),
        no_decays=zeros(settings.critic.depth + 1),
        actor_memory=memory(settings.actor, rows),
        data_memory=(memory(settings.critic, BLOCK), memory(settings.critic, BLOCK)),
        policy_memory=(memory(settings.critic, rows), memory(settings.critic, rows)),
        benches=(bench(rows, settings.actor, settings.critic), bench(rows, settings.actor, settings.critic)),
    )


@compiled
def update(  # type: ignore[no-untyped-def]
    first, last, threads, gate, minibatches, noise, actor, critics, temperature, counts, metrics, settings, room
):
    """`minibatches` (update, row, column), a critic step for each, and an actor step after some.

    `noise` is (actor step, one for the actor and one for each critic step, row, action); `actor` (state, number) and
    `critics` (critic, state, number) are changed where they are, and so is `temperature`, its logarithm and Adam's two
    numbers. `counts` are the steps that actor and critics have taken before. `metrics` gets sums.
    """
    float_mode = flush_denormals()
    every = settings.actor_every
    both = every == 1
    for step in range(len(minibatches) // every):
        entropy_weight = np.float32(np.exp(temperature[0]))
        for number in range(every):
            batch = minibatches[step * every + number]
            of_critic, of_actor = noise[step, 1 + number], noise[step, 0]
            for part in range(first, last):
                _act_next(part, batch, of_critic, actor, settings, room)
                if both:
                    _act(part, batch, of_actor, actor, REUSE, settings, room)
            wait(gate, threads)
            for part in range(first, last):
                _ask(part, critics[part, TARGET], room.next_policy, len(batch), room.q[0, part], MAKE, settings, room)
                if both:
                    _ask(part, critics[part, NUMBERS], room.policy, len(batch), room.q[1, part], KEEP, settings, room)
            wait(gate, threads)
            for part in range(first, last):
                if both:
                    _judge(part, len(batch), critics[part], KEEP, settings, room)
                count = counts[1] + step * every + number + 1
                reported = number == every - 1
                packing = REUSE if both else KEEP
                _learn_values(
                    part, batch, critics[part], count, entropy_weight, packing, settings, room, metrics, reported
                )
            wait(gate, threads)
        if not both:
            for part in range(first, last):
                _act(part, batch, noise[step, 0], actor, MAKE, settings, room)
            wait(gate, threads)
            for part in range(first, last):
                _ask(part, critics[part, NUMBERS], room.policy, len(batch), room.q[1, part], MAKE, settings, room)
            wait(gate, threads)
            for part in range(first, last):
                _judge(part, len(batch), critics[part], MAKE, settings, room)
            wait(gate, threads)
        for part in range(first, last):
            _learn_to_act(part, len(batch), noise[step, 0], actor, entropy_weight, settings, room)
        wait(gate, threads)
        count = counts[0] + step + 1
        for part in range(first, last):
            _step_actor(part, actor, count, settings, room)
            if part == 0:
                _step_temperature(len(batch), temperature, count, settings, room, metrics)
        wait(gate, threads)
    restore(float_mode)


@inlined
def _kind(settings):  # type: ignore[no-untyped-def]
    """Of the critics' hidden layers."""
    return NORMALISED if settings.normalised else RECTIFIED


@inlined
def _half(part, rows):  # type: ignore[no-untyped-def]
    """First and number of the rows of a part: whole tiles."""
    middle = min((rows // 2 + ROWS - 1) // ROWS * ROWS, rows)
    return (0, middle) if part == 0 else (middle, rows - middle)


@inlined
def _act_next(part, batch, noise, actor, settings, room):  # type: ignore[no-untyped-def]
    """The inputs of all networks for a half of the rows, and the policy's actions in the next states."""
    o, a = settings.observations, settings.actions
    first, rows = _half(part, len(batch))
    for i in range(first, first + rows):
        for j in range(o):
            room.observation[i, j] = room.data[i, j] = room.policy[i, j] = batch[i, j]
            room.next_observation[i, j] = room.next_policy[i, j] = batch[i, o + a + 1 + j]
        for j in range(a):
            room.data[i, o + j] = batch[i, o + j]
    kept, work = room.actor_memory, room.benches[part]
    forward(actor[NUMBERS], settings.actor, RECTIFIED, room.next_observation, first, rows, kept, first, KEEP, work)
    for i in range(first, first + rows):
        total = ZERO
        for j in range(a):
            action, _, log_probability = _squash(kept.out[i, j], kept.out[i, a + j], noise[i, j])
            room.next_policy[i, o + j] = action
            total += log_probability
        room.log_probability[0, i] = total


@inlined
def _act(part, batch, noise, actor, packing, settings, room):  # type: ignore[no-untyped-def]
    """The policy's actions in the states for a half of the rows."""
    o, a = settings.observations, settings.actions
    first, rows = _half(part, len(batch))
    kept, work = room.actor_memory, room.benches[part]
    forward(actor[NUMBERS], settings.actor, RECTIFIED, room.observation, first, rows, kept, first, packing, work)
    for i in range(first, first + rows):
        total = ZERO
        for j in range(a):
            action, deviation, log_probability = _squash(kept.out[i, j], kept.out[i, a + j], noise[i, j])
            room.policy[i, o + j] = room.action[i, j] = action
            room.deviation[i, j] = deviation
            total += log_probability
        room.log_probability[1, i] = total


@inlined
def _squash(mean, log_deviation, noise):  # type: ignore[no-untyped-def]
    """`sac.squash` for one number of an action, with its deviation."""
    log_deviation = min(max(log_deviation, LOWEST), HIGHEST)
    deviation = exp(log_deviation)
    raw = mean + noise * deviation
    size = abs(raw)
    log_jacobian = TWO * (LN_2 - size - np.float32(np.log(ONE + exp(-TWO * size))))
    return tanh(raw), deviation, -HALF * noise * noise - HALF_LN_2_PI - log_deviation - log_jacobian


@inlined
def _ask(part, network, x, rows, q, packing, settings, room):  # type: ignore[no-untyped-def]
    """What a critic says of all rows."""
    kept = room.policy_memory[part]
    forward(network, settings.critic, _kind(settings), x, START, rows, kept, START, packing, room.benches[part])
    for i in range(rows):
        q[i] = kept.out[i, 0]


@inlined
def _judge(part, rows, critic, packing, settings, room):  # type: ignore[no-untyped-def]
    """The slope of the actor's loss along the policy's actions, where this critic is the lower one.

    Elsewhere it is zero, so that only some of the rows need to go back: they move together in what the critic kept.
    """
    o, a = settings.observations, settings.actions
    own, other, slope_q, lower = room.q[1, part], room.q[1, 1 - part], room.slope_q[part], room.lower[part]
    share, count = -ONE / np.float32(rows), 0
    for i in range(rows):
        if not own[i] > other[i]:  # or both, if they are equal or one is NaN, which is to reach the actor
            equal = HALF * share if own[i] == other[i] else own[i] + other[i]
            slope_q[count, 0] = share if own[i] < other[i] else equal
            lower[count] = i
            count += 1
    kept, gradient, slope_action = room.policy_memory[part], room.critic_gradient[part], room.slope_action[part]
    network, shape, kind, work = critic[NUMBERS], settings.critic, _kind(settings), room.benches[part]
    move_together(kept, kind, lower, count)
    place = backward(network, shape, kind, room.policy, START, count, kept, START, slope_q, gradient,
                     NO, NO, YES, packing, work)  # fmt: skip
    slope = work.slope[place]
    for i in range(rows):
        for j in range(a):
            slope_action[i, j] = ZERO
    for i in range(count):
        for j in range(a):
            slope_action[lower[i], j] = slope[i, o + j]


@inlined
def _learn_values(  # type: ignore[no-untyped-def]
    part, batch, critic, number, entropy_weight, packing, settings, room, metrics, reported
):
    """`sac.update_critic` for one of the critics and its target: their step of this number."""
    o, a, rows = settings.observations, settings.actions, len(batch)
    discount, share = np.float32(settings.discount), TWO / np.float32(rows)
    slope_q, loss, total = room.slope_q[part], ZERO, ZERO
    kept, gradient, work = room.data_memory[part], room.critic_gradient[part], room.benches[part]
    network, shape, kind = critic[NUMBERS], settings.critic, _kind(settings)
    rate, of_square = adam.corrected(settings.learning_rate, number)
    step = Step(critic[MEAN], critic[SQUARE], rate, of_square, room.no_decays)
    for first in range(0, rows, BLOCK):
        count = min(BLOCK, rows - first)
        forward(network, shape, kind, room.data, first, count, kept, START, packing, work)
        for i in range(count):
            row = first + i
            next_q = min(room.q[0, 0, row], room.q[0, 1, row]) - entropy_weight * room.log_probability[0, row]
            target = batch[row, o + a] + discount * (ONE - batch[row, 2 * o + a + 1]) * next_q
            error = kept.out[i, 0] - target
            slope_q[i, 0] = share * error
            loss += error * error
            total += kept.out[i, 0]
        # Adam takes its step with the last of the blocks.
        learn(network, shape, kind, room.data, first, count, kept, START, slope_q, gradient,
              first > 0, first + count == rows, step, packing, work)  # fmt: skip
        packing = REUSE
    if reported:
        metrics[part, 0] += loss / np.float32(rows)
        metrics[part, 1] += total / np.float32(2 * rows)
    tau, target_network = np.float32(settings.tau), critic[TARGET]
    for i in range(len(network)):
        target_network[i] = tau * network[i] + (ONE - tau) * target_network[i]


@inlined
def _learn_to_act(part, rows, noise, actor, entropy_weight, settings, room):  # type: ignore[no-untyped-def]
    """The gradient of the actor's loss by a half of the rows."""
    a = settings.actions
    first, count = _half(part, rows)
    kept, share = room.actor_memory, entropy_weight / np.float32(rows)
    for i in range(first, first + count):
        for j in range(a):
            action, deviation = room.action[i, j], room.deviation[i, j]
            of_action = room.slope_action[0, i, j] + room.slope_action[1, i, j]
            of_raw = TWO * share * action + of_action * (ONE - action * action)
            free = LOWEST < kept.out[i, a + j] < HIGHEST
            room.slope_out[i, j] = of_raw
            room.slope_out[i, a + j] = of_raw * noise[i, j] * deviation - share if free else ZERO
    gradient, network = room.actor_gradient[part], actor[NUMBERS]
    work, slope = room.benches[part], room.slope_out
    backward(network, settings.actor, RECTIFIED, room.observation, first, count, kept, first, slope, gradient,
             NO, YES, NO, MAKE, work)  # fmt: skip


@inlined
def _step_actor(part, actor, count, settings, room):  # type: ignore[no-untyped-def]
    """Adam's step of a half of the actor's numbers."""
    size = actor.shape[1]
    first, last = (0, size // 2) if part == 0 else (size // 2, size)
    total, other = room.actor_gradient[0], room.actor_gradient[1]
    for i in range(first, last):
        total[i] += other[i]
    rate, of_square = adam.corrected(settings.learning_rate, count)
    adam.descend(actor[NUMBERS], actor[MEAN], actor[SQUARE], total, first, last, rate, of_square, ZERO)


@inlined
def _step_temperature(rows, temperature, count, settings, room, metrics):  # type: ignore[no-untyped-def]
    """Towards the target entropy, and what there is to tell of the actor's step."""
    total, value, weight = ZERO, ZERO, np.float32(np.exp(temperature[0]))
    for i in range(rows):
        total += room.log_probability[1, i]
        value += min(room.q[1, 0, i], room.q[1, 1, i])
    entropy = -total / np.float32(rows)
    metrics[0, 2] += -weight * entropy - value / np.float32(rows)
    metrics[0, 3] += entropy
    metrics[0, 4] += weight
    gradient = np.empty(1, np.float32)
    gradient[0] = entropy - np.float32(settings.target_entropy)
    rate, of_square = adam.corrected(settings.learning_rate, count)
    adam.descend(temperature[0:1], temperature[1:2], temperature[2:3], gradient, 0, 1, rate, of_square, ZERO)
