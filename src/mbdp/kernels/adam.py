"""Adam, over any part of a row of numbers."""

import numpy as np

from mbdp.kernels.compiling import inlined

DECAY, DECAY_OF_SQUARES, TINY = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
ONE = np.float32(1)


@inlined
def descend(numbers, mean, square, gradient, first, last, count, rate):  # type: ignore[no-untyped-def]
    """Step number `count`, from 1, of numbers first to last; `rate` is a float32."""
    of_mean = ONE / np.float32(1 - 0.9 ** np.float64(count))
    of_square = ONE / np.float32(1 - 0.999 ** np.float64(count))
    for i in range(first, last):
        g = gradient[i]
        m = DECAY * mean[i] + (ONE - DECAY) * g
        v = DECAY_OF_SQUARES * square[i] + (ONE - DECAY_OF_SQUARES) * g * g
        mean[i], square[i] = m, v
        numbers[i] -= rate * (m * of_mean) / (np.sqrt(v * of_square) + TINY)
