"""The project's own experiments: train what is left of them, keep their small files, and draw the figures again.

    python -m benchmarks.evidence                 go on with every sweep of specs/evidence, then the two steps below
    python -m benchmarks.evidence --only arms     with one of them
    python -m benchmarks.evidence --only-draw     try finished policies in perturbed worlds, copy runs/evidence to
                                                  results/evidence, and draw from there

Figures and tables are drawn from results/evidence alone, so they can be drawn again where nothing was trained. A run
that is finished there is not trained again, whichever machine it was trained on.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.learning_table import runs_of_default, write_table
from benchmarks.robustness_table import write_robustness
from benchmarks.seed_table import write_seeds
from benchmarks.verdict_table import write_verdicts

from mbdp.analysis.figure_ablation import draw_ablation
from mbdp.analysis.figure_curves import draw_learning_curves
from mbdp.analysis.figure_heatmaps import draw_heatmaps
from mbdp.analysis.learning import final_return
from mbdp.analysis.published import read_published
from mbdp.analysis.robustness_results import INSIDE, robustness_of
from mbdp.analysis.run_groups import RunGroup, group_runs
from mbdp.analysis.runs import find_runs

ROOT = Path(__file__).parent.parent
SWEEPS = ("arms", "learning", "groupings", "ablation", "systems", "authors", "robust", "small")  # most urgent first
KEPT = (
    "config.json",
    "evaluations.npz",
    "metrics.jsonl",
    "versions.json",
    "request.json",
    "finished.json",
    "error.txt",
    f"{INSIDE}/table.json",
    f"{INSIDE}/episodes.csv",
)
# Worlds in which the policies of a sweep are tried, all zero-shot.
GRIDS = {
    "arms": ("--grid", "0.5:1.5:11"),
    "learning": ("--grid", "0.5:1.5:11"),
    "groupings": ("--grid", "0.5:1.5:11"),
    "robust": ("--grid", "0.5:1.5:11"),
    "ablation": ("--axis", "mass:pole=0.5:1.5:11", "--axis", "gear=0.5:1.5:11"),
}
CURVES = ("systems", "arms", "groupings", "ablation")  # sweeps that have figures of their own
MOST_BYTES = 10**6  # of a file that is kept, but for the metrics of a long run
OF_THE_MACHINE = ("host", "pid")
PUBLISHED = ("DHMBPO, 2 updates", "DHMBPO", "MACURA", "MBPO (authors)", "SAC-SVG", "REDQ", "SAC")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1, help="runs at a time, one core each (default: 1)")
    parser.add_argument("--only", choices=SWEEPS, nargs="+", default=SWEEPS, help="these sweeps (default: all)")
    parser.add_argument("--only-draw", action="store_true", help="train nothing")
    args = parser.parse_args()
    runs, results = ROOT / "runs" / "evidence", ROOT / "results" / "evidence"
    if not args.only_draw:
        restore(results, runs)
    codes = [] if args.only_draw else train_all(args.only, args.workers)
    try_policies(runs)
    collect(runs, results)
    draw(results, ROOT / "results" / "published_returns.csv")
    write_table(ROOT)
    write_robustness(ROOT)
    write_verdicts(ROOT)
    write_seeds(ROOT)
    return next((code for code in codes if code), 0)


def train_all(sweeps: Sequence[str], workers: int) -> list[int]:
    """Go on with the sweeps one after the other; a run that failed does not keep the next sweep from starting."""
    codes: list[int] = []
    for name in sweeps:
        spec = ROOT / "specs" / "evidence" / f"{name}.toml"
        command = [sys.executable, "-m", "mbdp", "sweep", str(spec), "--workers", str(workers)]
        print(f"{name}: {spec.relative_to(ROOT)}", flush=True)
        # Ctrl-C reaches the sweep, too, and `kill` is passed on to it: its runs write their checkpoints.
        with subprocess.Popen(command, cwd=ROOT) as sweep:
            handlers = {number: signal.signal(number, _pass_on(sweep)) for number in (signal.SIGINT, signal.SIGTERM)}
            codes.append(sweep.wait())
            for number, handler in handlers.items():
                signal.signal(number, handler)
        if codes[-1] not in (0, 2):  # interrupted
            break
    return codes


def _pass_on(sweep: subprocess.Popen) -> Any:
    def handle(number: int, frame: Any) -> None:
        if number == signal.SIGTERM:
            sweep.terminate()

    return handle


def try_policies(runs: Path) -> None:
    """Try the policy of every finished run in the worlds of its sweep, unless that is done."""
    for name, grid in GRIDS.items():
        for finished in sorted((runs / name).rglob("finished.json")):
            run = finished.parent
            if (run / "policy.json").exists() and not (run / INSIDE / "table.json").exists():
                where = run.relative_to(ROOT)
                command = ["robustness", str(where), *grid, "--episodes", "5", "--workers", "1"]
                subprocess.run(
                    [sys.executable, "-m", "mbdp", *command, "--out", str(where / INSIDE)], cwd=ROOT, check=True
                )


def restore(results: Path, runs: Path) -> None:
    """Put the small files of finished runs back where a sweep looks for them, unless there is something already."""
    for finished in sorted(results.rglob("finished.json")):
        source = finished.parent
        target = runs / source.relative_to(results)
        if not target.exists():
            shutil.copytree(source, target)


def collect(runs: Path, results: Path) -> None:
    """Copy the small files of every run, finished or not; a copy that has come further is left as it is."""
    for config in sorted(runs.rglob("config.json")):
        source = config.parent
        target = results / source.relative_to(runs)
        if _same_request(source, target) and _last_step(target) > _last_step(source):
            continue
        target.mkdir(parents=True, exist_ok=True)
        for name in KEPT:
            (target / name).unlink(missing_ok=True)
            file = source / name
            if file.exists() and (name == "metrics.jsonl" or file.stat().st_size <= MOST_BYTES):
                (target / name).parent.mkdir(exist_ok=True)
                (target / name).write_bytes(_published(file))


def _published(file: Path) -> bytes:
    """A file's content without what is of this machine only, and without a line that is being written."""
    content = file.read_bytes()
    if file.name == "metrics.jsonl":
        return content[: content.rfind(b"\n") + 1]
    if file.name == "finished.json":
        about = {key: value for key, value in json.loads(content).items() if key not in OF_THE_MACHINE}
        return json.dumps(about, indent=1).encode() + b"\n"
    return content.replace(f"{ROOT}/".encode(), b"") if file.suffix in (".txt", ".csv", ".json") else content


