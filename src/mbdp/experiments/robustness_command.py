"""`mbdp robustness`: policies, ours or anyone's, in a grid of worlds that they were not trained in."""

import argparse
from pathlib import Path

from mbdp.experiments.grid_arguments import add_grid_arguments
from mbdp.parallel import cores

EXAMPLES = """\
examples:
  mbdp robustness runs/mbdp/Hopper-v5_0
  mbdp robustness runs/mbdp/Hopper-v5_0 --mass 0.5:1.5:5 --friction 0.8,1,1.2 --episodes 3 --out robustness
  mbdp robustness runs/mbdp/Hopper-v5_0 --grid 0.8,1,1.2 --video worst.mp4
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "policies",
        nargs="+",
        metavar="POLICY",
        help="a run directory, a Stable-Baselines3 .zip or an .onnx file, also as LABEL=POLICY; "
        "policies with one label are training seeds of one method",
    )
    parser.add_argument("--env", help="environment id (default: the one the policies were trained in)")
    add_grid_arguments(parser)
    parser.epilog = f"{parser.epilog}\n\n{EXAMPLES}"
    parser.add_argument("--episodes", type=int, default=5, metavar="N", help="per world (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="of the first episode of every world (default: 0)")
    parser.add_argument("--workers", type=int, default=cores(), metavar="N", help="processes (default: all cores)")
    parser.add_argument("--allow-code", action="store_true", help="load .zip files, which can run code hidden in them")
    parser.add_argument(
        "--video", type=Path, metavar="FILE", help="film the first policy, nominal beside its worst world: .mp4 or .gif"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where results go (default: runs/robustness/ENV)")


def run(args: argparse.Namespace) -> None:
    from mbdp.experiments.robustness_evaluation import evaluate_robustness

    evaluate_robustness(args)
