"""Numba's compiler with this package's settings, and a place for what it has compiled."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic

# Without Python's lock; sums may be reordered, NaN stays NaN; a division by zero raises nothing, because a loop that
# may raise is not vectorised.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}


def compiled(function: Callable[..., Any]) -> Any:
    """`numba.njit`, kept on disk for the next process.

    Numba compares only a function's own file with what it has kept, so the
    folder's name has a digest of the whole package in it.
    """
    folder = _folder()
    if folder is None:
        return numba.njit(**OPTIONS)(function)
    config: Any = numba.config
    numba_s_own, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return numba.njit(cache=True, **OPTIONS)(function)
    finally:
        config.CACHE_DIR = numba_s_own


def inlined(function: Callable[..., Any]) -> Any:
    """`compiled`, for what only other compiled functions call: it is kept as part of those."""
    return numba.njit(**OPTIONS)(function)


@intrinsic
def keep_apart(context):  # type: ignore[no-untyped-def]
    """Say in a large function that its code is not to be copied to wherever it is called: compiling takes less time."""
    return _with_attribute("noinline")


@intrinsic
def in_widest_vectors(context):  # type: ignore[no-untyped-def]
    """Say in a function that is kept apart that its loops are worth the widest registers; LLVM likes narrower ones."""
    return _with_attribute('"prefer-vector-width"="512"')


def _with_attribute(attribute: str) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        set.add(builder.function.attributes, attribute)  # its own `add` knows no attributes that are strings
        return context.get_dummy_value()

    return types.void(), emit


@cache
def _folder() -> Path | None:
    """Where compiled code is kept, if that can be written to."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "mbdp" / "kernels" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None
