"""Run directories as values: ours, and the `evaluations.npz` of Stable-Baselines3 and RL Zoo. Nothing is executed."""

import json
import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mbdp.types import BadInput

ENV_SEED = re.compile(r"(?P<env>.+-v\d+)_(?P<seed>\d+)")  # how this library and RL Zoo name the folder of a run

OF_A_RUN = {"config.json", "metrics.jsonl", "evaluations.npz", "request.json"}  # the last is written by a sweep


@dataclass(frozen=True, eq=False)
class Run:
    """One training run: who made it, its evaluations in order of env steps, and its other metrics line by line."""

    folder: Path
    algo: str
    env: str
    seed: int
    steps: np.ndarray
    returns: np.ndarray  # mean over the episodes of an evaluation
    seconds: np.ndarray  # NaN where the files do not say
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    lines: Sequence[Mapping[str, Any]] = ()
    notes: tuple[str, ...] = ()
    label: str = ""  # the method's name, if the user gave one

    def series(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Env steps and values of a metric, where it was logged as a finite number."""
        found = [(line["step"], line[name]) for line in self.lines if _is_number(line.get(name))]
        steps, values = np.array(found, float).reshape(-1, 2).T
        return steps, values


@dataclass(frozen=True)
class BrokenRun:
    """A run directory that cannot be used, and why."""

    folder: Path
    reason: str


def find_runs(arguments: Sequence[str | Path]) -> tuple[list[Run], list[BrokenRun]]:
    """Every run in the folders and below them, and those that are broken; an argument can be LABEL=FOLDER."""
    runs: list[Run] = []
    broken: list[BrokenRun] = []
    seen: set[Path] = set()
    for argument in arguments:
        label, folder = split_label(argument)
        if not folder.is_dir():
            raise BadInput(f"{folder}: there is no such folder; give run directories, or folders that hold some")
        try:
            candidates = list(_candidates(folder))
        except OSError as error:
            raise BadInput(f"{error.filename}: cannot be read ({error.strerror})") from None
        for candidate in candidates:
            if candidate.resolve() in seen:
                continue
            seen.add(candidate.resolve())
            try:
                runs.append(read_run(candidate, label))
            except BadInput as error:
                broken.append(BrokenRun(candidate, str(error).removeprefix(f"{candidate}/").removeprefix(": ")))
    return runs, broken


def split_label(argument: str | Path) -> tuple[str, Path]:
    """LABEL=FOLDER taken apart; a folder whose own name has an equals sign is a folder."""
    label, equals, folder = str(argument).partition("=")
    return (label, Path(folder)) if equals and not Path(argument).exists() else ("", Path(argument))


def read_run(folder: Path, label: str = "") -> Run:
    """One run from its files; BadInput says what is wrong with them."""
    if (error := folder / "error.txt").exists():
        raise BadInput(f"it failed: {' '.join(error.read_text(errors='replace').split())[:300]}")
    if (folder / "metrics.jsonl").exists() or (folder / "config.json").exists():
        return _read_ours(folder, label)
    return _read_evaluations(folder, label)


def _candidates(folder: Path) -> Iterator[Path]:
    """Folders that are, or should have been, a run; what lies inside a run is its own business."""
    names = {entry.name for entry in folder.iterdir()}
    inside = [name for name in sorted(names) if (folder / name).is_dir() and not (folder / name).is_symlink()]
    if names & OF_A_RUN or (ENV_SEED.fullmatch(folder.name) and not inside):
        yield folder
        return
    for name in inside:
        if not name.startswith("."):
            yield from _candidates(folder / name)


def _read_ours(folder: Path, label: str) -> Run:
    config = read_json(folder / "config.json")
    try:
        algo, env, seed = str(config["algo"]), str(config["env"]), int(config["seed"])
        world = ", ".join(f"{axis} {value:g}" for axis, value in config.get("perturb", {}).items())
        drawn = ", ".join(f"{axis} {low:g} to {high:g}" for axis, (low, high) in config.get("randomise", {}).items())
        # Another world is another method.
        settings = dict(config["settings"]) | {"perturb": world or "nominal", "randomise": drawn or "nothing"}
        settings["envs"] = int(config.get("envs", 1))
        settings["termination"] = str(config.get("termination", "default"))  # "learned" though a rule is known
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadInput("config.json: it needs algo, env, seed and settings, as `mbdp train` writes them") from None
    lines, notes = _read_lines(folder / "metrics.jsonl")
    found = [line for line in lines if "eval/mean_reward" in line]
    if not found:
        raise BadInput("metrics.jsonl: no evaluation in it yet")
    if wrong := [line for line in found if not _is_number(line["eval/mean_reward"])]:
        raise BadInput(f"metrics.jsonl: the return at step {wrong[0]['step']:,} is not a finite number")
    steps, returns = np.array([(line["step"], line["eval/mean_reward"]) for line in found], float).T
    if (np.diff(steps) <= 0).any():
        raise BadInput("metrics.jsonl: its evaluations are not in order of env steps")
    planned = settings.get("steps")
    if _is_number(planned) and steps[-1] < planned:
        notes.append(f"ends at step {steps[-1]:,.0f} of {planned:,}")
    seconds = np.array([line.get("time/elapsed") for line in found], float)
    versions = read_json(folder / "versions.json") if (folder / "versions.json").exists() else {}
    return Run(folder, algo, env, seed, steps, returns, seconds, settings, versions, lines, tuple(notes), label)


def _read_lines(file: Path) -> tuple[list[dict[str, Any]], list[str]]:
    try:
        texts = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file.name}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    lines: list[dict[str, Any]] = []
    for number, text in enumerate(texts, 1):
        try:
            line = json.loads(text)
            line["step"] = int(line["step"])
        except (ValueError, TypeError, KeyError):
            # A process that dies while it writes leaves the last line unfinished; anywhere else it is damage.
            if number == len(texts) and lines:
                return lines, ["the last line of metrics.jsonl is unfinished"]
            raise BadInput(f"{file.name}: line {number} is not a JSON object with a step") from None
        lines.append(line)
    return lines, []


def _read_evaluations(folder: Path, label: str) -> Run:
    """A run of Stable-Baselines3's EvalCallback, in a folder that RL Zoo would name ALGO/ENV_NUMBER."""
    file = folder / "evaluations.npz"
    if not file.exists():
        raise BadInput("there is no metrics.jsonl or evaluations.npz in it")
    name = ENV_SEED.fullmatch(folder.name)
    if not name:
        raise BadInput("evaluations.npz: it does not say its environment; name its folder ENV_SEED, as RL Zoo does")
    try:
        with np.load(file, allow_pickle=False) as stored:
            steps, results = np.asarray(stored["timesteps"], float), np.asarray(stored["results"], float)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise BadInput(f"evaluations.npz: cannot be read ({error})") from None
    if results.ndim != 2 or len(results) != len(steps) or not results.size:
        raise BadInput("evaluations.npz: it needs timesteps (n,) and results (n, episodes) with n at least 1")
    if not np.isfinite(results).all() or (np.diff(steps) <= 0).any():
        raise BadInput("evaluations.npz: a return is not a finite number, or its steps are not in order")
    seconds = np.full(len(steps), math.nan)
    return Run(
        folder, folder.parent.name, name["env"], int(name["seed"]), steps, results.mean(axis=1), seconds, label=label
    )


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file; BadInput says which file is not one."""
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{file.name}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not isinstance(content, dict):
        raise BadInput(f"{file.name}: it is not a JSON object")
    return content


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
