"""Products of small matrices on one core: tiles of registers, and panels packed in the order in which tiles read them.

All matrices are float32, row after row, at addresses; `*_row` is the distance between two rows, in numbers. Columns
come in multiples of COLUMNS, rows of what is written in multiples of ROWS: `layout` pads everything with zeros.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mbdp.kernels.compiling import inlined, keep_apart

COLUMNS, ROWS = 16, 8  # what paddings fill up to


def _lanes() -> int:
    """Numbers in a vector register of this processor."""
    features = binding.get_host_cpu_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


LANES = _lanes()
TILE = 4 if LANES == 8 else ROWS  # rows of a tile: AVX2 has half as many registers as the others
PANEL = 3 * LANES  # columns of a tile
# Of NumPy's types, because Numba would compile a function anew for every constant of Python's that it is given.
ADD = np.int64(-1)  # instead of a bias: begin with what is there
NEXT, ACROSS = np.int64(1), np.int64(TILE)  # from number to number of a row, or of a strip
TOGETHER = 4  # steps along the depth between two jumps

FLOAT, INDEX = ir.FloatType(), ir.IntType(64)
VECTOR = ir.VectorType(FLOAT, LANES)


@inlined
def multiply(a, a_tile, a_row, a_depth, rows, depth, packed, bias, columns, out, out_row):  # type: ignore[no-untyped-def]
    """out = a @ packed + bias; at bias 0 nothing is added, at bias ADD what is there.

    The tiles of a are `a_tile` numbers apart, number [i, k] of a tile is a_row i + a_depth k from its first one: NEXT
    in rows that follow each other, and in strips, which `copy_strips` makes of a transpose, ACROSS.
    """
    keep_apart()
    column = 0
    while column < columns:
        width = _next_panel(columns - column)
        for row in range(0, rows, TILE):
            of_a, of_out = a + 4 * (row // TILE) * a_tile, out + 4 * (row * out_row + column)
            added = bias + 4 * column if bias > 0 else bias
            if width == PANEL:
                _tile_3(of_a, a_row, a_depth, depth, packed, added, of_out, out_row)
            elif width == 2 * LANES:
                _tile_2(of_a, a_row, a_depth, depth, packed, added, of_out, out_row)
            else:
                _tile_1(of_a, a_row, a_depth, depth, packed, added, of_out, out_row)
        packed += 4 * width * depth
        column += width


@inlined
def copy_strips(a, a_row, rows, depth, strips):  # type: ignore[no-untyped-def]
    """The columns of a, `depth` numbers long, as many in a strip as a tile has rows; ACROSS a strip from row to row."""
    for row in range(0, rows, TILE):
        _copy_strip(a + 4 * row, a_row, depth, strips + 4 * row * depth)


@inlined
def learn_from_strips(  # type: ignore[no-untyped-def]
    strips, rows, depth, packed, columns, begin, numbers, row_size, to_mean, to_square, rate, of_square, decay
):
    """Adam's step of `numbers` along strips @ packed, to which the gradient at `begin`, if that is not 0, is added.

    Adam's mean and mean square are `to_mean` and `to_square` bytes further on; `rate` has the mean's correction in it.
    """
    keep_apart()
    column = 0
    while column < columns:
        width = _next_panel(columns - column)
        for row in range(0, rows, TILE):
            a_tile, at = strips + 4 * row * depth, 4 * (row * row_size + column)
            begin_tile, tile = begin + at if begin else begin, numbers + at
            if width == PANEL:
                _learn_3(
                    a_tile, 1, TILE, depth, packed, begin_tile, tile, row_size,
                    to_mean, to_square, rate, of_square, decay,
                )  # fmt: skip
            elif width == 2 * LANES:
                _learn_2(
                    a_tile, 1, TILE, depth, packed, begin_tile, tile, row_size,
                    to_mean, to_square, rate, of_square, decay,
                )  # fmt: skip
            else:
                _learn_1(
                    a_tile, 1, TILE, depth, packed, begin_tile, tile, row_size,
                    to_mean, to_square, rate, of_square, decay,
                )  # fmt: skip
        packed += 4 * width * depth
        column += width


@inlined
def pack(b, b_row, depth, columns, packed):  # type: ignore[no-untyped-def]
    """Panels of b (depth, columns), for products with b."""
    column = 0
    while column < columns:
        width = _next_panel(columns - column)
        if width == PANEL:
            _copy_3(b + 4 * column, b_row, depth, packed)
        elif width == 2 * LANES:
            _copy_2(b + 4 * column, b_row, depth, packed)
        else:
            _copy_1(b + 4 * column, b_row, depth, packed)
        packed += 4 * width * depth
        column += width


@inlined
def pack_transposed(b, b_row, depth, columns, packed):  # type: ignore[no-untyped-def]
    """Panels of b.T, for products with the transpose of b (columns, depth); depth is a multiple of COLUMNS, too."""
    keep_apart()
    column = 0
    while column < columns:
        width = _next_panel(columns - column)
        for part in range(0, width, LANES):
            _copy_transposed(b + 4 * (column + part) * b_row, b_row, depth, packed + 4 * part, width)
        packed += 4 * width * depth
        column += width


@inlined
def _next_panel(columns):  # type: ignore[no-untyped-def]
    """Columns of the next panel: three vectors, but two before the last two, because a tile of one is slow."""
    return 2 * LANES if columns == 4 * LANES else min(PANEL, columns)


@inlined
def address(array):  # type: ignore[no-untyped-def]
    """Where an array's numbers begin."""
    return np.int64(array.ctypes.data)


