"""Numbers too small for a normal float32 taken for zero: a step with them would be many times slower.

Adam's memory of a unit that no longer fires decays towards them. XLA does the same in all of its own threads.
"""

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mbdp.kernels.compiling import inlined

FLUSH = 0x8040  # "flush to zero" and "denormals are zero" in the control register of SSE
_X86 = platform.machine().lower() in ("x86_64", "amd64")


@inlined
def flush_denormals():  # type: ignore[no-untyped-def]
    """From now on in this thread; what there was before, for `restore`."""
    before = _mode()
    _set_mode(before | FLUSH)
    return before


@inlined
def restore(before):  # type: ignore[no-untyped-def]
    """As it was."""
    _set_mode(before)


@intrinsic
def _mode(context):  # type: ignore[no-untyped-def]
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(32), 0))
        _on_register(builder, "stmxcsr", place)
        return builder.load(place)

    return types.int32(), emit


@intrinsic
def _set_mode(context, mode):  # type: ignore[no-untyped-def]
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = cgutils.alloca_once(builder, ir.IntType(32))
        builder.store(args[0], place)
        _on_register(builder, "ldmxcsr", place)
        return context.get_dummy_value()

    return types.void(types.int32), emit


def _on_register(builder: Any, instruction: str, place: Any) -> None:
    """Store or load the control register, where there is one."""
    if _X86:
        pointer = ir.IntType(8).as_pointer()
        of_pointer = ir.FunctionType(ir.VoidType(), [pointer])
        function = cgutils.get_or_insert_function(builder.module, of_pointer, f"llvm.x86.sse.{instruction}")
        builder.call(function, [builder.bitcast(place, pointer)])
