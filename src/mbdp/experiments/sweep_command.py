"""`mbdp sweep`: many runs from one file, interrupted and gone on with as one."""

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from mbdp.parallel import cores
from mbdp.types import BadInput

EXAMPLES = """\
a spec:
  out = "runs/ablation"                       where the runs' folders are
  name = "{algo}/{env}_{alpha}_{seed}"        the folder of each run (default: {algo}/{env}_{seed})
  env = "Hopper-v5"                           at the top: what all runs have; any setting of `mbdp train`
  steps = 100000
  [grid]                                      all combinations; [[grid]] several times for several grids
  alpha = [0.0, 0.2, 0.4]
  seed = [0, 1, 2, 3, 4]
  [[run]]                                     and single runs
  algo = "sac"

examples:
  mbdp sweep specs/example.toml --dry-run     what would run, and about how many core-hours that takes
  mbdp sweep specs/example.toml               runs it; after Ctrl-C or a crash the same command goes on with it
  mbdp sweep specs/example.toml --status      how far it is, also from another terminal
  mbdp sweep specs/example.toml --ray auto    on a Ray cluster

All runs of seed 0 come first, then those of seed 1: `priority = ["env", "seed"]` in the spec changes that.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.add_argument("spec", type=Path, metavar="SPEC.toml", help="which runs: a grid, a list, or both")
    parser.add_argument("--workers", type=int, metavar="N", help="runs at a time, one core each (default: all cores)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the runs' folder, instead of the spec's")
    parser.add_argument("--ray", metavar="ADDRESS", help="on a Ray cluster: HOST:PORT of its head node, or auto")
    parser.add_argument("--status", action="store_true", help="print how far each run is, and do nothing")
    parser.add_argument("--dry-run", action="store_true", help="print what would run and what it would cost")
    parser.add_argument("--allow-code", action="store_true", help="let the spec name environments as module:Env-v0")


def run(args: argparse.Namespace) -> None:
    if args.workers is not None and (args.workers < 1 or args.ray):
        raise BadInput("--workers must be at least 1, and is not for --ray, which uses the whole cluster")
    if not args.spec.is_file():  # said before the learner is imported, which takes seconds
        raise BadInput(f"{args.spec}: there is no such spec")
    from mbdp.experiments.sweep.schedule import Place, ThisMachine, carry_out_all
    from mbdp.experiments.sweep.spec import read_spec
    from mbdp.experiments.sweep.state import check_request, is_finished
    from mbdp.experiments.sweep.view import View, print_status

    runs = read_spec(args.spec, args.out, allow_code=args.allow_code)
    for one in runs:
        check_request(one)
    if args.status:
        print_status(runs)
        return
    if args.dry_run:
        from mbdp.experiments.sweep.estimate import print_estimate

        print_estimate(runs, args.workers or cores())
        return
    place: Place = ThisMachine(args.workers or cores())
    if args.ray:
        from mbdp.experiments.sweep.cluster import Cluster

        place = Cluster(args.ray)
    _make_folders(one.folder for one in runs)
    failed = carry_out_all(runs, place, View(runs, finished=sum(is_finished(one.folder) for one in runs)))
    if failed:
        names = ", ".join(one.name for one in failed[:5]) + (", ..." if len(failed) > 5 else "")
        raise BadInput(f"{len(failed)} of {len(runs)} runs failed: {names}; error.txt in their folders says why")
    print(f"all {len(runs)} runs are finished", flush=True)


def _make_folders(folders: Iterable[Path]) -> None:
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{folder} cannot be made ({error.strerror})") from None
        if not os.access(folder, os.W_OK):
            raise BadInput(f"{folder}: cannot write there")
