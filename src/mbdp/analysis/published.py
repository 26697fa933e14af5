"""Returns that others have published, from a CSV file: to be set beside our own, never mixed with them."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mbdp.types import BadInput

COLUMNS = ("method", "updates_per_step", "task", "version", "env_steps", "mean_return", "source")


class Published(NamedTuple):
    """One published curve, or a few points of it."""

    method: str
    task: str
    version: str  # of the environment: returns of v2 to v5 are not quite the same thing
    steps: np.ndarray
    returns: np.ndarray


def read_published(file: Path, methods: Sequence[str] = ()) -> list[Published]:
    """The curves in the file, all of them or those of the given methods."""
    try:
        with open(file, newline="") as stream:
            rows = list(csv.DictReader(stream))
        numbers = [(row["method"], row["task"], row["version"], *_point(row)) for row in rows]
    except (OSError, KeyError, ValueError, TypeError) as error:
        why = getattr(error, "strerror", None) or f"its columns are {', '.join(COLUMNS)}; {error}"
        raise BadInput(f"{file}: no table of published returns ({why})") from None
    known = list(dict.fromkeys(name for name, *_ in numbers))
    if unknown := [name for name in methods if name not in known]:
        raise BadInput(f"{file} has no method {unknown[0]!r}; it has {', '.join(known)}")
    curves = dict.fromkeys(
        (name, task, version) for name, task, version, *_ in numbers if not methods or name in methods
    )
    found = []
    for curve in curves:
        steps, returns = np.array(sorted(row[3:] for row in numbers if row[:3] == curve)).T
        found.append(Published(*curve, steps, returns))
    return found


def _point(row: dict[str, str]) -> tuple[float, float]:
    return float(row["env_steps"]), float(row["mean_return"])
