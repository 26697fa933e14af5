"""Passes through a network laid out by `layout`, forward and back, over some of the rows."""

from typing import NamedTuple

import numpy as np

from mbdp.kernels import adam
from mbdp.kernels.compiling import in_widest_vectors, inlined, keep_apart
from mbdp.kernels.elementary import exp
from mbdp.kernels.layout import Shape, layer_at, layer_sizes, padded, row_size, zeros
from mbdp.kernels.products import (
    ACROSS,
    ADD,
    NEXT,
    ROWS,
    TILE,
    address,
    copy_strips,
    learn_from_strips,
    multiply,
    pack,
    pack_transposed,
)

# Of NumPy's types, because Numba would compile a function anew for every constant of Python's that it is given.
START, YES, NO = np.int64(0), np.bool_(True), np.bool_(False)
# Hidden layers: ReLU, normalised and ReLU, SiLU, SiLU without a way back.
RECTIFIED, NORMALISED, SMOOTH, SMOOTH_ONCE = (np.int64(i) for i in range(4))
# Panels of a network's matrices, in the order in which tiles read them: made for one pass, made to be kept, or those
# that an earlier pass has kept; a bench keeps the panels of one network.
MAKE, KEEP, REUSE = (np.int64(i) for i in range(3))
TINY = np.float32(1e-6)
ZERO, ONE = np.float32(0), np.float32(1)


class Memory(NamedTuple):
    """What a forward pass keeps for the way back."""

    hidden: np.ndarray  # (layer, row, unit), what each hidden layer hands on
    inner: np.ndarray  # the same, before it was scaled, where layers are normalised; where smooth, SiLU's slope
    inverse: np.ndarray  # (layer, row), one over the deviation that was divided by
    out: np.ndarray  # (row, output)


class Bench(NamedTuple):
    """Where passes over a block of rows work; nothing but panels that are kept stays here."""

    slope: np.ndarray  # (2, row, unit), of what is minimised, on its way back
    packed: np.ndarray
    strips: np.ndarray
    panels: np.ndarray  # that are kept: of the way forward, and of the way back, each as long as a network


class Step(NamedTuple):
    """What Adam needs for a step of a network, `rate` and `of_square` as `adam.corrected` has them."""

    mean: np.ndarray
    square: np.ndarray
    rate: np.float32
    of_square: np.float32
    decays: np.ndarray  # of each layer's matrix


def memory(shape: Shape, rows: int) -> Memory:
    """For passes over so many rows."""
    rows, width = padded(rows), padded(shape.width)
    return Memory(
        hidden=zeros(shape.depth, rows, width),
        inner=zeros(shape.depth, rows, width),
        inverse=zeros(shape.depth, rows),
        out=zeros(rows, padded(shape.outputs)),
    )


def bench(rows: int, *shapes: Shape) -> Bench:
    """For networks of these shapes and blocks of so many rows."""
    rows, widest = padded(rows), max(padded(size) for s in shapes for size in (s.inputs, s.width, s.outputs))
    return Bench(
        slope=zeros(2, rows, widest),
        packed=zeros(max(rows, widest) * widest),
        strips=zeros(rows * widest),
        panels=zeros(2, max(row_size(shape) for shape in shapes)),
    )


