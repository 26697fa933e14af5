"""Write our returns beside published ones into README.md, from results/evidence/learning.

python -m benchmarks.learning_table
"""

from pathlib import Path

from benchmarks.marks import fill

from mbdp.analysis.curves import read_curve
from mbdp.analysis.published import read_published

RUNS = "results/evidence/learning/mbdp"
STEPS = (20_000, 50_000, 100_000)
RIVALS = ("DHMBPO, 2 updates", "DHMBPO", "MACURA", "MBPO (as in MACURA)", "SAC")
NOTHING = "-"


def write_table(root: Path) -> None:
    """Into the README of the project in this folder."""
    fill(root / "README.md", "published", beside_published(root / RUNS, root / "results/published_returns.csv"))


def beside_published(folder: Path, csv: Path) -> str:
    """Means over seeds of the default preset beside published means, all over the last tenth of the steps."""
    lines = ["| task | ours | seeds | " + " | ".join(RIVALS) + " |", "|---" * (3 + len(RIVALS)) + "|"]
    for task in sorted({run.name.rpartition("_")[0] for run in folder.glob("*_*")}):
        runs = sorted(folder.glob(f"{task}_*"))
        reached = [[value for run in runs if (value := last_tenth(run, step)) is not None] for step in STEPS]
        ours = [f"{sum(values) / len(values):,.0f}" if values else NOTHING for values in reached]
        seeds = [str(len(values)) if values else NOTHING for values in reached]
        others = [[published(csv, name, task, step) for step in STEPS] for name in RIVALS]
        lines.append(f"| {task} | " + " | ".join(" / ".join(cell) for cell in (ours, seeds, *others)) + " |")
    return "\n".join(lines)


def last_tenth(run: Path, step: int) -> float | None:
    """Mean of the evaluations in the last tenth of so many env steps, if the run has come so far."""
    if not (run / "metrics.jsonl").exists():
        return None
    steps, returns = read_curve(run)
    if not len(steps) or step > steps[-1]:
        return None
    return float(returns[(steps > 0.9 * step) & (steps <= step)].mean())


def published(csv: Path, method: str, task: str, step: int) -> str:
    """A method's published mean there, if there is one."""
    for curve in read_published(csv, [method]):
        if task.startswith(curve.task) and step in curve.steps:
            return f"{curve.returns[list(curve.steps).index(step)]:,.0f}"
    return NOTHING


if __name__ == "__main__":
    write_table(Path(__file__).parent.parent)
