"""Transitions that were gathered before, as rows for `d_env`: arrays, `.npz` files, our own runs, Minari datasets."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbdp.envs.interact import MOST_REWARD, World
from mbdp.envs.spaces import without_adaptation
from mbdp.replay import pack
from mbdp.storage.checkpoint import load_learner, read_about
from mbdp.storage.minari_data import arrays_of_minari, is_minari
from mbdp.types import BadInput, Transition

Source = str | os.PathLike[str] | Mapping[str, Any]
LEAST = 100  # transitions that a first model can be fitted to
BEYOND = 1e-3  # of the range of an action: rounding, and no more
NAMES = "observations, next_observations, actions, rewards and dones"


class Data(NamedTuple):
    """Rows for `d_env`, what they were read from, and sentences that its user should know."""

    rows: np.ndarray
    name: str
    remarks: list[str]


def read_data(source: Source, world: World) -> Data:
    """Data in the form that this world's replay buffer has; what does not fit is refused with one line."""
    if isinstance(source, Mapping):
        return _of_arrays(source, "data", world)
    if is_minari(source):
        name = str(source)
        return _of_arrays(arrays_of_minari(name, without_adaptation(world.env).observation_space), name, world)
    path = Path(source)
    if not path.exists():
        raise BadInput(f"{path}: there is no such file or directory")
    if path.suffix == ".npz":
        return _of_arrays(_read_npz(path), str(path), world)
    if path.is_dir():
        checkpoints = sorted((path / "checkpoints").glob("step_*.mbdp"))
        if not checkpoints:
            known = "a run directory with checkpoints nor a Minari dataset (data/metadata.json)"
            raise BadInput(f"{path}: it is neither {known}")
        path = checkpoints[-1]
    return _of_checkpoint(path, world)


def _of_checkpoint(file: Path, world: World) -> Data:
    """All real steps of one of our runs."""
    about = read_about(file)
    d_env = load_learner(file, about).d_env
    if d_env.spec != world.spec:
        raise BadInput(f"{file}: its steps have {d_env.spec}, but {world.name} has {world.spec}")
    if len(d_env) < LEAST:
        raise BadInput(f"{file}: it has {len(d_env)} transitions; at least {LEAST} are needed")
    foreign = about["env"] != world.name and not about["env"].endswith(f":{world.name}")
    said = f"{file}: its steps are of {about['env'] or 'an environment without an id'}, not of {world.name}"
    return Data(d_env.newest(len(d_env)), str(file), [said] if foreign else [])


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, TypeError, EOFError, MemoryError, NotImplementedError, zipfile.BadZipFile) as error:
        said = " ".join(str(error).split())
        raise BadInput(f"{path}: not an .npz file of plain arrays ({said:.100})") from None


def _of_arrays(arrays: Mapping[str, Any], name: str, world: World) -> Data:
    """Rows of arrays named as in Stable-Baselines3's replay buffers."""
    if ("actions" in arrays) == ("env_actions" in arrays):
        raise BadInput(f"{name}: it needs actions in [-1, 1], as SB3 stores them, or env_actions in the world's units")
    actions = "actions" if "actions" in arrays else "env_actions"
    observations = _numbers(arrays, "observations", name)
    count = _count(observations, world)
    size, width = world.spec
    columns = {
        one: _column(arrays, one, name, count, numbers)
        for one, numbers in {"observations": size, "next_observations": size, actions: width, "rewards": 1}.items()
    }
    ended = _flags(arrays, "dones", name, count)
    if "timeouts" in arrays:
        ended = ended & ~_flags(arrays, "timeouts", name, count)
    if count < LEAST:
        raise BadInput(f"{name}: it has {count} transitions; at least {LEAST} are needed")
    rewards = columns["rewards"][:, 0]
    if (most := float(np.abs(rewards).max())) > MOST_REWARD:
        raise BadInput(f"{name}: rewards go up to {most:.3g}, beyond {MOST_REWARD:.0e}")
    action = _scaled(columns[actions], actions, name, world)
    rows = pack(Transition(columns["observations"], action, rewards, columns["next_observations"], ended))
    remarks = _outside(columns, name, world)
    if actions == "actions" and not (np.allclose(world.low, -1) and np.allclose(world.high, 1)):
        units = f"[{world.low.min():g}, {world.high.max():g}]"
        remarks += [f"{name}: actions are taken to be scaled to [-1, 1], as SB3 stores them, not in {units}"]
    return Data(rows.astype(np.float32), name, remarks)


