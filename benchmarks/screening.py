"""Write the tables of the screening runs into README.md and docs/screening.md, from results/screening.

python -m benchmarks.screening
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.marks import fill

from mbdp.analysis.curves import read_curve
from mbdp.analysis.published import read_published

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "results/screening"
STEPS = (5_000, 10_000, 20_000, 30_000, 50_000)
FOLDERS = {
    "default": "default",
    "four_siblings": "4 siblings",
    "two_updates": "2 updates per env step",
    "no_bootstrap": "no bootstraps",
}
RIVALS = ("DHMBPO", "MACURA", "MBPO (as in MACURA)")


def main() -> None:
    fill(ROOT / "docs/screening.md", "runs", all_runs())
    for file in ("README.md", "docs/screening.md"):
        fill(ROOT / file, "published", beside_published())


def all_runs() -> str:
    """Return of each run at some numbers of env steps, as Markdown."""
    lines = ["| task | setting | " + " | ".join(f"{step:,}" for step in STEPS) + " | last |", "|---" * 8 + "|"]
    for folder, setting in FOLDERS.items():
        for run in sorted((RUNS / folder).glob("*_*")):
            steps, returns = read_curve(run)
            found = dict(zip(map(int, steps), map(float, returns), strict=True))
            cells = " | ".join(f"{found[step]:,.0f}" if step in found else "" for step in STEPS)
            last = f"{returns[-1]:,.0f} at {int(steps[-1]):,}"
            lines.append(f"| {_task(run)} | {setting} | {cells} | {last} |")
    return "\n".join(lines)


def beside_published() -> str:
    """Our single runs of the default preset beside published means, both averaged over the last tenth of the steps."""
    lines = ["| task | env steps | ours, 1 seed | " + " | ".join(f"{name}, mean" for name in RIVALS) + " |"]
    lines.append("|---" * (3 + len(RIVALS)) + "|")
    for run in sorted((RUNS / "default").glob("*_*")):
        for step, ours in last_tenths(run):
            cells = " | ".join(_published(name, _task(run), step) for name in RIVALS)
            lines.append(f"| {_task(run)} | {step:,} | {ours:,.0f} | {cells} |")
    return "\n".join(lines)


def last_tenths(run: Path) -> Iterator[tuple[int, float]]:
    """Some numbers of env steps, and the mean of the evaluations in the last tenth of them."""
    steps, returns = read_curve(run)
    for step in STEPS[2:]:
        if step <= steps[-1]:
            yield step, float(returns[(steps > 0.9 * step) & (steps <= step)].mean())


def _published(method: str, task: str, step: int) -> str:
    for curve in read_published(ROOT / "results/published_returns.csv", [method]):
        if task.startswith(curve.task) and step in curve.steps:
            return f"{curve.returns[list(curve.steps).index(step)]:,.0f}"
    return ""


def _task(run: Path) -> str:
    return run.name.rpartition("_")[0]


if __name__ == "__main__":
    main()
