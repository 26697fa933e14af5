"""Where XLA keeps what it has compiled."""

import os
from pathlib import Path

import jax


def share_compilations() -> None:
    """Let runs share what XLA has compiled, in the user's cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mbdp" / "compiled"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
