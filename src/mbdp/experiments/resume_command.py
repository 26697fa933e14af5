"""`mbdp resume`: a run goes on exactly where its last checkpoint stood."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mbdp.experiments.trackers import add_track, check_installed
from mbdp.types import BadInput

EXAMPLES = """\
examples:
  mbdp resume runs/mbdp/Hopper-v5_0                     until the steps that it was started with
  mbdp resume runs/mbdp/Hopper-v5_0 --steps 200000      or for longer

On the same machine and versions the result is, bit for bit, that of a run that was never interrupted. The actions of
the unfinished episode are repeated to restore the simulator. If the environment does not repeat itself, a new episode
begins and a note is printed.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--steps", type=int, metavar="N", help="env steps in all (default: as it was started)")
    parser.add_argument("--env", metavar="ID", help="needed for an id that imports a module: files import no code")
    parser.add_argument("--quiet", action="store_true", help="plain lines instead of a live panel")
    add_track(parser)


def run(args: argparse.Namespace) -> None:
    if not args.run.is_dir():
        raise BadInput(f"{args.run}: there is no such run directory")
    check_installed(args.track)
    from mbdp.experiments.compilation_cache import share_compilations
    from mbdp.storage.files import locked

    share_compilations()
    with locked(args.run):
        go_on(args.run, args.steps, args.env, args.quiet, args.track)


def go_on(folder: Path, steps: int | None, env_id: str | None, quiet: bool, track: Sequence[str] = ()) -> None:
    """Take the steps that are left of a run whose folder the caller has locked."""
    from mbdp.experiments.checkpoint_folder import checkpoint_name, newest_of
    from mbdp.experiments.run import train, what_next

    agent, past, complaints = newest_of(folder, env_id)
    step, until = agent.learner.step, agent.config.steps if steps is None else steps
    finished = step == until and not agent.learner.data_left
    for complaint in complaints:
        print(f"cannot be used: {complaint}; going on from {checkpoint_name(step)} instead", flush=True)
    if until < step:
        raise BadInput(f"--steps must be at least {step}, where the run stands; it is {until}")
    agent.env_id, agent.config = env_id or agent.env_id, replace(agent.config, steps=until)
    _compare_versions(folder)
    if not agent.continued_exactly:
        print("the environment did not repeat the interrupted episode; a new one begins, so the run differs from there")
    print(f"run directory: {folder}; going on from step {step} of {until}", flush=True)
    train(agent, folder, **past["schedule"], quiet=quiet, track=track, world=past["world"], past=past)
    if finished:
        print(f"the run is finished: all {step} steps were done before; --steps N adds more")
    else:
        print(what_next(folder, agent.env_id))


def _compare_versions(folder: Path) -> None:
    from mbdp.experiments.versions import versions

    try:
        before = json.loads((folder / "versions.json").read_text())
        changed = [f"{name} {before.get(name)} -> {now}" for name, now in versions().items() if before.get(name) != now]
    except (OSError, ValueError, AttributeError):
        changed = ["versions.json cannot be read"]
    if changed:
        print(f"made with other versions, so it may differ from an uninterrupted run: {', '.join(changed)}")
