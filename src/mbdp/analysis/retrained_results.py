"""Runs that were trained in perturbed worlds, as one grid: the second reading of Section 4.2, a policy per cell."""

from collections.abc import Sequence

import numpy as np

from mbdp.analysis.heatmap import LABELS
from mbdp.analysis.learning import final_return
from mbdp.analysis.robustness_results import Robustness
from mbdp.analysis.runs import Run
from mbdp.types import BadInput

PROTOCOL = "retrained"


def retrained_results(runs: Sequence[Run]) -> tuple[list[Robustness], list[str]]:
    """A result per environment, and sentences about seeds that are left out because a world of theirs is missing.

    The return of a cell is that of the policy which was trained in it, in its own world, at the end of its training.
    """
    found = [_result(env, [run for run in runs if run.env == env]) for env in dict.fromkeys(run.env for run in runs)]
    return [result for result, _ in found], [note for _, notes in found for note in notes]


def world_of(run: Run) -> dict[str, float]:
    """The coefficients of the world that a run was trained in."""
    text = str(run.settings.get("perturb", "nominal"))
    try:
        pairs = [part.rsplit(" ", 1) for part in text.split(", ")] if text != "nominal" else []
        return {axis: float(value) for axis, value in pairs}
    except ValueError:
        raise BadInput(f"{run.folder}: its world {text!r} is not a list of axes and values") from None


def _result(env: str, runs: Sequence[Run]) -> tuple[Robustness, list[str]]:
    worlds = {run.folder: world_of(run) for run in runs}
    names = list(worlds[runs[0].folder])
    for folder, world in worlds.items():
        if len(world) != 2 or list(world) != names:
            said = ", ".join(world) or "none"
            raise BadInput(f"{folder}: every run must be trained with `perturb` on the same two axes; it has {said}")
    axes = {name: sorted({world[name] for world in worlds.values()}) for name in names}
    cells = dict[tuple[str, int], np.ndarray]()
    for run in runs:
        cell = tuple(axes[name].index(worlds[run.folder][name]) for name in names)
        array = cells.setdefault((run.algo, run.seed), np.full((*map(len, axes.values()), 1), np.nan))
        array[cell] = final_return(run)
    whole = {key: array for key, array in cells.items() if not np.isnan(array).any()}
    notes = [
        f"not in the figure: seed {seed} of {algo} in {env}, which has {int(np.isfinite(array).sum())} of "
        f"{array.size} worlds"
        for (algo, seed), array in cells.items()
        if (algo, seed) not in whole
    ]
    if not whole:
        raise BadInput(f"no seed has a run in every world of {env}; {notes[0]}")
    arms = list(dict.fromkeys(algo for algo, _ in whole))
    returns = {arm: np.stack([array for key, array in whole.items() if key[0] == arm]) for arm in arms}
    seeds = {arm: [seed for algo, seed in whole if algo == arm] for arm in arms}
    neutral = {
        name: 0.0 if name in LABELS else 1.0 for name in names
    }  # what is not a coefficient is added to the world
    return Robustness(runs[0].folder.parent, env, PROTOCOL, axes, neutral, returns, seeds, {}), notes