def _tile(vectors: int) -> Any:
    """Code for a tile of TILE rows and so many vectors: all of it stays in registers while `depth` is walked along."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, a_row, a_depth, depth, b, bias, out, out_row = args
        a, b, bias, out = (builder.inttoptr(x, FLOAT.as_pointer()) for x in (a, b, bias, out))
        of_out = [builder.gep(out, [_times(builder, i, out_row)]) for i in range(TILE)]
        sums = _sums(builder, vectors)
        with builder.if_then(builder.icmp_signed("==", args[5], ir.Constant(INDEX, int(ADD)))):
            _begin(builder, sums, lambda i, part: _load(builder, of_out[i], part * LANES))
        with builder.if_then(builder.icmp_signed(">", args[5], ir.Constant(INDEX, 0))):
            added = [_load(builder, bias, part * LANES) for part in range(vectors)]
            _begin(builder, sums, lambda i, part: added[part])
        _walk(builder, sums, a, a_row, a_depth, depth, b)
        for i, row in enumerate(sums):
            for part, place in enumerate(row):
                _store(builder, builder.load(place), of_out[i], part * LANES)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), emit


def _learning_tile(vectors: int) -> Any:
    """The same for a gradient that never leaves the registers: what is written is Adam's step, as in `adam.descend`."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, a_row, a_depth, depth, b, gradient, numbers, row_size, to_mean, to_square, rate, of_square, decay = args
        a, b, gradient = (builder.inttoptr(x, FLOAT.as_pointer()) for x in (a, b, gradient))
        places = [builder.inttoptr(builder.add(numbers, x), FLOAT.as_pointer()) for x in (to_mean, to_square)]
        places = [builder.inttoptr(numbers, FLOAT.as_pointer()), *places]
        for place, i, part in product(places, range(TILE), range(vectors)):  # to be here when the products are done
            _prefetch(builder, builder.gep(place, [_times(builder, i, row_size)]), part * LANES)
        sums = _sums(builder, vectors)
        with builder.if_then(builder.icmp_signed("!=", args[5], ir.Constant(INDEX, 0))):
            rows = [builder.gep(gradient, [_times(builder, i, row_size)]) for i in range(TILE)]
            _begin(builder, sums, lambda i, part: _load(builder, rows[i], part * LANES))
        _walk(builder, sums, a, a_row, a_depth, depth, b)
        rate, of_square, decay = (_everywhere(builder, x) for x in (rate, of_square, decay))
        of_vector = ir.FunctionType(VECTOR, [VECTOR])
        square_root = cgutils.get_or_insert_function(builder.module, of_vector, f"llvm.sqrt.v{LANES}f32")
        for i, row in enumerate(sums):
            own = [builder.gep(place, [_times(builder, i, row_size)]) for place in places]
            for part, place in enumerate(row):
                number, mean, square = (_load(builder, x, part * LANES) for x in own)
                slope = _plus(builder, builder.load(place), builder.fmul(decay, number, flags=("contract",)))
                mean = _remember(builder, mean, slope, 0.9)
                square = _remember(builder, square, builder.fmul(slope, slope), 0.999)
                root = builder.call(square_root, [builder.fmul(square, of_square)])
                change = builder.fdiv(builder.fmul(rate, mean), builder.fadd(root, _constant(1e-8)))
                for value, where in zip((builder.fsub(number, change), mean, square), own, strict=True):
                    _store(builder, value, where, part * LANES)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 10, *[types.float32] * 3), emit


