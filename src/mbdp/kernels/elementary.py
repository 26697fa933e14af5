"""Functions of single numbers that loops over them can vectorise; the C library's cannot be."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mbdp.kernels.compiling import inlined

LOG2_E, HALF, ONE, TWO = (np.float32(x) for x in (1.4426950408889634, 0.5, 1, 2))
LN_2_HIGH, LN_2_LOW = np.float32(0.693145751953125), np.float32(1.42860682030941723e-6)
LOWEST, HIGHEST = np.float32(-87), np.float32(88)  # beyond these the result has no normal float32
# 1/k!, k = 7 to 2: what is left of the series is below a float32's precision for |x| <= ln(2)/2
A, B, C, D, E, F = (np.float32(1.0 / factorial) for factorial in (5040, 720, 120, 24, 6, 2))


@inlined
def exp(x):  # type: ignore[no-untyped-def]
    """e^x: 2^n, n whole, times a series in what is left of x."""
    x = min(max(x, LOWEST), HIGHEST)
    n = _floor(x * LOG2_E + HALF)
    r = x - n * LN_2_HIGH - n * LN_2_LOW
    return _two_to(n) * (((((((A * r + B) * r + C) * r + D) * r + E) * r + F) * r + ONE) * r + ONE)


@inlined
def tanh(x):  # type: ignore[no-untyped-def]
    """The hyperbolic tangent."""
    e = exp(-TWO * abs(x))
    size = (ONE - e) / (ONE + e)
    return size if x >= 0 else -size


@intrinsic
def _two_to(context, n):  # type: ignore[no-untyped-def]
    """2^n for a whole number in a float32: it is the exponent's bits."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = ir.IntType(32)
        biased = builder.add(builder.fptosi(args[0], whole), ir.Constant(whole, 127))
        return builder.bitcast(builder.shl(biased, ir.Constant(whole, 23)), ir.FloatType())

    return types.float32(types.float32), emit


@intrinsic
def _floor(context, x):  # type: ignore[no-untyped-def]
    """The next whole number below, as one instruction."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.module.declare_intrinsic("llvm.floor", [ir.FloatType()]), args)

    return types.float32(types.float32), emit
