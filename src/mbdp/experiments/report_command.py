"""`mbdp report`: one HTML page about many runs."""

import argparse
from pathlib import Path

from mbdp.analysis.report.page import build_page
from mbdp.analysis.robustness_results import find_robustness
from mbdp.analysis.run_groups import group_runs
from mbdp.analysis.runs import find_runs
from mbdp.types import BadInput

EXAMPLES = """\
examples:
  mbdp report runs                                     every run below runs/
  mbdp report MBDP=runs/mbdp MBPO=runs/mbpo --out a.html
  mbdp report runs logs/sac --goal 3000                with RL Zoo's runs beside ours

Runs of one label are training seeds of one method. Without labels, runs of one folder with the same settings are.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUNS",
        help="run directories, folders that hold some, or results of `mbdp robustness`, also as LABEL=FOLDER; "
        "Stable-Baselines3's and RL Zoo's folders with evaluations.npz, too",
    )
    parser.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="(default: report.html)")
    parser.add_argument("--title", default="Training runs", help="of the page")
    parser.add_argument("--at", type=float, metavar="STEP", help="env step at which methods are compared")
    parser.add_argument("--goal", type=float, metavar="RETURN", help="return for steps and time to the goal")


def run(args: argparse.Namespace) -> None:
    if args.at is not None and not args.at > 0:
        raise BadInput(f"--at must be an env step above 0, not {args.at:g}")
    runs, broken = find_runs(args.runs)
    robustness, more = find_robustness(args.runs)
    broken += more
    if not runs and not robustness:
        why = f"; {broken[0].folder}: {broken[0].reason}" if broken else ""
        raise BadInput(f"no run directory in {', '.join(args.runs)}: each has config.json and metrics.jsonl{why}")
    methods = group_runs(runs)
    page = build_page(methods, robustness, broken, title=args.title, at=args.at, threshold=args.goal)
    try:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(page)
    except OSError as error:
        raise BadInput(f"--out: {args.out} cannot be written ({error.strerror})") from None
    for one in broken:
        print(f"broken, not in the report: {one.folder}: {one.reason}")
    print(f"{len(runs)} runs, {len(broken)} broken: {args.out} ({args.out.stat().st_size / 1e6:.1f} MB)")
