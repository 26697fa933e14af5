"""Write our returns beside published ones into README.md, from the runs of the default preset in results/evidence.

python -m benchmarks.learning_table
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.marks import fill

from mbdp.analysis.learning import final_return
from mbdp.analysis.published import read_published
from mbdp.analysis.runs import Run, find_runs

SWEEPS = ("learning", "arms")  # that train the default preset; the arms are shorter
STEPS = (20_000, 50_000, 100_000)
RIVALS = ("DHMBPO, 2 updates", "DHMBPO", "MACURA", "MBPO (as in MACURA)", "SAC")
NOTHING = "-"


def write_table(root: Path) -> None:
    """Into the README of the project in this folder."""
    table = beside_published(runs_of_default(root / "results/evidence"), root / "results/published_returns.csv")
    fill(root / "README.md", "published", table)


def runs_of_default(results: Path) -> list[Run]:
    """Runs of the default preset, of each task and seed the one that has come furthest."""
    found: dict[tuple[str, int], Run] = {}
    for folder in (results / sweep / "mbdp" for sweep in SWEEPS):
        for run in find_runs([folder])[0] if folder.is_dir() else []:
            other = found.get((run.env, run.seed))
            if other is None or run.steps[-1] > other.steps[-1]:
                found[run.env, run.seed] = run
    return [run for _, run in sorted(found.items())]


def beside_published(ours: Sequence[Run], csv: Path) -> str:
    """Means over seeds of the default preset beside published means, all over the last tenth of the steps."""
    lines = ["| task | ours | seeds | " + " | ".join(RIVALS) + " |", "|---" * (3 + len(RIVALS)) + "|"]
    for task in dict.fromkeys(run.env for run in ours):
        runs = [run for run in ours if run.env == task]
        reached = [[value for run in runs if (value := last_tenth(run, step)) is not None] for step in STEPS]
        means = [f"{sum(values) / len(values):,.0f}" if values else NOTHING for values in reached]
        seeds = [str(len(values)) if values else NOTHING for values in reached]
        others = [[published(csv, name, task, step) for step in STEPS] for name in RIVALS]
        lines.append(f"| {task} | " + " | ".join(" / ".join(cell) for cell in (means, seeds, *others)) + " |")
    return "\n".join(lines)


def last_tenth(run: Run, step: int) -> float | None:
    """Mean of the evaluations in the last tenth of so many env steps, if the run has come so far."""
    return final_return(run, step) if step <= run.steps[-1] else None


def published(csv: Path, method: str, task: str, step: int) -> str:
    """A method's published mean there, if there is one."""
    for curve in read_published(csv, [method]):
        if task.startswith(curve.task) and step in curve.steps:
            return f"{curve.returns[list(curve.steps).index(step)]:,.0f}"
    return NOTHING


if __name__ == "__main__":
    write_table(Path(__file__).parent.parent)