@inlined
def forward(network, shape, kind, x, first, rows, kept, at, packing, bench):  # type: ignore[no-untyped-def]
    """Rows first to first + rows of x through the network; row `at` of what is kept is the first of them."""
    keep_apart()
    real_inputs, width, hidden_layers, real_outputs = shape
    count = (rows + ROWS - 1) // ROWS * ROWS
    below, below_row = address(x) + 4 * first * x.shape[1], x.shape[1]
    for layer in range(hidden_layers):
        inputs, outputs = layer_sizes(shape, layer)
        place, depth = layer_at(shape, layer), real_inputs if layer == 0 else width
        weight, hidden = address(network) + 4 * place, kept.hidden[layer]
        target, bias = address(hidden) + 4 * at * outputs, weight + 4 * inputs * outputs
        panels = _panels(packing, bench, 0, place)
        if packing != REUSE:
            pack(weight, outputs, depth, outputs, panels)
        multiply(below, TILE * below_row, below_row, NEXT, count, depth, panels, bias, outputs, target, outputs)
        if kind == NORMALISED:
            scale = network[place + (inputs + 1) * outputs :]
            _normalise(hidden, kept.inner[layer], kept.inverse[layer], scale, scale[outputs:], at, rows, width)
        elif kind == SMOOTH:
            _smooth(hidden, kept.inner[layer], at, rows)
        elif kind == SMOOTH_ONCE:
            _smooth_once(hidden, at, rows)
        else:
            _rectify(hidden, at, rows)
        below, below_row = target, outputs
    inputs, outputs = layer_sizes(shape, hidden_layers)
    place = layer_at(shape, hidden_layers)
    if real_outputs == 1:
        _forward_to_one(network[place:], kept.hidden[-1], kept.out, at, rows, bench.strips)
    else:
        weight, target = address(network) + 4 * place, address(kept.out) + 4 * at * outputs
        panels, bias = _panels(packing, bench, 0, place), weight + 4 * inputs * outputs
        if packing != REUSE:
            pack(weight, outputs, width, outputs, panels)
        multiply(below, TILE * below_row, below_row, NEXT, count, width, panels, bias, outputs, target, outputs)


@inlined
def _panels(packing, bench, way, place):  # type: ignore[no-untyped-def]
    """The address of a layer's panels."""
    return address(bench.packed) if packing == MAKE else address(bench.panels[way]) + 4 * place


@inlined
def backward(  # type: ignore[no-untyped-def]
    network, shape, kind, x, first, rows, kept, at, slope_out, gradient, add, of_weights, of_inputs, packing, bench
):
    """From the slope of the outputs to that of the weights in `gradient`, or added to it, if asked for.

    Row `at` of `slope_out` and of what was kept belongs to row `first` of x. The slope of the inputs, if asked for, is
    where this function says, in `bench.slope`.
    """
    step = Step(gradient, gradient, ZERO, ZERO, gradient)
    return _back(
        network, shape, kind, x, first, rows, kept, at, slope_out, gradient,
        add, of_weights, of_inputs, NO, step, packing, bench,
    )  # fmt: skip


@inlined
def learn(  # type: ignore[no-untyped-def]
    network, shape, kind, x, first, rows, kept, at, slope_out, gradient, add, learns, step, packing, bench
):
    """`backward`, and, if it `learns`, Adam's step of the whole network.

    Then the gradient of a matrix never leaves the registers: `gradient` is what it is added to, if it is.
    """
    return _back(
        network, shape, kind, x, first, rows, kept, at, slope_out, gradient,
        add, YES, NO, learns, step, packing, bench,
    )  # fmt: skip


