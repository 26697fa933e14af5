"""The versions that a result was made with."""

import platform
from importlib.metadata import version

PACKAGES = ("mbdp", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco")


def versions() -> dict[str, str]:
    """Packages, Python and platform, by name."""
    return {name: version(name) for name in PACKAGES} | {
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
