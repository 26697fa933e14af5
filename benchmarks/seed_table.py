"""Write a row for each method of a sweep, and for each seed of the learning curves, into docs/evidence.md.

python -m benchmarks.seed_table
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from benchmarks.learning_table import STEPS, last_tenth, runs_of_default
from benchmarks.marks import fill
from benchmarks.robustness_table import WORLDS, mean_in, number

from mbdp.analysis.learning import LAST, area_under_curve, final_return, steps_to
from mbdp.analysis.robustness_results import has_robustness, robustness_of
from mbdp.analysis.run_groups import RunGroup, group_runs
from mbdp.analysis.runs import Run, find_runs

SWEEPS = ("arms", "groupings", "ablation", "systems", "authors", "robust", "small")
COMMIT_LETTERS = 7
# Returns that are asked for, one on the way and one at 100,000 env steps, at the least.
GOALS = {
    "Ant-v5": (2_500, 5_000),
    "HalfCheetah-v5": (7_500, 11_000),
    "Hopper-v5": (2_500, 3_400),
    "Walker2d-v5": (2_500, 5_000),
}
NOTHING = "-"


def write_seeds(root: Path) -> None:
    """Into docs/evidence.md of the project in this folder."""
    results, page = root / "results/evidence", root / "docs/evidence.md"
    for sweep in SWEEPS:
        folder = results / sweep
        runs = find_runs([folder])[0] if folder.is_dir() else []
        finished = [run for run in runs if (run.folder / "finished.json").exists()]
        fill(page, f"{sweep}_numbers", methods_table(group_runs(finished)))
    fill(page, "learning_seeds", seeds_table(runs_of_default(results)))
    fill(page, "commits", commits_table(results, ("learning", *SWEEPS)))


def methods_table(methods: Sequence[RunGroup]) -> str:
    """What every method reached: returns, each seed's final one, what critics believe, and other worlds."""
    worlds = [name for name in WORLDS if name != "nominal"]
    names = ["task", "method", "seeds", "efficiency", "final return", "of each seed", "critics expect / earned"]
    names += worlds
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for method in sorted(methods, key=lambda one: one.env):
        runs = method.runs
        final = [final_return(run) for run in runs]
        until = min(float(run.steps[-1]) for run in runs)
        cells = [
            method.env,
            method.name,
            str(len(runs)),
            f"{np.mean([area_under_curve(run, until) for run in runs]):,.0f}",
            f"{np.mean(final):,.0f}",
            ", ".join(f"{value:,.0f}" for value in final),
            _belief(runs),
            *_elsewhere(method, worlds),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else "No runs yet."


def seeds_table(runs: Sequence[Run]) -> str:
    """Each seed of the default preset: returns on the way, the highest evaluation, and env steps until the goals."""
    columns = [f"at {step:,}" for step in STEPS]
    names = ["task", "seed", "env steps", *columns, "highest evaluation", "env steps until"]
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for run in runs:
        reached = [last_tenth(run, step) for step in STEPS]
        goals = [f"{goal:,}: {_steps_until(run, goal)}" for goal in GOALS.get(run.env, ())]
        cells = [
            run.env,
            str(run.seed),
            f"{run.steps[-1]:,.0f}",
            *(NOTHING if value is None else f"{value:,.0f}" for value in reached),
            f"{run.returns.max():,.0f}",
            "; ".join(goals),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else "No runs yet."


def commits_table(results: Path, sweeps: Sequence[str]) -> str:
    """The code that each sweep was run with: one row for each version of it."""
    lines = ["| sweep | commit | learning code | finished runs | others |", "|---|---|---|---|---|"]
    for sweep in sweeps:
        runs = find_runs([results / sweep])[0] if (results / sweep).is_dir() else []
        code = [(str(run.versions.get("commit"))[:COMMIT_LETTERS], str(run.versions.get("learner"))) for run in runs]
        for version in sorted(set(code)):
            going_on = [_goes_on(run) for run, own in zip(runs, code, strict=True) if own == version]
            counts = going_on.count(False), going_on.count(True)
            lines.append(f"| {sweep} | {version[0]} | {version[1]} | {counts[0]} | {counts[1]} |")
    return "\n".join(lines) if len(lines) > 2 else "No runs yet."


def _steps_until(run: Run, goal: float) -> str:
    steps = steps_to(run, goal)
    return f"{steps:,.0f}" if np.isfinite(steps) else "not yet" if _goes_on(run) else "never"


def _goes_on(run: Run) -> bool:
    return not (run.folder / "finished.json").exists()


def _belief(runs: Sequence[Run]) -> str:
    """Discounted return from the start states as critics expect it, and as it is earned, in the last evaluations."""
    pairs = [
        (line["eval/expected_discounted"], line["eval/mean_discounted"])
        for run in runs
        for line in run.lines
        if "eval/expected_discounted" in line and line["step"] > (1 - LAST) * run.steps[-1]
    ]
    if not pairs:
        return NOTHING
    expected, earned = np.mean(pairs, axis=0)
    return f"{expected:,.0f} / {earned:,.0f}"


def _elsewhere(method: RunGroup, worlds: Sequence[str]) -> list[str]:
    """Mean returns in perturbed worlds, over the seeds that have been tried there."""
    tried = RunGroup(method.name, method.env, [run for run in method.runs if has_robustness(run)])
    results = robustness_of([tried]) if tried.runs else []
    if not results or set(results[0].axes) != {"mass", "friction"}:
        return [NOTHING] * len(worlds)
    (returns,) = results[0].returns.values()
    return [number(mean_in(results[0], returns, WORLDS[world])) for world in worlds]


if __name__ == "__main__":
    write_seeds(Path(__file__).parent.parent)
