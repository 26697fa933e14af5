"""Write the tables of the speed measurements into the documents, between their marks.

python -m benchmarks.tables        after `make bench`; reads results/bench.json and results/run_cost.json
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import scaling
from benchmarks.marks import fill
from benchmarks.speed.report import table

ROOT = Path(__file__).parent.parent
BENCH, RUN_COST = ROOT / "results/bench.json", ROOT / "results/run_cost.json"


def main() -> None:
    fill(ROOT / "docs/scaling.md", "needs", scaling.needs_table())
    if not (BENCH.exists() and RUN_COST.exists()):
        print(f"{BENCH.name} and {RUN_COST.name} are not there yet: run `make bench`")
        return
    bench, run_cost = json.loads(BENCH.read_text()), json.loads(RUN_COST.read_text())
    if bench["quick"] or run_cost["quick"]:
        raise SystemExit("these measurements were made with --quick and mean nothing")
    fill(ROOT / "README.md", "bench", table(bench))
    fill(ROOT / "docs/scaling.md", "checked", scaling.checked_table(bench, run_cost))
    fill(ROOT / "docs/scaling.md", "run", run_table(run_cost))
    fill(ROOT / "docs/scaling.md", "products", products_table(bench))
    fill(ROOT / "docs/scaling.md", "whole runs", scaling.whole_runs_table(bench, run_cost))


def products_table(report: dict[str, Any]) -> str:
    """GFLOP per second of each library at each size, as Markdown."""
    found = report["gflop_per_second_of_products"]
    names = list(next(iter(found.values())))
    lines = ["| product | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for size, speeds in found.items():
        cells = (f"{middle:.0f} ({low:.0f} to {high:.0f})" for low, middle, high in speeds.values())
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def run_table(report: dict[str, Any]) -> str:
    """Start-up, growth, memory and the projected run as Markdown."""
    steps = report["env_steps"]
    lines = ["| what | measured |", "|---|---|"]
    for samples, (low, middle, high) in steps["seconds_per_1000"].items():
        name = f"1,000 env steps at {int(samples):,} samples, horizon {steps['horizon'][samples]}"
        lines.append(f"| {name} | {middle:.1f} s ({low:.1f} to {high:.1f}) |")
    lines.append(f"| the last of these relative to the first | {steps['last_to_first']:.2f} |")
    lines.append(f"| 120,000 env steps, projected from these | {steps['hours_of_a_whole_run']:.2f} h |")
    more = steps["with_8_critic_and_4_actor_updates"]
    low, middle, high = more["seconds_per_1000"]
    name = f"1,000 env steps at {more['samples']:,} samples with 8 critic and 4 actor updates, as on most tasks"
    lines.append(f"| {name} | {middle:.1f} s ({low:.1f} to {high:.1f}) |")
    if stretch := report.get("long_stretch"):
        steps_in_a_row, from_samples = f"{stretch['env_steps']:,} env steps in a row", f"{stretch['samples']:,} samples"
        seconds, hours = stretch["seconds"], stretch["hours_of_a_whole_run"]
        name = f"{steps_in_a_row} from {from_samples} on, and 120,000 at that speed"
        lines.append(f"| {name} | {seconds:.0f} s, {hours:.2f} h |")
    if paper := report.get("paper_preset"):
        first, rest = paper["first_fit"], paper["seconds_of_a_step_without"]
        seconds, steps_of_fits = paper["seconds_of_a_step_with_a_fit"], paper["gradient_steps_of_these_fits"]
        lines.append(
            f"| {paper['env']}: env step with a fit of {_from_to(steps_of_fits)} gradient steps, without | "
            f"{np.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}), {rest:.3f} s |"
        )
        name = f"its first fit, {first['samples']:,} samples, {first['steps']:,} gradient steps"
        lines.append(f"| {name} | {first['seconds_of_the_env_step']:.0f} s |")
        hours = paper["hours_of_a_whole_run"]
        lines.append(f"| 120,000 env steps of the paper preset, projected from these | {hours:.2f} h |")
    for cache, seconds in report.get("start_up_seconds", {}).items():
        first, update = seconds["first_env_step"], seconds["first_update"]
        lines.append(
            f"| start-up, {cache}: to the first env step, to the first update | {first:.1f} s, {update:.1f} s |"
        )
    for env, found in report.get("peak_memory", {}).items():
        lines.append(f"| peak memory, {env}, paper preset, horizon {found['horizon']} | {found['gigabytes']:.2f} GB |")
    return "\n".join(lines)


def _from_to(numbers: list[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least}" if least == most else f"{least} to {most}"


if __name__ == "__main__":
    main()
