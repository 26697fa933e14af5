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


def rollout_dropout(
    reward: Array,
    alpha: float,
    *,
    axis: int | tuple[int, ...] = -1,
    valid: Array | None = None,
    rounding: Array | None = None,
) -> Array:
    """True where a sample survives when each group along `axis` drops its highest-reward fraction `alpha` (Eq. 3.1).

    Of n valid samples in a group, those with a reward up to the k-th smallest are kept, so samples that tie with that
    reward are kept too, as in the paper's `r <= r_{1-alpha}`. k is max(1, round((1 - alpha) n)).
    A sample that is not `valid`, or whose reward is not finite, is never kept and does not count in n.

    In a small group k may be far from (1 - alpha) n. `rounding`, a number in [0, 1) for each group, makes it
    k = max(1, floor((1 - alpha) n + rounding)): drawn uniformly, the share that is kept is 1 - alpha on average.
    """
    check_fraction("alpha", alpha)
    xp = array_namespace(reward)
    if not isinstance(axis, int):
        return _over_several_axes(reward, alpha, axis, valid, rounding)
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
    count = xp.sum(valid, axis=axis, keepdims=True)
    if rounding is None:
        kept = xp.asarray(_number_kept(np.arange(size + 1), alpha), device=device(reward))[count]
    else:
        exact = np.round((1 - float(alpha)) * np.arange(size + 1), 9)
        whole, rest = np.floor(exact), (exact - np.floor(exact)).astype(np.float32)
        whole, rest = (xp.asarray(x, device=device(reward))[count] for x in (whole.astype(np.int64), rest))
        kept = whole + xp.astype(xp.expand_dims(rounding, axis=axis) >= 1 - rest, whole.dtype)
    last_kept = xp.where(kept > 1, kept - 1, xp.zeros_like(kept))
    return valid & (reward <= xp.take_along_axis(ascending, last_kept, axis=axis))


def _over_several_axes(
    reward: Array, alpha: float, axis: tuple[int, ...], valid: Array | None, rounding: Array | None
) -> Array:
    """`rollout_dropout` of groups that extend over several axes."""
    xp = array_namespace(reward)
    last = [one % reward.ndim for one in axis]
    if not last or len(set(last)) != len(last):
        raise ValueError(f"axis must name at least one axis, and each once; it is {axis}")
    order = [one for one in range(reward.ndim) if one not in last] + last

    def merged(x: Array) -> Array:
        return xp.reshape(xp.permute_dims(x, tuple(order)), (*(reward.shape[i] for i in order[: -len(last)]), -1))

    mask = rollout_dropout(merged(reward), alpha, valid=None if valid is None else merged(valid), rounding=rounding)
    apart = xp.reshape(mask, tuple(reward.shape[i] for i in order))
    return xp.permute_dims(apart, tuple(order.index(i) for i in range(reward.ndim)))


def _number_kept(count: Any, dropped: float) -> Any:
    """max(1, round((1 - dropped) count)), and 0 of 0; rounded in double precision, whatever the array's own."""
    return np.minimum(count, np.maximum(1, np.rint((1 - float(dropped)) * count))).astype(np.int64)


def check_fraction(name: str, value: float) -> None:
    """Raise a ValueError that names `value` unless it is a number in [0, 1)."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= value < 1:
        raise ValueError(f"{name} is the fraction that is dropped, a number in [0, 1); it is {value!r}")
