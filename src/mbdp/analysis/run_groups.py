"""Which runs are training seeds of one method, and what that method is called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbdp.analysis.runs import Run

MOST_FIELDS = 2  # settings that a name can hold and still be read
FREE = ("steps",)  # a longer run of the same method is the same method


@dataclass(frozen=True, eq=False)
class RunGroup:
    """The training seeds of one method in one environment."""

    name: str
    env: str
    runs: Sequence[Run]

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.runs[0].settings


def group_runs(runs: Sequence[Run]) -> list[RunGroup]:
    """Runs by environment and method, in the order in which they were given.

    Runs of one label are one method. Without labels those of one folder are, as far as their settings agree; runs of
    different folders if all settings are equal and no seed is there twice.
    """
    methods: list[RunGroup] = []
    for env in dict.fromkeys(run.env for run in runs):
        here = [run for run in runs if run.env == env]
        labels = dict.fromkeys(run.label for run in here if run.label)
        methods += [RunGroup(label, env, _sorted(run for run in here if run.label == label)) for label in labels]
        groups = _merge(_by_folder([run for run in here if not run.label]))
        names = _names(groups, taken=set(labels))
        methods += [RunGroup(name, env, _sorted(group)) for name, group in zip(names, groups, strict=True)]
    return methods


def fixed_settings(run: Run) -> dict[str, Any]:
    """The settings that make a method what it is."""
    return {name: value for name, value in run.settings.items() if name not in FREE}


def differing(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Settings that not all runs share, each with its value in every run; None where a run does not have it."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    columns = {name: [run.settings.get(name) for run in runs] for name in names}
    return {name: column for name, column in columns.items() if any(value != column[0] for value in column)}


def _by_folder(runs: Sequence[Run]) -> list[list[Run]]:
    groups: list[list[Run]] = []
    for run in runs:
        for group in groups:
            first = group[0]
            if (first.folder.parent, first.algo) == (run.folder.parent, run.algo) and _agree(first, run):
                group.append(run)
                break
        else:
            groups.append([run])
    return groups


def _agree(one: Run, other: Run) -> bool:
    """True if no setting that both have differs: an older version of the library had fewer of them."""
    mine, theirs = fixed_settings(one), fixed_settings(other)
    return all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())


def _merge(groups: Sequence[list[Run]]) -> list[list[Run]]:
    merged: list[list[Run]] = []
    for group in groups:
        for other in merged:
            same = other[0].algo == group[0].algo and fixed_settings(other[0]) == fixed_settings(group[0])
            if same and group[0].settings and not {run.seed for run in other} & {run.seed for run in group}:
                other.extend(group)
                break
        else:
            merged.append(list(group))
    return merged


def _names(groups: Sequence[list[Run]], taken: set[str]) -> list[str]:
    """The algorithm's name; if several groups have it, with the few settings that differ, or else the folder's."""
    names: list[str] = []
    for group in groups:
        algo = group[0].algo
        rivals = [other for other in groups if other[0].algo == algo]
        name = algo if len(rivals) == 1 else _by_settings(group, rivals) or _by_path(group, rivals)
        names.append(_unused(name, taken | set(names)))
    return names


def _by_settings(group: list[Run], rivals: Sequence[list[Run]]) -> str:
    firsts = [rival[0] for rival in rivals]
    fields = [name for name in differing(firsts) if name not in FREE]
    values = [tuple(str(run.settings.get(name)) for name in fields) for run in firsts]
    if not 0 < len(fields) <= MOST_FIELDS or len(set(values)) < len(values):
        return ""
    return f"{group[0].algo} " + ", ".join(f"{name} {group[0].settings.get(name)}" for name in fields)


def _by_path(group: list[Run], rivals: Sequence[list[Run]]) -> str:
    parents = [rival[0].folder.parent.parts for rival in rivals]
    own = group[0].folder.parent.parts
    for count in range(1, len(own) + 1):
        if sum(parts[-count:] == own[-count:] for parts in parents) == 1:
            return str(Path(*own[-count:]))
    return own[-1] if own else group[0].algo


def _unused(name: str, taken: set[str]) -> str:
    number = 2
    while name in taken:
        name = f"{name.rpartition(' #')[0] or name} #{number}"
        number += 1
    return name


def _sorted(runs: Any) -> list[Run]:
    return sorted(runs, key=lambda run: run.seed)
