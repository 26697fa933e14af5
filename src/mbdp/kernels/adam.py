"""Adam, over any part of a row of numbers."""

import numpy as np

from mbdp.kernels.compiling import inlined

DECAY, DECAY_OF_SQUARES, TINY = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
ONE = np.float32(1)


@inlined
def corrected(rate, count):  # type: ignore[no-untyped-def]
    """The learning rate with the correction of the mean in it, and the correction of the mean square.

    Of step number `count`, from 1.
    """
    of_mean = ONE / np.float32(1 - 0.9 ** np.float64(count))
    return np.float32(rate) * of_mean, ONE / np.float32(1 - 0.999 ** np.float64(count))


@inlined
def descend(numbers, mean, square, gradient, first, last, rate, of_square, decay):  # type: ignore[no-untyped-def]
    """A step of numbers first to last; `rate` and `of_square` are `corrected`, `decay` is that of the numbers."""
    for i in range(first, last):
        g = gradient[i] + decay * numbers[i]
        m = DECAY * mean[i] + (ONE - DECAY) * g
        v = DECAY_OF_SQUARES * square[i] + (ONE - DECAY_OF_SQUARES) * g * g
        mean[i], square[i] = m, v
        numbers[i] -= rate * m / (np.sqrt(v * of_square) + TINY)
