"""A sweep: a TOML file with grids and single runs, read into a list of runs in the order of their priority."""

import difflib
import itertools
import math
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from mbdp.envs.tasks import spec_of
from mbdp.experiments.sweep.settings import DEFAULTS, KEYS, SCHEDULE, keywords, typed
from mbdp.experiments.training_world import TrainingWorld, check_termination, make_training_world, world_of_words
from mbdp.methods import preset
from mbdp.types import BadInput

OF_THE_SWEEP = ("out", "name", "priority", "grid", "run")
NAME = "{algo}/{env}_{seed}"  # as `mbdp train` names them
OF_THE_WORLD = ("perturb", "randomise")
OPTIONAL = (*OF_THE_WORLD, "termination")  # requests that do not ask for them are as they were before there were any
MAX_RUNS = 100_000


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """One run of a sweep: what `mbdp train` would be told, and a folder of its own."""

    name: str
    folder: Path
    steps: int
    request: dict[str, Any]  # env, algo, seed, preset, prefer, schedule, settings: as JSON can hold it


def read_spec(file: Path, out: Path | None = None, *, allow_code: bool = False) -> list[PlannedRun]:
    """The runs of a spec, most urgent first; `out` takes the place of the spec's own folder."""
    content = _parse(file)
    with _naming(str(file)):
        rows = _rows(content)
        worlds = {(row["env"], repr(_world(row))): _world(row) for row in rows}
        for (env, _), world in worlds.items():
            _check_env(env, world, allow_code)
        folder = out or Path(typed("out", content.get("out", f"runs/{file.stem}"), str))
        runs = [_run(row, folder.absolute()) for row in _by_priority(rows, content.get("priority", []))]
        _check_folders(runs)
    return runs


