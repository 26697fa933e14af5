"""What `mbdp robustness` does: open the policies, run them in the grid of worlds, write and print the report."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mbdp.analysis.robustness_report import Result, Setting, text_table, write_report
from mbdp.experiments.film import Scene, drawable
from mbdp.experiments.grid_arguments import axes_of
from mbdp.experiments.versions import versions
from mbdp.experiments.video import check_video, write_video
from mbdp.policies.foreign import open_policy
from mbdp.robustness import PROTOCOL, Grid, evaluate_grids
from mbdp.types import BadInput


class Entry(NamedTuple):
    """One policy of the command line."""

    method: str
    path: str
    policy: Any


def evaluate_robustness(args: argparse.Namespace) -> None:
    """Run the policies that the command line names, and leave the report in a folder."""
    if args.video:
        check_video(args.video)
    entries = _open(args.policies, args.allow_code)
    env_id = args.env or _trained_in(entries)
    axes, neutral = axes_of(args, env_id)
    folder = args.out or Path("runs/robustness") / env_id.replace("/", "_")
    _check_writable(folder)
    size = " x ".join(f"{name} {len(values)}" for name, values in axes.items())
    print(f"{env_id}, {PROTOCOL}; worlds: {size}; episodes in each: {args.episodes}; policies: {len(entries)}")
    started = time.perf_counter()
    grids, nominal = _evaluate(entries, env_id, axes, neutral, args)
    seconds = time.perf_counter() - started
    results = [_result(*row) for row in zip(entries, grids, nominal, strict=True)]
    setting = Setting(env_id, PROTOCOL, axes, neutral, args.episodes, args.seed)
    table = write_report(folder, setting, results)
    (folder / "versions.json").write_text(json.dumps(versions(), indent=1) + "\n")
    seeds = {method: sum(result.method == method for result in results) for method in table}
    Console(highlight=False).print(text_table(table, setting, seeds))
    _say_how_it_went(grids, seconds, folder)
    if args.video:
        _film_worst(entries[0], grids[0], env_id, args.video)


def _open(arguments: Sequence[str], allow_code: bool) -> list[Entry]:
    entries = []
    for argument in arguments:
        label, equals, path = argument.partition("=")
        if not equals or Path(argument).exists():
            label, path = "", argument
        policy = open_policy(path, allow_code=allow_code)
        entries.append(Entry(label or getattr(policy, "algo", "") or Path(path).stem, path, policy))
    paths = [os.path.realpath(entry.path) for entry in entries]
    if twice := [entry.path for i, entry in enumerate(entries) if paths[i] in paths[:i]]:
        raise BadInput(f"{twice[0]} is given twice, but each training seed counts once")
    return entries


def _trained_in(entries: Sequence[Entry]) -> str:
    known = {entry.path: getattr(entry.policy, "env", "") for entry in entries}
    ids = sorted({env_id for env_id in known.values() if env_id})
    if len(ids) != 1:
        found = f"they were trained in {' and '.join(ids)}" if ids else f"{entries[0].path} does not say"
        raise BadInput(f"give the environment with --env: {found}")
    if ":" in ids[0]:
        raise BadInput(f"the environment {ids[0]!r} that a policy names would import code; if you trust it, give --env")
    return str(ids[0])


def _evaluate(
    entries: Sequence[Entry], env_id: str, axes: Mapping[str, Sequence[float]], neutral: Mapping[str, float], args: Any
) -> tuple[list[Grid], list[np.ndarray]]:
    """The grid of every policy, and its returns in the nominal world, which the grid need not contain."""
    policies = [entry.policy for entry in entries]
    with _progress("worlds") as progress:
        grids = evaluate_grids(
            policies, env_id, axes, args.episodes, args.seed, workers=args.workers, progress=progress
        )
    where = [np.flatnonzero(np.isclose(values, neutral[name])) for name, values in axes.items()]
    if all(len(found) for found in where):
        index = tuple(int(found[0]) for found in where)
        return grids, [grid.returns[index] for grid in grids]
    with _progress("nominal") as progress:
        only = {name: [value] for name, value in neutral.items()}
        more = evaluate_grids(policies, env_id, only, args.episodes, args.seed, workers=args.workers, progress=progress)
    return grids, [grid.returns.reshape(args.episodes) for grid in more]


def _result(entry: Entry, grid: Grid, nominal: np.ndarray) -> Result:
    seed = getattr(entry.policy, "seed", None)
    return Result(entry.method, entry.path, seed, grid.returns, grid.lengths, grid.diverged, nominal)


@contextmanager
def _progress(words: str) -> Iterator[Any]:
    """A function of (done, total) that shows a bar in a terminal, and a line for every tenth elsewhere."""
    columns = (TextColumn(words), BarColumn(), MofNCompleteColumn(), TextColumn("episodes"), TimeRemainingColumn())
    bar = Progress(*columns, disable=not sys.stdout.isatty())
    task, tenths = bar.add_task(words, total=None), [0]

    def show(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if bar.disable and 10 * done // total > tenths[0]:
            tenths[0] = 10 * done // total
            print(f"{words}: {done} of {total} episodes", flush=True)

    with bar:
        yield show


def _say_how_it_went(grids: Sequence[Grid], seconds: float, folder: Path) -> None:
    steps, episodes = (sum(int(f(grid.lengths)) for grid in grids) for f in (np.sum, np.size))
    print(f"episodes: {episodes:,}; steps: {steps:,} in {seconds:.1f} s, {steps / seconds:,.0f} steps/s")
    if unstable := sum(int(grid.diverged.sum()) for grid in grids):
        print(f"episodes that became unstable in the simulator, and count until there: {unstable} (column diverged)")
    for name in ("heatmap.png", "table.csv", "table.json", "episodes.csv", "versions.json"):
        print(f"{name:14} {folder / name}")


def _film_worst(entry: Entry, grid: Grid, env_id: str, file: Path) -> None:
    """Film the worst episode of the policy's worst world, beside the episode of that seed in the nominal world."""
    means = grid.returns.mean(axis=-1)
    worst = np.unravel_index(int(means.argmin()), means.shape)
    cell = {name: values[i] for (name, values), i in zip(grid.axes.items(), worst, strict=True)}
    seed = grid.seed + int(grid.returns[worst].argmin())
    title = ", ".join(f"{name} {value:g}" for name, value in cell.items())
    worlds: list[tuple[dict[str, float], str]] = [({}, "nominal"), (cell, title)]
    write_video([Scene(entry.policy, drawable(env_id, where), words, seed) for where, words in worlds], file)
    print(f"video          {file}: nominal beside {title}, the worst world of {entry.path}; reset seed {seed}")


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: cannot write there ({error.strerror})") from error
    if not os.access(folder, os.W_OK):
        raise BadInput(f"{folder}: cannot write there")