def _sums(builder: Any, vectors: int) -> list[list[Any]]:
    """Registers of a tile, zero."""
    sums = [[cgutils.alloca_once(builder, VECTOR) for _ in range(vectors)] for _ in range(TILE)]
    _begin(builder, sums, lambda i, part: _constant(0.0))
    return sums


def _begin(builder: Any, sums: list[list[Any]], value_of: Callable[[int, int], Any]) -> None:
    for i, row in enumerate(sums):
        for part, place in enumerate(row):
            builder.store(value_of(i, part), place)


def _walk(builder: Any, sums: list[list[Any]], a: Any, a_row: Any, a_depth: Any, depth: Any, b: Any) -> None:
    """Add the products of a tile's rows and a panel."""
    vectors, together, one = len(sums[0]), ir.Constant(INDEX, TOGETHER), ir.Constant(INDEX, 1)
    whole = builder.mul(builder.sdiv(depth, together), together)
    for start, stop, step in ((ir.Constant(INDEX, 0), whole, together), (whole, depth, one)):
        with cgutils.for_range_slice(builder, start, stop, step, intp=INDEX, inc=True) as (first, _):
            for ahead in range(step.constant):
                at = builder.add(first, ir.Constant(INDEX, ahead))
                of_b = builder.gep(b, [_times(builder, vectors * LANES, at)])
                of_a = builder.gep(a, [builder.mul(at, a_depth)])
                factors = [_load(builder, of_b, part * LANES) for part in range(vectors)]
                for i, row in enumerate(sums):
                    number = builder.load(builder.gep(of_a, [_times(builder, i, a_row)]))
                    number.align = 4
                    factor = _everywhere(builder, number)
                    for part, place in enumerate(row):
                        one_more = builder.fmul(factor, factors[part], flags=("contract",))
                        builder.store(_plus(builder, one_more, builder.load(place)), place)


@intrinsic
def _tile_1(context, a, a_row, a_depth, depth, b, bias, out, out_row):  # type: ignore[no-untyped-def]
    return _tile(1)


@intrinsic
def _tile_2(context, a, a_row, a_depth, depth, b, bias, out, out_row):  # type: ignore[no-untyped-def]
    return _tile(2)


@intrinsic
def _tile_3(context, a, a_row, a_depth, depth, b, bias, out, out_row):  # type: ignore[no-untyped-def]
    return _tile(3)


@intrinsic
def _learn_1(context, a, a_row, a_depth, depth, b, begin, numbers, row, to_mean, to_square, rate, of_square, decay):  # type: ignore[no-untyped-def]
    return _learning_tile(1)


@intrinsic
def _learn_2(context, a, a_row, a_depth, depth, b, begin, numbers, row, to_mean, to_square, rate, of_square, decay):  # type: ignore[no-untyped-def]
    return _learning_tile(2)


@intrinsic
def _learn_3(context, a, a_row, a_depth, depth, b, begin, numbers, row, to_mean, to_square, rate, of_square, decay):  # type: ignore[no-untyped-def]
    return _learning_tile(3)


def _copy(width: int, lanes: int) -> Any:
    """Code for copying `depth` rows of so many numbers from a matrix to one place."""
    vector = ir.VectorType(FLOAT, lanes)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, source_row, depth, target = args
        source, target = (builder.inttoptr(x, FLOAT.as_pointer()) for x in (source, target))
        with cgutils.for_range(builder, depth, intp=INDEX) as loop:
            row = builder.gep(source, [builder.mul(loop.index, source_row)])
            place = builder.gep(target, [builder.mul(loop.index, ir.Constant(INDEX, width))])
            for part in range(0, width, lanes):
                _store(builder, _load(builder, row, part, vector), place, part)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), emit


