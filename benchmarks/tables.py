"""Write the tables of the speed measurements into docs/scaling.md, between their marks.

python -m benchmarks.tables        after `make bench`; reads results/bench.json and results/run_cost.json
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.marks import fill
from benchmarks.speed.report import table

ROOT = Path(__file__).parent.parent


def main() -> None:
    bench, run_cost = (json.loads((ROOT / "results" / name).read_text()) for name in ("bench.json", "run_cost.json"))
    if bench["quick"] or run_cost["quick"]:
        raise SystemExit("these measurements were made with --quick and mean nothing")
    fill(ROOT / "docs/scaling.md", "bench", table(bench))
    fill(ROOT / "docs/scaling.md", "run", run_table(run_cost))


def run_table(report: dict[str, Any]) -> str:
    """Env steps, start-up and memory of the default preset as Markdown."""
    steps = report["env_steps"]
    lines = [f"| {steps['env']}, {steps['cores']} core(s) | measured |", "|---|---|"]
    for samples, (low, middle, high) in steps["seconds_per_1000"].items():
        lines.append(f"| env step at {int(samples):,} samples | {middle:.1f} ms ({low:.1f} to {high:.1f}) |")
    lines.append(f"| the last of these relative to the first | {steps['last_to_first']:.2f} |")
    for cache, seconds in report.get("start_up_seconds", {}).items():
        first, update = seconds["first_env_step"], seconds["first_update"]
        lines.append(f"| start-up, {cache}: to the first env step, first update | {first:.1f} s, {update:.1f} s |")
    for env, found in report.get("peak_memory", {}).items():
        lines.append(f"| peak memory after {found['samples']:,} env steps, {env} | {found['gigabytes']:.2f} GB |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
