"""Double dropout, the idea of MBDP, as two pure functions that work on NumPy, JAX and torch arrays alike.

Both are the identity at 0, both are deterministic, and neither knows anything else of this library: borrow them.
"""

import math
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

Array = Any  # a NumPy, JAX or torch array; what comes out is of the kind that went in


def model_dropout(bias: Array, beta: float) -> Array:
    """Indices of the members that survive when the most biased fraction `beta` is dropped, best first (Section 3.2).

    Of N members with a finite bias, max(1, round((1 - beta) N)) are kept; equal biases are ranked by position.
    A member whose bias is not finite is never kept and does not count in N, so if no bias is finite nothing is kept.
    The number kept depends on the values, so call this outside `jax.jit`.
    """
    check_fraction("beta", beta)
    xp = array_namespace(bias)
    if bias.ndim != 1:
        raise ValueError(f"bias must have one number per member, in one dimension; its shape is {tuple(bias.shape)}")
    finite = xp.isfinite(bias)
    ranked = xp.argsort(xp.where(finite, bias, math.inf), stable=True)
    return ranked[: int(_number_kept(int(xp.sum(finite)), beta))]


def rollout_dropout(reward: Array, alpha: float, *, axis: int = -1, valid: Array | None = None) -> Array:
    """True where a sample survives when each group along `axis` drops its highest-reward fraction `alpha` (Eq. 3.1).

    Of n valid samples in a group, those with a reward up to the max(1, round((1 - alpha) n))-th smallest are kept, so
    samples that tie with that reward are kept too, as in the paper's `r <= r_{1-alpha}`.
    A sample that is not `valid`, or whose reward is not finite, is never kept and does not count in n.
    """
    check_fraction("alpha", alpha)
    xp = array_namespace(reward)
    size = reward.shape[axis]
    if size == 1 and alpha > 0:
        raise ValueError(
            f"each group along axis {axis} has one sample, so alpha={alpha} has nothing to compare it with: "
            "draw several samples per group, or set alpha=0"
        )
    valid = xp.isfinite(reward) if valid is None else xp.isfinite(reward) & xp.astype(valid, xp.bool)
    if alpha == 0:
        return valid
    ascending = xp.sort(xp.where(valid, reward, math.inf), axis=axis)
    last_kept_of = xp.asarray(np.maximum(_number_kept(np.arange(size + 1), alpha) - 1, 0), device=device(reward))
    last_kept = last_kept_of[xp.sum(valid, axis=axis, keepdims=True)]
    return valid & (reward <= xp.take_along_axis(ascending, last_kept, axis=axis))


def _number_kept(count: Any, dropped: float) -> Any:
    """max(1, round((1 - dropped) count)), and 0 of 0; rounded in double precision, whatever the array's own."""
    return np.minimum(count, np.maximum(1, np.rint((1 - float(dropped)) * count))).astype(np.int64)


def check_fraction(name: str, value: float) -> None:
    """Raise a ValueError that names `value` unless it is a number in [0, 1)."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= value < 1:
        raise ValueError(f"{name} is the fraction that is dropped, a number in [0, 1); it is {value!r}")
