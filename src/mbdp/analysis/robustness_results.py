"""The folders that `mbdp robustness --out` leaves behind, read back."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mbdp.analysis.robustness_report import column_of
from mbdp.analysis.run_groups import RunGroup
from mbdp.analysis.runs import BrokenRun, Run, read_json, split_label
from mbdp.types import BadInput

INSIDE = "robustness"  # the folder of a run directory that holds what its own policy reached


@dataclass(frozen=True, eq=False)
class Robustness:
    """Returns over a grid of worlds, per method (training seeds, axes..., episodes)."""

    folder: Path
    env: str
    protocol: str
    axes: Mapping[str, Sequence[float]]
    neutral: Mapping[str, float]
    returns: Mapping[str, np.ndarray]
    seeds: Mapping[str, Sequence[int | None]]
    table: Mapping[str, Mapping[str, Any]]

    @property
    def episodes(self) -> int:
        """Episodes in each world."""
        return int(next(iter(self.returns.values())).shape[-1])


def find_robustness(arguments: Sequence[str | Path]) -> tuple[list[Robustness], list[BrokenRun]]:
    """Every result of `mbdp robustness` in the folders and below them, and those that are broken."""
    found: list[Robustness] = []
    broken: list[BrokenRun] = []
    for argument in arguments:
        for folder in _candidates(split_label(argument)[1]):
            try:
                found.append(read_robustness(folder))
            except BadInput as error:
                broken.append(BrokenRun(folder, str(error)))
    return found, broken


def robustness_of(methods: Sequence[RunGroup]) -> list[Robustness]:
    """Results that lie inside of the methods' run directories, RUN/robustness, put together to one per environment."""
    found: list[Robustness] = []
    for env in dict.fromkeys(method.env for method in methods):
        parts = {
            method.name: [
                (run.seed, read_robustness(run.folder / INSIDE)) for run in method.runs if has_robustness(run)
            ]
            for method in methods
            if method.env == env
        }
        parts = {name: own for name, own in parts.items() if own}
        results = [result for own in parts.values() for _, result in own]
        if other := [one for one in results if one.axes != results[0].axes or one.episodes != results[0].episodes]:
            raise BadInput(f"{other[0].folder}: its grid is not that of {results[0].folder}")
        if results:
            returns = {
                name: np.concatenate([next(iter(result.returns.values())) for _, result in own])
                for name, own in parts.items()
            }
            seeds = {name: [seed for seed, _ in own] for name, own in parts.items()}
            found.append(replace(results[0], returns=returns, seeds=seeds, table={}))
    return found


def has_robustness(run: Run) -> bool:
    """Whether `mbdp robustness` has left a result inside of the run directory."""
    return (run.folder / INSIDE / "table.json").exists()


def read_robustness(folder: Path) -> Robustness:
    """One result; BadInput says what is wrong with its files."""
    about = read_json(folder / "table.json")
    try:
        axes = {str(name): [float(value) for value in values] for name, values in about["axes"].items()}
        neutral = {name: float(about["neutral"][name]) for name in axes}
        episodes, env, protocol = int(about["episodes"]), str(about["env"]), str(about["protocol"])
        table = {str(method): dict(numbers) for method, numbers in about["methods"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"table.json: it is not one of `mbdp robustness` ({type(error).__name__}: {error})") from None
    if not axes or not all(axes.values()) or episodes < 1:
        raise BadInput("table.json: it needs at least one axis, a value on each, and an episode")
    returns, seeds = _read_episodes(folder / "episodes.csv", axes, episodes)
    return Robustness(folder, env, protocol, axes, neutral, returns, seeds, table)


def _candidates(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("table.json")):
        if (file.parent / "episodes.csv").exists():
            yield file.parent


def _read_episodes(
    file: Path, axes: Mapping[str, Sequence[float]], episodes: int
) -> tuple[dict[str, np.ndarray], dict[str, list[int | None]]]:
    shape = (*map(len, axes.values()), episodes)
    arrays: dict[tuple[str, str], np.ndarray] = {}
    seeds: dict[tuple[str, str], int | None] = {}
    try:
        with open(file, newline="") as stream:
            for row in csv.DictReader(stream):
                key = row["method"], row["policy"]
                cell = tuple(
                    int(np.argmin(np.abs(np.subtract(axes[name], float(row[column_of(name)]))))) for name in axes
                )
                arrays.setdefault(key, np.full(shape, np.nan))[(*cell, int(row["episode"]))] = float(row["return"])
                seeds[key] = int(row["training_seed"]) if row["training_seed"] else None
    except (OSError, KeyError, ValueError, IndexError, TypeError) as error:
        raise BadInput(f"episodes.csv: cannot be read ({type(error).__name__}: {error})") from None
    if not arrays or any(np.isnan(array).any() for array in arrays.values()):
        raise BadInput("episodes.csv: it does not have every episode of every world; run `mbdp robustness` again")
    methods = list(dict.fromkeys(method for method, _ in arrays))
    returns = {method: np.stack([array for key, array in arrays.items() if key[0] == method]) for method in methods}
    return returns, {method: [seed for key, seed in seeds.items() if key[0] == method] for method in methods}