def _parse(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{file}: the spec cannot be read ({error.strerror})") from None
    except ValueError as error:  # tomllib's own, or a byte that is no UTF-8
        raise BadInput(f"{file}: not valid TOML: {error}") from None


def _rows(content: dict[str, Any]) -> list[dict[str, Any]]:
    """One table per run: the settings at the top of the file, changed by a point of a grid or by a [[run]]."""
    common = DEFAULTS | {key: value for key, value in content.items() if key not in OF_THE_SWEEP}
    grids, singles = (_tables(name, content.get(name, [])) for name in ("grid", "run"))
    for key in itertools.chain(common, *grids, *singles):
        _check_key(key)
    common["name"] = content.get("name", NAME)
    # A grid may have a name of its own: a pattern like the sweep's, and no list.
    grids = [{key: [values] if key == "name" else _worlds(key, values) for key, values in g.items()} for g in grids]
    for grid in grids:
        for key, values in grid.items():
            if not isinstance(values, list) or not values:
                raise BadInput(f"grid: {key} must be a list of at least one value, as [0, 1]; it is {values!r}")
    if sum(math.prod(len(values) for values in grid.values()) for grid in grids) + len(singles) > MAX_RUNS:
        raise BadInput(f"more than {MAX_RUNS:,} runs: make the grid smaller")
    points = [dict(zip(grid, point, strict=True)) for grid in grids for point in itertools.product(*grid.values())]
    rows = [common | row for row in (*points, *singles)]
    if not rows:
        raise BadInput("no runs: give a [grid], for example with seed = [0, 1, 2], or tables [[run]]")
    return [{key: typed(key, value, KEYS.get(key, str)) for key, value in row.items()} for row in rows]


def _worlds(key: str, values: Any) -> Any:
    """In a grid, perturb.mass = [0.8, 1.2] and perturb.friction = [0.8, 1.2] are four worlds."""
    if key != "perturb" or not isinstance(values, dict) or not all(isinstance(each, list) for each in values.values()):
        return values
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


def _tables(name: str, value: Any) -> list[dict[str, Any]]:
    tables = [value] if isinstance(value, dict) and name == "grid" else value
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        right = "a table [grid], or several [[grid]]" if name == "grid" else "tables [[run]]"
        raise BadInput(f"{name} must be {right}; it is {value!r:.60}")
    if name == "grid" and not all(tables):
        raise BadInput("grid is empty: give it lists, for example seed = [0, 1, 2]")
    return tables


def _check_key(key: str) -> None:
    if key not in KEYS and key != "name":
        near = difflib.get_close_matches(key, (*KEYS, *OF_THE_SWEEP), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "it is neither of a sweep nor a setting of any method"
        raise BadInput(f"unknown key {key!r}: {hint}")


def _check_env(env_id: str, world: TrainingWorld, allow_code: bool) -> None:
    if not env_id:
        raise BadInput("env is missing: give it at the top, in the grid or in every [[run]], as env = 'Hopper-v5'")
    if ":" in env_id and not allow_code:
        raise BadInput(f"env {env_id!r} would import a module: pass --allow-code if you trust the spec")
    env = make_training_world(env_id, world)
    spec_of(env)
    env.close()


def _world(row: dict[str, Any]) -> TrainingWorld:
    return world_of_words({key: row[key] for key in OF_THE_WORLD})


def _by_priority(rows: list[dict[str, Any]], priority: Any) -> list[dict[str, Any]]:
    """Sort by the given keys, then by seed: a sweep that is cut short has whole seeds. Values rank as they appear."""
    if not isinstance(priority, list) or not all(key in KEYS for key in map(str, priority)):
        raise BadInput(f"priority must be a list of keys, as ['env', 'seed']; it is {priority!r}")
    keys = [*priority, "seed"]
    values = {key: list(dict.fromkeys(repr(row.get(key)) for row in rows)) for key in keys}
    ranks = {key: {value: rank for rank, value in enumerate(seen)} for key, seen in values.items()}
    return sorted(rows, key=lambda row: [ranks[key][repr(row.get(key))] for key in keys])


def _run(row: dict[str, Any], out: Path) -> PlannedRun:
    about = {key: row[key] for key in DEFAULTS if key not in SCHEDULE and (key not in OPTIONAL or row[key])}
    settings = {key: value for key, value in row.items() if key not in DEFAULTS and key != "name"}
    with _naming(", ".join(f"{key} {row[key]}" for key in ("algo", "env", "seed"))):
        config = _config(about, settings)
        check_termination(config, row["termination"])
    words = asdict(config) | row | {"env": row["env"].replace("/", "-").replace(":", "-")}
    words |= {key: _in_a_name(row[key]) for key in OF_THE_WORLD} | {"termination": row["termination"] or "default"}
    name = _named(row["name"], words)
    schedule = {key: row[key] for key in SCHEDULE}
    return PlannedRun(name, out / name, config.steps, about | {"schedule": schedule, "settings": settings})


def _in_a_name(axes: dict[str, Any]) -> str:
    """Axes as a folder's name can have them: mass=0.8, a range as mass=0.8-1.2."""
    parts = (f"{axis}={'-'.join(f'{x:g}' for x in np.atleast_1d(value))}" for axis, value in axes.items())
    return ",".join(parts).replace(":", "-") or "nominal"


def _config(about: dict[str, Any], settings: dict[str, Any]) -> Any:
    """The settings as the run will have them; checked here, so that a wrong one is known before anything runs."""
    config = preset(about["algo"], about["env"], about["preset"])
    names = [*asdict(config)]
    if unknown := [name for name in settings if name not in names]:
        raise BadInput(f"{about['algo']} has no setting {unknown[0]!r}; it has {', '.join(names)}")
    return replace(config, **keywords(settings))


def _named(pattern: str, words: dict[str, Any]) -> str:
    try:
        for _, field, form, _ in Formatter().parse(pattern):
            if field is not None and (field not in words or "{" in (form or "")):
                raise BadInput(
                    f"name {pattern!r}: there is no {{{field}}}; it can have {{env}}, {{algo}}, {{seed}} ..."
                )
        name = pattern.format_map(words)
    except ValueError as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"name {pattern!r} is not a pattern as {NAME!r} is: {error}") from None
    if Path(name).is_absolute() or ".." in Path(name).parts or not Path(name).parts or not name.isprintable():
        raise BadInput(f"name {pattern!r} gives {name!r}, which is not a folder inside of `out`")
    return str(Path(name))


def _check_folders(runs: Iterable[PlannedRun]) -> None:
    """Refuse two runs that would write to one folder, or one inside of the other's."""
    seen: dict[Path, PlannedRun] = {}
    for run in runs:
        if other := seen.get(run.folder):
            missing = _differences(run.request, other.request)
            hint = f"add {{{missing[0]}}} to name" if missing else "the same run is there twice"
            raise BadInput(f"two runs share the folder {run.folder}: {hint}")
        seen[run.folder] = run
    for run in runs:
        if inside := next((parent for parent in run.folder.parents if parent in seen), None):
            raise BadInput(f"the folder of a run would be inside of another's: {run.folder} in {inside}; change name")


def _differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    a, b = (about | about["settings"] | about["schedule"] for about in (one, other))
    return [key for key in {**a, **b} if key in KEYS and a.get(key) != b.get(key)]


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Say of bad input where it stands."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{what}: {error}") from None