@inlined
def _back(  # type: ignore[no-untyped-def]
    network, shape, kind, x, first, rows, kept, at, slope_out, gradient, add, of_weights, of_inputs, learns, step,
    packing, bench,
):  # fmt: skip
    keep_apart()
    real_inputs, width, hidden_layers, real_outputs = shape
    count = (rows + ROWS - 1) // ROWS * ROWS
    place, slope, slope_at = START, slope_out, at
    for layer in range(hidden_layers, -1, -1):
        inputs, outputs = layer_sizes(shape, layer)
        begin = layer_at(shape, layer)
        matrix = START  # of a layer, as far as Adam has been there
        if layer == hidden_layers and real_outputs == 1:
            last, of_last, following = network[begin:], gradient[begin:], bench.slope[0]
            _backward_from_one(
                last, kept.hidden[-1], slope, following, of_last, at, rows, add, of_weights, bench.strips
            )
            place = START + 1
        else:
            matrix = inputs * outputs
            following, slope_row = bench.slope[place], slope.shape[1]
            at_slope = address(slope) + 4 * slope_at * slope_row
            if layer or of_inputs:
                row, panels = following.shape[1], _panels(packing, bench, 1, begin)
                if packing != REUSE:
                    pack_transposed(address(network) + 4 * begin, outputs, outputs, inputs, panels)
                multiply(at_slope, TILE * slope_row, slope_row, NEXT, count, outputs, panels, START, inputs,
                         address(following), row)  # fmt: skip
                place = 1 - place
            if of_weights:
                below, below_at = (kept.hidden[layer - 1], at) if layer else (x, first)
                units = ((width if layer else real_inputs) + ROWS - 1) // ROWS * ROWS  # the rest is padding
                _of_matrix(below, below_at, slope, slope_at, rows, network, gradient, begin, units, outputs,
                           add, learns, step, layer, bench)  # fmt: skip
                _add_rows(slope, slope_at, rows, gradient[begin + inputs * outputs :], outputs, add)
        if learns:
            rest, end = begin + matrix, begin + (inputs + 3) * outputs
            adam.descend(network, step.mean, step.square, gradient, rest, end, step.rate, step.of_square, ZERO)
        slope, slope_at = following, START
        if layer:
            hidden, inner = kept.hidden[layer - 1], kept.inner[layer - 1]
            if kind == NORMALISED:
                before, own = layer_sizes(shape, layer - 1)
                scales = layer_at(shape, layer - 1) + (before + 1) * own
                of_scale, of_offset = gradient[scales : scales + own], gradient[scales + own : scales + 2 * own]
                if of_weights and not add:
                    of_scale[:] = 0
                    of_offset[:] = 0
                _normalise_back(
                    slope, hidden, inner, kept.inverse[layer - 1], network[scales:], of_scale, of_offset,
                    at, rows, width, of_weights,
                )  # fmt: skip
            elif kind == SMOOTH:
                _smooth_back(slope, inner, at, rows)
            else:
                _rectify_back(slope, hidden, at, rows)
    return 1 - place


@inlined
def move_together(kept, kind, chosen, count):  # type: ignore[no-untyped-def]
    """The first rows of what was kept become those that are chosen, whose numbers rise; of the others nothing stays."""
    for layer in range(len(kept.hidden)):
        _move_rows(kept.hidden[layer], chosen, count)
        if kind == NORMALISED:
            _move_rows(kept.inner[layer], chosen, count)
            for i in range(count):
                kept.inverse[layer, i] = kept.inverse[layer, chosen[i]]


@inlined
def _move_rows(x, chosen, count):  # type: ignore[no-untyped-def]
    for i in range(count):
        own = chosen[i]
        for j in range(x.shape[1]):
            x[i, j] = x[own, j]


@inlined
def _of_matrix(  # type: ignore[no-untyped-def]
    below, below_at, slope, slope_at, rows, network, gradient, begin, units, outputs, add, learns, step, layer, bench
):
    """The gradient of a layer's matrix, or Adam's step along it."""
    packed, strips, below_row, slope_row = address(bench.packed), address(bench.strips), below.shape[1], slope.shape[1]
    at_below, at_gradient = address(below) + 4 * below_at * below_row, address(gradient) + 4 * begin
    pack(address(slope) + 4 * slope_at * slope_row, slope_row, rows, outputs, packed)
    copy_strips(at_below, below_row, units, rows, strips)
    if learns:
        numbers = address(network)
        learn_from_strips(
            strips, units, rows, packed, outputs, at_gradient if add else START,
            numbers + 4 * begin, outputs, address(step.mean) - numbers, address(step.square) - numbers,
            step.rate, step.of_square, step.decays[layer],
        )  # fmt: skip
    else:
        begins = ADD if add else START
        multiply(strips, TILE * rows, NEXT, ACROSS, units, rows, packed, begins, outputs, at_gradient, outputs)


@inlined
def _rectify(x, at, rows):  # type: ignore[no-untyped-def]
    for i in range(at, at + rows):
        for j in range(x.shape[1]):
            x[i, j] = max(x[i, j], ZERO)


@inlined
def _rectify_back(slope, hidden, at, rows):  # type: ignore[no-untyped-def]
    for i in range(rows):
        for j in range(hidden.shape[1]):
            slope[i, j] = slope[i, j] if hidden[at + i, j] > 0 else ZERO


