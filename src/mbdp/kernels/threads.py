"""Two threads that share one computation, and wait for each other inside compiled code."""

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mbdp.kernels.compiling import inlined
from mbdp.kernels.products import address
from mbdp.parallel import cores

PARTS = 2  # of a computation; who computes them changes no result
PATIENCE = 2_000  # looks at the gate before the core is offered to others

_offer_core = types.ExternalFunction("SwitchToThread" if os.name == "nt" else "sched_yield", types.int32())


def in_two_parts(function: Callable[..., Any], *args: Any) -> None:
    """`function(first, last, threads, gate, *args)` for parts 0 to 2, by as many threads as there are cores for."""
    gate = np.zeros(2, np.int64)  # arrivals so far, and whether somebody will never arrive
    if cores() < PARTS:
        function(0, PARTS, 1, gate, *args)
        return
    failures: list[BaseException] = []

    def compute(part: int) -> None:
        try:
            function(part, part + 1, PARTS, gate, *args)
        except BaseException as error:
            failures.append(error)
            gate[1] = 1

    helper = threading.Thread(target=compute, args=(1,), daemon=True)
    try:
        helper.start()
        compute(0)
        helper.join()
    except BaseException:
        gate[1] = 1
        raise
    if failures:
        raise failures[0]


@inlined
def wait(gate, threads):  # type: ignore[no-untyped-def]
    """Until all threads are here."""
    if threads == 1:
        return
    arrivals, looks = address(gate), 0
    goal = (_arrive(arrivals) // threads + 1) * threads
    while _look(arrivals) < goal and not _look(arrivals + 8):
        looks += 1
        if looks > PATIENCE:
            _offer_core()


@intrinsic
def _arrive(context, at):  # type: ignore[no-untyped-def]
    """Count one more arrival; how many there were before."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = ir.IntType(64)
        place = builder.inttoptr(args[0], whole.as_pointer())
        return builder.atomic_rmw("add", place, ir.Constant(whole, 1), "seq_cst")

    return types.int64(types.int64), emit


@intrinsic
def _look(context, at):  # type: ignore[no-untyped-def]
    """The number at an address that another thread may change at any time."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(place, "seq_cst", 8)

    return types.int64(types.int64), emit
