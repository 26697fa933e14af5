"""Compiling what is little else than products of matrices."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import jax

# Left to itself, XLA has its library YNNPACK multiply on a CPU. Eigen, which it has too, takes less time for most of
# what is here.
EIGEN = {"xla_cpu_experimental_ynn_fusion_type": ""}


def compiled_with_eigen(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`jax.jit` with these options, as a decorator, and with Eigen for products if XLA lets one choose."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @cache
        def compiled() -> Any:
            return jax.jit(function, compiler_options=EIGEN if _can_choose() else None, **options)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return compiled()(*args, **kwargs)

        return call

    return decorate


@cache
def _can_choose() -> bool:
    """Whether this XLA knows the option: it is experimental, and another version may not."""
    try:
        jax.jit(lambda x: x, compiler_options=EIGEN)(0.0)
    except jax.errors.JaxRuntimeError:
        return False
    return True
