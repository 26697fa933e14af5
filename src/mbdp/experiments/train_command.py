"""`mbdp train`: its options are the fields of the configuration."""

import argparse
import math
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, get_args

from mbdp.baselines import slbo_config, steve_config
from mbdp.config import Config
from mbdp.experiments.trackers import add_track, check_installed
from mbdp.experiments.training_world import add_perturb, new_agent, read_coefficients
from mbdp.presets import FAMILY, PREFERENCES
from mbdp.types import BadInput

EXAMPLES = """\
examples:
  mbdp train InvertedPendulum-v5                       minutes on a laptop
  mbdp train Hopper-v5 --prefer robust --seed 1        more rollout dropout
  mbdp train Hopper-v5 --algo mbpo --preset paper      close to its authors' settings

Settings that are not given follow --algo, --preset and the environment; config.json in the run directory has them all.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.add_argument("env", metavar="ENV", help="a Gymnasium id, for example Hopper-v5")
    parser.add_argument("--algo", choices=(*FAMILY, "steve", "slbo"), default="mbdp", help="the method (default: mbdp)")
    parser.add_argument("--preset", choices=("default", "paper"), default="default", help="where settings start from")
    parser.add_argument(
        "--prefer", choices=PREFERENCES, help="alpha and beta as Section 3.3.3 advises; explicit ones win"
    )
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="where runs are collected (default: runs)")
    parser.add_argument("--quiet", action="store_true", help="plain lines instead of a live panel")
    parser.add_argument("--evaluate-every", type=int, default=1000, metavar="N", help="env steps (default: 1000)")
    parser.add_argument("--episodes", type=int, default=10, metavar="N", help="per evaluation (default: 10)")
    parser.add_argument(
        "--checkpoint-minutes", type=float, default=5.0, metavar="M", help="between two checkpoints (default: 5)"
    )
    add_track(parser)
    add_perturb(parser)
    seen: set[str] = set()
    for title, config in GROUPS.items():
        group = parser.add_argument_group(title)
        for one in fields(config):
            if one.name not in seen:
                _add_setting(group, one)
        seen |= {one.name for one in fields(config)}


GROUPS = {
    "settings, with the value of mbdp's default preset where no task has its own": Config,
    "settings that only --algo steve has": steve_config.Config,
    "settings that only --algo slbo has": slbo_config.Config,
}


def _add_setting(group: Any, one: Field) -> None:
    text = f"{one.metadata['help']} ({_shown(one.default)})"
    name = "--" + one.name.replace("_", "-")
    if one.type is bool:
        group.add_argument(name, action=argparse.BooleanOptionalAction, default=None, help=text)
    elif isinstance(one.default, tuple):
        group.add_argument(name, type=int, nargs=4, metavar=("FROM", "TO", "FIRST", "LAST"), help=text)
    elif choices := get_args(one.type):
        group.add_argument(name, choices=choices, help=text)
    else:
        assert isinstance(one.type, type)
        group.add_argument(name, type=one.type, metavar=one.type.__name__[0].upper(), help=text)


def run(args: argparse.Namespace) -> None:
    names = {one.name for config in GROUPS.values() for one in fields(config)}
    settings = {name: getattr(args, name) for name in sorted(names) if getattr(args, name) is not None}
    if "horizon" in settings:
        settings["horizon"] = tuple(settings["horizon"])
    if args.evaluate_every < 1 or args.episodes < 1 or not args.checkpoint_minutes >= 0:
        raise BadInput("--evaluate-every and --episodes must be at least 1, --checkpoint-minutes at least 0")
    check_installed(args.track)
    perturb = read_coefficients(args.perturb)
    from mbdp.experiments.compilation_cache import share_compilations

    share_compilations()  # before anything is compiled, because JAX looks for a cache only once
    from mbdp.experiments.run import new_run_directory, train
    from mbdp.storage.files import locked

    about = {"algo": args.algo, "preset_name": args.preset, "prefer": args.prefer, "seed": args.seed}
    agent = new_agent(args.env, perturb, **about, **settings)
    folder = new_run_directory(args.out, args.algo, args.env, args.seed)
    print(f"run directory: {folder}", flush=True)
    for remark in agent.config.remarks:
        print(f"note: {remark}", flush=True)
    with locked(folder):
        train(
            agent,
            folder,
            evaluate_every=args.evaluate_every,
            episodes=args.episodes,
            checkpoint_minutes=args.checkpoint_minutes,
            quiet=args.quiet,
            track=args.track,
            perturb=perturb,
        )
    print(f"done: policy, metrics and {folder / 'learning_curve.png'}; next: mbdp evaluate {folder}", flush=True)


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return " ".join(map(str, default))
    return "nan" if isinstance(default, float) and math.isnan(default) else str(default)