def _same_request(one: Path, other: Path) -> bool:
    files = [folder / "request.json" for folder in (one, other)]
    return all(file.exists() for file in files) and files[0].read_bytes() == files[1].read_bytes()


def _last_step(run: Path) -> int:
    file = run / "metrics.jsonl"
    lines = [line for line in file.read_text().split("\n")[:-1] if line] if file.exists() else []
    return int(json.loads(lines[-1])["step"]) if lines else 0


def draw(results: Path, published: Path) -> list[Path]:
    """Draw every figure for which there are runs, and print a table of them; the same runs give the same bytes."""
    systems, arms, groupings, ablation = (methods_in(results, name) for name in CURVES)
    learning = [*group_runs(runs_of_default(results)), *systems]
    files: list[Path] = []
    if learning:
        others = read_published(published, PUBLISHED)
        files += draw_learning_curves(learning, results, published=others, window=3_000, name="learning")
        if tried := robustness_of(learning):
            files += draw_heatmaps(tried, results, name="learning_heatmaps")
    for name, methods in (("arms", arms), ("groupings", groupings)):
        if methods:
            files += draw_learning_curves(methods, results, band="interval", window=3_000, name=name)
        if tried := robustness_of(methods):
            files += draw_heatmaps(tried, results, name=f"{name}_heatmaps")
    if ablation:
        files += draw_ablation(ablation, robustness_of(ablation), results)
    print_table([*learning, *arms, *groupings, *ablation])
    for file in files:
        print(file.relative_to(results))
    return files


def methods_in(results: Path, *sweeps: str) -> list[RunGroup]:
    """The methods of these sweeps; a run that failed, or has no evaluation yet, is named."""
    runs, broken = find_runs([results / sweep for sweep in sweeps if (results / sweep).is_dir()])
    for one in broken:
        print(f"not in the figures: {one.folder.relative_to(results)}: {one.reason}")
    return group_runs(runs)


def print_table(methods: Sequence[RunGroup]) -> None:
    print("\n| method | task | seeds | env steps | mean of final returns | lowest | highest |")
    print("|---|---|---|---|---|---|---|")
    for method in methods:
        final = [final_return(run) for run in method.runs]
        steps = sorted({f"{run.steps[-1]:,.0f}" for run in method.runs}, key=lambda text: int(text.replace(",", "")))
        span = steps[0] if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
        numbers = " | ".join(f"{value:.0f}" for value in (sum(final) / len(final), min(final), max(final)))
        print(f"| {method.name} | {method.env} | {len(final)} | {span} | {numbers} |")


if __name__ == "__main__":
    sys.exit(main())
