"""Timing several ways to do the same thing in turn, so that whatever else the machine does hits all of them."""

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PACKAGES = (
    "mbdp",
    "jax",
    "jaxlib",
    "optax",
    "equinox",
    "numpy",
    "torch",
    "mbrl",
    "stable_baselines3",
    "sbx-rl",
    "mujoco",
)


REST = 0.3  # seconds before each measurement: threads of the one before may wait for more work by spinning


class Way(NamedTuple):
    """Something to time: one call does `count` units of work."""

    run: Callable[[], object]
    count: int = 1


def in_turn(ways: dict[str, Way], rounds: int, *, warm_up: bool = True) -> dict[str, list[float]]:
    """Seconds per unit of each way in each round."""
    if warm_up:
        for way in ways.values():
            way.run()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            time.sleep(REST)
            began = time.perf_counter()
            way.run()
            seconds[name].append((time.perf_counter() - began) / way.count)
    return seconds


def quartiles(values: Any) -> list[float]:
    """First quartile, median, third quartile."""
    return [float(x) for x in np.percentile(values, [25, 50, 75])]


def machine() -> dict[str, Any]:
    """What was measured on, with what, and how busy it was."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "load_before": round(os.getloadavg()[0], 2),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
