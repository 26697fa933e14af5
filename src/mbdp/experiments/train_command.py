"""`mbdp train`: its options are the fields of the configuration."""

import argparse
import math
import warnings
from collections.abc import Sequence
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from mbdp.baselines import slbo_config, steve_config
from mbdp.config import Config
from mbdp.experiments.trackers import add_track, check_installed
from mbdp.experiments.training_world import TERMINATIONS, add_world, new_agent, read_world
from mbdp.presets import FAMILY, PREFERENCES
from mbdp.types import BadInput

if TYPE_CHECKING:
    from mbdp.api import MBDP
    from mbdp.envs.interact import World

EXAMPLES = """\
examples:
  mbdp train InvertedPendulum-v5                       a small task
  mbdp train Hopper-v5 --prefer robust --seed 1        alpha 0.5, and no model dropout
  mbdp train Hopper-v5 --alpha 0.3 --beta 0            your own fractions
  mbdp train Hopper-v5 --algo mbpo --preset paper      close to its authors' settings
  mbdp train Hopper-v5 --randomise mass=0.8:1.2        a new world in every episode
  mbdp train my_module:MyEnv-v0                        your own, registered in my_module.py
  mbdp train Hopper-v5 --data old.npz --steps 0        offline, from data alone

The value in brackets is that of mbdp's default preset. What you do not set follows --algo, --preset and the
environment. config.json in the run directory has every value. `mbdp train --help-all` shows every option.
"""
OFFLINE = (
    "offline: no step is taken while learning, so nobody checks what the model says of states that the data has not",
    "offline: the critics' values are the model's word; only the last evaluation, in the environment, is evidence",
)
SHOWN = ("steps", "alpha", "beta")  # settings that --help shows; --help-all has them all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mbdp train ENV [options]"
    parser.epilog = EXAMPLES
    help_all = parser.add_argument("--help-all", action=HelpAll, help="show every option and exit")
    assert isinstance(help_all, HelpAll)
    parser.add_argument("env", metavar="ENV", help="Gymnasium id, for example Hopper-v5, or my_module:MyEnv-v0")
    parser.add_argument("--algo", choices=(*FAMILY, "steve", "slbo"), default="mbdp", help="the method (mbdp)")
    parser.add_argument(
        "--preset", choices=("default", "paper"), default="default", help="the set of default settings (default)"
    )
    parser.add_argument(
        "--prefer", choices=PREFERENCES, help=f"set alpha and beta: {_preferences()}; explicit ones win"
    )
    settings = {one.name: one for config in reversed(GROUPS.values()) for one in fields(config)}
    for name in SHOWN:
        _add_setting(parser, settings.pop(name))
    parser.add_argument(
        "--data",
        metavar="PATH",
        help="learn from data before the first step: a run, an .npz file, a Minari dataset or minari:ID",
    )
    parser.add_argument(
        "--envs", type=int, default=1, metavar="N", help="environments stepped at once, for slow simulators (1)"
    )
    perturb, _ = add_world(parser)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of everything random (0)")
    parser.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="folder for runs (runs)")
    parser.add_argument(
        "--evaluate-every", type=int, default=1000, metavar="N", help="env steps between two evaluations (1000)"
    )
    parser.add_argument("--episodes", type=int, default=10, metavar="N", help="episodes in each evaluation (10)")
    parser.add_argument("--quiet", action="store_true", help="print plain lines instead of a live panel")
    shown = len(parser._actions)
    parser.add_argument(
        "--checkpoint-minutes", type=float, default=5.0, metavar="X", help="minutes between two checkpoints (5)"
    )
    text = (
        "how the model knows the end of an episode: by the task's rule or learned (known where a rule is, else learned)"
    )
    parser.add_argument("--termination", choices=TERMINATIONS, default="", help=text)
    add_track(parser)
    for title, config in GROUPS.items():
        group = parser.add_argument_group(title)
        for one in fields(config):
            if settings.pop(one.name, None):
                _add_setting(group, one)
    help_all.hide([perturb, *parser._actions[shown:]])


GROUPS = {
    "more settings": Config,
    "settings that only --algo steve has": steve_config.Config,
    "settings that only --algo slbo has": slbo_config.Config,
}


class HelpAll(argparse.Action):
    """An option that prints the help with what `--help` hides."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, default=argparse.SUPPRESS, nargs=0, help=help)
        self.hidden: list[tuple[argparse.Action, str | None]] = []

    def hide(self, actions: Sequence[argparse.Action]) -> None:
        """Show these options in the long help only."""
        self.hidden = [(action, action.help) for action in actions]
        for action in actions:
            action.help = argparse.SUPPRESS

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        for action, text in self.hidden:
            action.help = text
        parser.print_help()
        parser.exit()


def _preferences() -> str:
    return "; ".join(f"{name} {of['alpha']:g} and {of['beta']:g}" for name, of in PREFERENCES.items())


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
        group.add_argument(name, type=one.type, metavar="N" if one.type is int else "X", help=text)


def run(args: argparse.Namespace) -> None:
    names = {one.name for config in GROUPS.values() for one in fields(config)}
    settings = {name: getattr(args, name) for name in sorted(names) if getattr(args, name) is not None}
    if "horizon" in settings:
        settings["horizon"] = tuple(settings["horizon"])
    if args.evaluate_every < 1 or args.episodes < 1 or not args.checkpoint_minutes >= 0:
        raise BadInput("--evaluate-every and --episodes must be at least 1, --checkpoint-minutes at least 0")
    check_installed(args.track)
    world = read_world(args.perturb, args.randomise)
    from mbdp.experiments.compilation_cache import share_compilations

    share_compilations()  # before anything is compiled, because JAX looks for a cache only once
    from mbdp.experiments.run import new_run_directory, train, what_next
    from mbdp.storage.files import locked

    about = {"algo": args.algo, "preset_name": args.preset, "prefer": args.prefer, "seed": args.seed}
    about["envs"] = args.envs
    offline = args.data is not None and settings.get("steps") == 0
    settings = {name: value for name, value in settings.items() if name != "steps" or not offline}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*are flattened to")  # said below
        agent = new_agent(args.env, world, termination=args.termination, **about, **settings)
    remarks = _warm_start(agent, args.data, offline)
    folder = new_run_directory(args.out, args.algo, args.env, args.seed)
    print(f"run directory: {folder}", flush=True)
    for remark in (*agent.config.remarks, *_remarks_on(agent.world), *remarks):
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
            world=world,
        )
    print(what_next(folder, agent.env_id), flush=True)


def _warm_start(agent: "MBDP", data: str | None, offline: bool) -> list[str]:
    """Give the agent its data, if there is any: sentences about it."""
    if data is None:
        if getattr(agent.config, "data_steps", 0):
            raise BadInput("--data-steps needs --data")
        return []
    remarks = agent.warm_start(data)
    agent.config = replace(agent.config, steps=0) if offline else agent.config
    rows, steps = len(agent.learner.d_env), agent.config.data_steps
    told = f"{rows:,} transitions of {agent.data}; {steps:,} steps' worth of learning before the first env step"
    return [*remarks, told, *(OFFLINE if offline else ())]


def _remarks_on(world: "World") -> list[str]:
    """What a user should know of how their environment is used: sentences."""
    from mbdp.envs.spaces import adaptation_of
    from mbdp.experiments.evaluate import LONGEST

    endless = f"{world.name} has no time limit: evaluations cut an episode after {LONGEST:,} steps"
    return adaptation_of(world.env) + ([endless] if world.longest_episode is None else [])


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return " ".join(map(str, default))
    return "nan" if isinstance(default, float) and math.isnan(default) else str(default)
