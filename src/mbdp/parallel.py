"""Independent compiled calls side by side, because one call on a small network keeps little more than one core busy."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def side_by_side(function: Callable[[Any], Any], arguments: Iterable[Any]) -> list[Any]:
    """What the function makes of each argument, in order, computed by as many threads as there are cores."""
    import jax

    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(lambda argument: jax.block_until_ready(function(argument)), arguments))


def cores() -> int:
    """The cores that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
