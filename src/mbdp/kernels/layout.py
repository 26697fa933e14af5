"""Networks as rows of numbers: every matrix padded with zeros to whole tiles, biases and normalisation behind it."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np

from mbdp.kernels.compiling import inlined
from mbdp.kernels.products import COLUMNS
from mbdp.networks import MLP

LINE = 64  # bytes of the cache that are fetched at once; a vector across two of them takes twice as long


def zeros(*shape: int) -> np.ndarray:
    """Numbers that begin at a line of the cache."""
    return _aligned(np.zeros(4 * math.prod(shape) + LINE, np.uint8), shape)


def copy(numbers: np.ndarray) -> np.ndarray:
    """The same numbers, beginning at a line of the cache."""
    # Not from `zeros`: new pages from the system would take longer than the copy.
    copied = _aligned(np.empty(numbers.nbytes + LINE, np.uint8), numbers.shape)
    copied[...] = numbers
    return copied


def _aligned(buffer: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    first = -buffer.ctypes.data % LINE
    return buffer[first : first + 4 * math.prod(shape)].view(np.float32).reshape(shape)


class Shape(NamedTuple):
    """Sizes of a network whose hidden layers are all equally wide."""

    inputs: int
    width: int
    depth: int
    outputs: int


@inlined
def padded(size):  # type: ignore[no-untyped-def]
    """The next multiple of what tiles need."""
    return (size + COLUMNS - 1) // COLUMNS * COLUMNS


@inlined
def layer_at(shape, layer):  # type: ignore[no-untyped-def]
    """Where a layer begins in a network's row; its bias, scale and offset follow after its matrix, each padded."""
    inputs, width, _, _ = shape
    first = (padded(inputs) + 3) * padded(width)
    return 0 if layer == 0 else first + (layer - 1) * (padded(width) + 3) * padded(width)


@inlined
def layer_sizes(shape, layer):  # type: ignore[no-untyped-def]
    """Padded inputs and outputs of a layer."""
    inputs, width, depth, outputs = shape
    return padded(inputs if layer == 0 else width), padded(outputs if layer == depth else width)


@cache
def row_size(shape: Shape) -> int:
    """Numbers in a network's row."""
    inputs, outputs = layer_sizes(shape, shape.depth)
    return int(layer_at(shape, shape.depth) + (inputs + 3) * outputs)


def shape_of(network: MLP) -> Shape:
    """The sizes of a network."""
    sizes = [weight.shape[0] for weight in network.weights]
    return Shape(sizes[0], sizes[-1], len(sizes) - 1, network.weights[-1].shape[1])


def fill(row: np.ndarray, network: MLP) -> None:
    """Write a network into its row."""
    row[:] = 0
    leaves = (network.weights, network.biases, network.scales, network.offsets)
    for places, values in zip(_places(row, shape_of(network)), leaves, strict=True):
        for place, value in zip(places, values, strict=False):
            place[...] = value


def reader(like: MLP) -> Callable[[np.ndarray], MLP]:
    """A function from a row to the network that it holds, of this one's shape, as views."""
    structure, shape = jax.tree.structure(like), shape_of(like)
    counts = [len(leaves) for leaves in (like.weights, like.biases, like.scales, like.offsets)]

    def read(row: np.ndarray) -> MLP:
        leaves = [leaf for own, count in zip(_places(row, shape), counts, strict=True) for leaf in own[:count]]
        return jax.tree.unflatten(structure, leaves)

    return read


def _places(row: np.ndarray, shape: Shape) -> list[list[np.ndarray]]:
    """Views of all matrices, then all biases, scales and offsets, in the order of a network's leaves, unpadded."""
    places: list[list[np.ndarray]] = [[], [], [], []]
    for at, inputs, outputs, real_inputs, real_outputs in _layers(shape):
        block = row[at : at + (inputs + 3) * outputs].reshape(inputs + 3, outputs)
        places[0].append(block[:real_inputs, :real_outputs])
        for i in range(3):
            places[1 + i].append(block[inputs + i, :real_outputs])
    return places


@cache
def _layers(shape: Shape) -> list[tuple[int, int, int, int, int]]:
    """Where each layer begins, its padded and its real sizes."""
    sizes, layers = [shape.inputs, *[shape.width] * shape.depth, shape.outputs], range(shape.depth + 1)
    return [(int(layer_at(shape, i)), *layer_sizes(shape, i), sizes[i], sizes[i + 1]) for i in layers]


def leaves_share(leaves: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray | None:
    """The array of this shape, made by `zeros`, whose views all leaves are, if they are."""
    base = getattr(leaves[0], "base", None)
    if not isinstance(base, np.ndarray) or base.dtype != np.uint8 or base.shape != (4 * math.prod(shape) + LINE,):
        return None
    return _aligned(base, shape) if all(getattr(leaf, "base", None) is base for leaf in leaves) else None
