"""Write the table of the screening runs into README.md and docs/screening.md, from results/screening.

python -m benchmarks.screening
"""

from pathlib import Path

from benchmarks.marks import fill

from mbdp.analysis.curves import read_curve

ROOT = Path(__file__).parent.parent
STEPS = (5_000, 10_000, 20_000, 30_000)
FOLDERS = {"two_siblings": "default", "four_siblings": "4 siblings"}


def main() -> None:
    text = table()
    fill(ROOT / "README.md", "learning", text)
    fill(ROOT / "docs/screening.md", "runs", text)


def table() -> str:
    """Return of each run at some numbers of env steps, as Markdown."""
    lines = ["| task | setting | " + " | ".join(f"{step:,}" for step in STEPS) + " | last |", "|---|---|" + "---|" * 5]
    for run in sorted((ROOT / "results/screening").glob("*_siblings/*_*")):
        steps, returns = read_curve(run)
        found = dict(zip(map(int, steps), map(float, returns), strict=True))
        cells = " | ".join(f"{found[step]:,.0f}" if step in found else "" for step in STEPS)
        task = run.name.rpartition("_")[0]
        lines.append(f"| {task} | {FOLDERS[run.parent.name]} | {cells} | {returns[-1]:,.0f} at {int(steps[-1]):,} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