@inlined
def _smooth(x, slope, at, rows):  # type: ignore[no-untyped-def]
    """SiLU, and its slope."""
    keep_apart()
    in_widest_vectors()
    for i in range(at, at + rows):
        for j in range(x.shape[1]):
            share = ONE / (ONE + exp(-x[i, j]))
            x[i, j] *= share
            slope[i, j] = share + x[i, j] * (ONE - share)


@inlined
def _smooth_once(x, at, rows):  # type: ignore[no-untyped-def]
    """SiLU alone."""
    keep_apart()
    in_widest_vectors()
    for i in range(at, at + rows):
        for j in range(x.shape[1]):
            x[i, j] /= ONE + exp(-x[i, j])


@inlined
def _smooth_back(slope, inner, at, rows):  # type: ignore[no-untyped-def]
    for i in range(rows):
        for j in range(inner.shape[1]):
            slope[i, j] *= inner[at + i, j]


@inlined
def _add_rows(slope, at, rows, total, columns, add):  # type: ignore[no-untyped-def]
    """The sum of all rows, or added to what is there."""
    if not add:
        total[:columns] = 0
    for i in range(at, at + rows):
        for j in range(columns):
            total[j] += slope[i, j]


@inlined
def _forward_to_one(layer, hidden, out, at, rows, weight):  # type: ignore[no-untyped-def]
    """A last layer with one output, whose matrix is a column among zeros."""
    units, step = hidden.shape[1], out.shape[1]
    for j in range(units):
        weight[j] = layer[j * step]
    for i in range(at, at + rows):
        total = layer[units * step]
        for j in range(units):
            total += hidden[i, j] * weight[j]
        out[i, 0] = total


@inlined
def _backward_from_one(  # type: ignore[no-untyped-def]
    layer, hidden, slope_out, slope, gradient, at, rows, add, of_weights, strips
):
    """The way back through a last layer with one output."""
    units, step = hidden.shape[1], slope_out.shape[1]
    weight, total, of_bias = strips[:units], strips[units : 2 * units], ZERO
    for j in range(units):
        weight[j] = layer[j * step]
        total[j] = gradient[j * step] if add else ZERO
    for i in range(rows):
        own = slope_out[at + i, 0]
        of_bias += own
        for j in range(units):
            slope[i, j] = own * weight[j]
            total[j] += own * hidden[at + i, j]
    if of_weights:
        for j in range(units):
            gradient[j * step] = total[j]
        gradient[units * step] = of_bias + (gradient[units * step] if add else ZERO)


@inlined
def _normalise(x, normal, inverse, scale, offset, at, rows, width):  # type: ignore[no-untyped-def]
    """Each row to mean 0 and deviation 1, scaled and offset, and what is negative to 0."""
    keep_apart()
    for i in range(at, at + rows):
        total, squares = ZERO, ZERO
        for j in range(width):
            total += x[i, j]
        mean = total / np.float32(width)
        for j in range(width):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        one_over = ONE / np.sqrt(squares / np.float32(width) + TINY)
        inverse[i] = one_over
        for j in range(width):
            normal[i, j] = (x[i, j] - mean) * one_over
            x[i, j] = max(normal[i, j] * scale[j] + offset[j], ZERO)


@inlined
def _normalise_back(  # type: ignore[no-untyped-def]
    slope, hidden, normal, inverse, scale, of_scale, of_offset, at, rows, width, of_weights
):
    """From the slope after normalisation to that before it."""
    keep_apart()
    for i in range(rows):
        total, along = ZERO, ZERO
        if of_weights:
            for j in range(width):
                own = slope[i, j] if hidden[at + i, j] > 0 else ZERO
                of_offset[j] += own
                of_scale[j] += own * normal[at + i, j]
        for j in range(width):
            own = scale[j] * (slope[i, j] if hidden[at + i, j] > 0 else ZERO)
            slope[i, j] = own
            total += own
            along += own * normal[at + i, j]
        mean, along, one_over = total / np.float32(width), along / np.float32(width), inverse[at + i]
        for j in range(width):
            slope[i, j] = one_over * (slope[i, j] - mean - normal[at + i, j] * along)