@intrinsic
def _copy_1(context, source, source_row, depth, target):  # type: ignore[no-untyped-def]
    return _copy(LANES, LANES)


@intrinsic
def _copy_2(context, source, source_row, depth, target):  # type: ignore[no-untyped-def]
    return _copy(2 * LANES, LANES)


@intrinsic
def _copy_3(context, source, source_row, depth, target):  # type: ignore[no-untyped-def]
    return _copy(3 * LANES, LANES)


@intrinsic
def _copy_strip(context, source, source_row, depth, target):  # type: ignore[no-untyped-def]
    return _copy(TILE, TILE)


@intrinsic
def _copy_transposed(context, source, source_row, depth, target, target_row):  # type: ignore[no-untyped-def]
    """LANES rows of `depth` numbers become `depth` rows of LANES numbers."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, source_row, depth, target, target_row = args
        source, target = (builder.inttoptr(x, FLOAT.as_pointer()) for x in (source, target))
        lanes = ir.Constant(INDEX, LANES)
        with cgutils.for_range(builder, builder.sdiv(depth, lanes), intp=INDEX) as loop:
            first = builder.mul(loop.index, lanes)
            block = builder.gep(source, [first])
            rows = [_load(builder, builder.gep(block, [_times(builder, i, source_row)]), 0) for i in range(LANES)]
            place = builder.gep(target, [builder.mul(first, target_row)])
            for i, row in enumerate(_transposed(builder, rows)):
                _store(builder, row, builder.gep(place, [_times(builder, i, target_row)]), 0)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), emit


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """A square of numbers in registers, mirrored: each step swaps a bit of the row's number with one of the lane's."""
    rows, bit = list(rows), 1
    while bit < LANES:
        for i in (i for i in range(LANES) if not i & bit):
            upper, lower = rows[i], rows[i + bit]
            rows[i] = _chosen(builder, upper, lower, [LANES + k - bit if k & bit else k for k in range(LANES)])
            rows[i + bit] = _chosen(builder, upper, lower, [LANES + k if k & bit else k + bit for k in range(LANES)])
        bit *= 2
    return rows


def _chosen(builder: Any, one: Any, other: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes))


def _everywhere(builder: Any, number: Any) -> Any:
    """A vector with one number in all lanes."""
    empty = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(empty, number, ir.Constant(ir.IntType(32), 0))
    return _chosen(builder, first, empty, [0] * LANES)


def _constant(number: float) -> Any:
    return ir.Constant(VECTOR, [float(np.float32(number))] * LANES)


def _plus(builder: Any, one: Any, other: Any) -> Any:
    return builder.fadd(one, other, flags=("contract",))


def _remember(builder: Any, before: Any, new: Any, share: float) -> Any:
    """A moving average."""
    rest = float(np.float32(1) - np.float32(share))
    kept, added = builder.fmul(_constant(share), before, flags=("contract",)), builder.fmul(_constant(rest), new)
    return _plus(builder, kept, added)


def _prefetch(builder: Any, base: Any, offset: int) -> None:
    place = builder.bitcast(builder.gep(base, [ir.Constant(INDEX, offset)]), ir.IntType(8).as_pointer())
    number = ir.IntType(32)
    of_place = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, of_place, "llvm.prefetch.p0i8")
    builder.call(function, [place, number(1), number(2), number(1)])  # for writing, into the second cache, data


def _times(builder: Any, constant: int, value: Any) -> Any:
    return builder.mul(ir.Constant(INDEX, constant), value)


def _load(builder: Any, base: Any, offset: int, vector: Any = VECTOR) -> Any:
    place = builder.bitcast(builder.gep(base, [ir.Constant(INDEX, offset)]), vector.as_pointer())
    loaded = builder.load(place)
    loaded.align = 4
    return loaded


def _store(builder: Any, value: Any, base: Any, offset: int) -> None:
    place = builder.bitcast(builder.gep(base, [ir.Constant(INDEX, offset)]), value.type.as_pointer())
    builder.store(value, place).align = 4