def _count(observations: np.ndarray, world: World) -> int:
    """Transitions, where SB3 has an axis for time and one for environments, and an observation may have several."""
    return int(observations.size // world.spec.observation_size)


def _numbers(arrays: Mapping[str, Any], one: str, name: str) -> np.ndarray:
    if one not in arrays:
        raise BadInput(f"{name}: {one} is missing; it must have {NAMES}, and may have timeouts")
    try:
        array = np.asarray(arrays[one])
    except ValueError as error:
        raise BadInput(f"{name}: {one} is no array: its rows have different lengths") from error
    if array.dtype.kind not in "fiub":
        raise BadInput(f"{name}: {one} must be numbers; it is of {array.dtype}")
    return array


def _column(arrays: Mapping[str, Any], one: str, name: str, count: int, width: int) -> np.ndarray:
    array = _numbers(arrays, one, name)
    fits = array.ndim and array.size == count * width and len(array) == len(arrays["observations"])
    if not fits or array[0].size % width:
        example = f"({len(np.atleast_1d(arrays['observations']))}, {width})" if width > 1 else f"({count},)"
        raise BadInput(f"{name}: {one} has the shape {array.shape}; the environment needs {example}")
    with np.errstate(over="ignore"):
        rows = array.reshape(count, width).astype(np.float32)
    if len(bad := np.flatnonzero(~np.isfinite(rows).all(axis=1))):
        raise BadInput(f"{name}: {one} has NaN or infinity in {len(bad)} rows, first in row {bad[0]}")
    return rows


def _outside(columns: Mapping[str, np.ndarray], name: str, world: World) -> list[str]:
    """A sentence if observations go beyond the environment's bounds: they may be in other units or another order."""
    low, high = world.space.low.astype(float), world.space.high.astype(float)
    with np.errstate(over="ignore"):  # bounds as wide as their kind of number
        width = high - low
    slack = BEYOND * np.where(np.isfinite(width), width, 0)
    for one in ("observations", "next_observations"):
        rows = columns[one]
        beyond = (rows < low - slack) | (rows > high + slack)
        if len(bad := np.flatnonzero(beyond.any(axis=1))):
            number = int(np.flatnonzero(beyond[bad[0]])[0])
            found = f"{rows[bad[0], number]:.4g}, beyond [{low[number]:g}, {high[number]:g}]"
            where = f"in {len(bad):,} of {len(rows):,} rows, first in row {bad[0]}: number {number} is {found}"
            return [f"{name}: {one} go beyond the bounds of {world.name} {where}; are units and order the same?"]
    return []


def _flags(arrays: Mapping[str, Any], one: str, name: str, count: int) -> np.ndarray:
    column = _column(arrays, one, name, count, 1)[:, 0]
    if not np.isin(column, (0, 1)).all():
        raise BadInput(f"{name}: {one} must be 0 or 1; it goes from {column.min():g} to {column.max():g}")
    return column > 0


def _scaled(action: np.ndarray, kind: str, name: str, world: World) -> np.ndarray:
    """Actions in [-1, 1]."""
    low, high = (-1.0, 1.0) if kind == "actions" else (world.low, world.high)
    slack = BEYOND * (np.asarray(high) - low)
    if ((action < low - slack) | (action > high + slack)).any():
        meant = (
            "[-1, 1], as SB3 stores them (or call them env_actions)" if kind == "actions" else world.env.action_space
        )
        raise BadInput(f"{name}: {kind} go from {action.min():.4g} to {action.max():.4g}, beyond {meant}")
    return np.clip(action if kind == "actions" else world.from_env(action), -1, 1).astype(np.float32)
