"""`mbdp reproduce`: a figure of the paper again, from the training runs to the PDF."""

import argparse
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from mbdp.analysis import tables
from mbdp.analysis.figure_ablation import draw_ablation
from mbdp.analysis.figure_curves import draw_learning_curves
from mbdp.analysis.figure_heatmaps import READINGS, draw_heatmaps
from mbdp.analysis.figure_residual import draw_residual
from mbdp.analysis.published import read_published
from mbdp.analysis.retrained_results import retrained_results
from mbdp.analysis.robustness_results import Robustness, find_robustness
from mbdp.analysis.run_groups import RunGroup, group_runs
from mbdp.analysis.runs import find_runs
from mbdp.parallel import cores
from mbdp.types import BadInput

FIGURES = {
    "curves": "learning curves of all systems",
    "heatmaps": "returns over mass and friction, with and without each dropout",
    "ablation": "robustness and efficiency over alpha and over beta",
    "residual": "how far policies are above their guarantee",
}
SCALES = ("smoke", "laptop", "paper")
# Worlds and episodes in each, where policies are tried; a smoke test only asks whether it runs.
GRIDS = {"heatmaps": {"smoke": ("0.5:1.5:3", 1)}, "ablation": {"smoke": ("0.8,1.2", 1)}}
USUAL_GRID = {"heatmaps": ("0.5:1.5:11", 5), "ablation": ("0.8,1.2", 10)}
EXAMPLES = """\
examples:
  mbdp reproduce curves                                 minutes: tiny runs, to see that everything works
  mbdp reproduce ablation --scale laptop                a day or two on one core
  mbdp reproduce heatmaps --reading retrained           a policy trained anew in each world
  mbdp reproduce curves --from results/hopper_systems   a figure of runs that are there already

specs/FIGURE_SCALE.toml, or specs/heatmaps_retrained_SCALE.toml, says which runs a figure needs. After Ctrl-C or a crash
the same command goes on with them.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    figures = "; ".join(f"{name}: {what}" for name, what in FIGURES.items())
    parser.epilog = EXAMPLES
    parser.add_argument("figure", choices=FIGURES, metavar="FIGURE", help=figures)
    parser.add_argument("--scale", choices=SCALES, default="smoke", help="how long it may take (default: smoke)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="(default: runs/reproduce/FIGURE_SCALE)")
    parser.add_argument("--workers", type=int, default=cores(), metavar="N", help="processes (default: all cores)")
    parser.add_argument(
        "--from", dest="runs", nargs="+", metavar="RUNS", help="draw these runs, also as LABEL=FOLDER; train nothing"
    )
    curves = parser.add_argument_group("of curves")
    curves.add_argument(
        "--published", type=Path, metavar="CSV", help="returns of others, as results/published_returns.csv"
    )
    curves.add_argument("--methods", nargs="+", default=[], metavar="NAME", help="only these of the published ones")
    curves.add_argument(
        "--band", choices=("sd", "interval"), default="sd", help="mean and sd, or IQM and 95 %% interval"
    )
    curves.add_argument("--smooth", type=int, default=0, metavar="N", help="env steps to average over (default: 0)")
    heatmaps = parser.add_argument_group("of heatmaps")
    heatmaps.add_argument(
        "--reading",
        choices=READINGS,
        default="zero-shot",
        help="of Section 4.2: policies tried in worlds they never saw, or trained anew in each (default: zero-shot)",
    )
    residual = parser.add_argument_group("of residual")
    residual.add_argument(
        "--lipschitz",
        type=float,
        default=1.0,
        metavar="L",
        help="constant of the value function, for runs that did not log theory/* (default: 1)",
    )


def run(args: argparse.Namespace) -> None:
    if args.workers < 1 or args.smooth < 0 or not args.lipschitz >= 0:
        raise BadInput("--workers must be at least 1, --smooth and --lipschitz at least 0")
    retrained = args.reading == "retrained"
    if retrained and args.figure != "heatmaps":
        raise BadInput(f"--reading is of heatmaps; {args.figure} has one reading")
    published = read_published(args.published, args.methods) if args.published else []
    name = "heatmaps_retrained" if retrained else args.figure
    out = args.out or Path("runs/reproduce") / f"{name}_{args.scale}"
    if not args.runs:
        spec = spec_of(name, args.scale)
        if args.scale != "smoke":
            announce(spec, out / "runs", args.workers)
        train(spec, out / "runs", args.workers)
    folders = args.runs or [str(out / "runs")]
    methods = _methods(folders)
    if retrained:
        robustness = _retrained(methods)
    else:
        robustness = _robustness(args, methods, folders, out) if args.figure in USUAL_GRID else []
    if args.figure == "curves":
        files = draw_learning_curves(methods, out, published=published, band=args.band, window=args.smooth)
    elif args.figure == "heatmaps":
        files = draw_heatmaps(robustness, out, name=name)
    elif args.figure == "ablation":
        files = draw_ablation(methods, robustness, out)
    else:
        files = draw_residual(methods, out, lipschitz=args.lipschitz)
    tables.write_csv(tables.evaluations(methods), out / "evaluations.csv")
    for file in (*files, out / "evaluations.csv"):
        print(file)


def spec_of(figure: str, scale: str) -> Path:
    """The spec of a figure: part of an installed package, at the root of a clone."""
    name = f"{figure}_{scale}.toml"
    package = Path(str(resources.files("mbdp")))
    for folder in (package / "specs", package.parents[1] / "specs"):
        if (folder / name).is_file():
            return folder / name
    raise BadInput(f"specs/{name} is missing: reinstall mbdp, or give runs with --from")


def announce(spec: Path, out: Path, workers: int) -> None:
    """Say how many runs are left of a spec, and about how many core-hours they will take."""
    from mbdp.experiments.sweep.estimate import print_cost
    from mbdp.experiments.sweep.spec import read_spec
    from mbdp.experiments.sweep.state import is_finished

    runs = read_spec(spec, out)
    todo = [run for run in runs if not is_finished(run.folder)]
    print(f"{len(runs)} runs, {len(runs) - len(todo)} of them finished", flush=True)
    if todo:
        print_cost(todo, workers)


def train(spec: Path, out: Path, workers: int) -> None:
    """Make the runs of a spec, or go on with them; the one place that knows how sweeps are called."""
    _command("sweep", str(spec), "--out", str(out), "--workers", str(workers))


def _methods(folders: Sequence[str]) -> list[RunGroup]:
    runs, broken = find_runs(folders)
    for one in broken:
        print(f"broken, not in the figure: {one.folder}: {one.reason}")
    if not runs:
        raise BadInput(f"no run directory in {', '.join(folders)}")
    return group_runs(runs)


def _retrained(methods: Sequence[RunGroup]) -> list[Robustness]:
    """The grid of worlds that the runs were trained in."""
    results, notes = retrained_results([run for method in methods for run in method.runs])
    for note in notes:
        print(note)
    return results


def _robustness(
    args: argparse.Namespace, methods: Sequence[RunGroup], folders: Sequence[str], out: Path
) -> list[Robustness]:
    """Results of `mbdp robustness` that lie beside the given runs, or else new ones of the runs' policies."""
    found, _ = find_robustness(folders) if args.runs else ([], [])
    if found:
        return found
    grid, episodes = GRIDS[args.figure].get(args.scale, USUAL_GRID[args.figure])
    for env in dict.fromkeys(method.env for method in methods):
        policies = [f"{method.name}={run.folder}" for method in methods if method.env == env for run in method.runs]
        where = out / "robustness" / env.replace("/", "-")
        options = {"--env": env, "--grid": grid, "--episodes": episodes, "--workers": args.workers, "--out": where}
        _command("robustness", *policies, *(str(part) for option in options.items() for part in option))
    found, broken = find_robustness([out / "robustness"])
    if broken:
        raise BadInput(f"{broken[0].folder}: {broken[0].reason}")
    return found


def _command(*arguments: str) -> None:
    """Another command of this command line, which prints its own errors; its exit code becomes ours."""
    from mbdp.experiments.cli import main

    if code := main(arguments):
        raise SystemExit(code)
