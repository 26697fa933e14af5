"""Tidy tables of runs, one observation per row, and CSV."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mbdp.analysis.run_groups import RunGroup
from mbdp.analysis.runs import BrokenRun

Row = dict[str, Any]


def evaluations(methods: Sequence[RunGroup]) -> list[Row]:
    """A row per evaluation of every run."""
    return [
        {**who, "step": int(step), "return": float(value), "seconds": _or_none(seconds)}
        for who, run in _runs(methods)
        for step, value, seconds in zip(run.steps, run.returns, run.seconds, strict=True)
    ]


def refits(methods: Sequence[RunGroup]) -> list[Row]:
    """A row per fit of the model: its bias, and the members that were kept, least biased first."""
    return [
        {
            **who,
            "step": line["step"],
            "bias": line["model/bias"],
            "kept": " ".join(map(str, line.get("model/kept") or [])),
            "kept_fraction": line.get("imagination/kept_fraction"),
        }
        for who, run in _runs(methods)
        for line in run.lines
        if "model/bias" in line
    ]


def runs(methods: Sequence[RunGroup], broken: Sequence[BrokenRun] = ()) -> list[Row]:
    """A row per run directory, broken ones included, with every setting and version."""
    good = [
        {**who, "folder": str(run.folder), "last_step": int(run.steps[-1]), "notes": "; ".join(run.notes)}
        | {f"setting.{name}": value for name, value in run.settings.items()}
        | {f"version.{name}": value for name, value in run.versions.items()}
        for who, run in _runs(methods)
    ]
    return good + [{"folder": str(run.folder), "notes": f"broken: {run.reason}"} for run in broken]


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV; a column that only some rows have is empty in the others."""
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_csv(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    file.write_text(to_csv(rows))


def _runs(methods: Sequence[RunGroup]) -> Iterator[tuple[Row, Any]]:
    for method in methods:
        for run in method.runs:
            yield {"method": method.name, "algo": run.algo, "env": run.env, "seed": run.seed}, run


def _or_none(number: float) -> float | None:
    return float(number) if number == number else None
