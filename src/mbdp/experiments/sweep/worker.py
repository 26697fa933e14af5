"""One run of a sweep, in a process of its own: `python -m mbdp.experiments.sweep.worker`, started by `start_run`."""

import json
import os
import platform
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.compilation_cache import share_compilations
from mbdp.experiments.resume_command import go_on
from mbdp.experiments.run import train
from mbdp.experiments.sweep import state
from mbdp.experiments.sweep.process import follow_parent, received, start, take_a_core
from mbdp.experiments.sweep.settings import keywords
from mbdp.experiments.sweep.spec import PlannedRun
from mbdp.experiments.training_world import new_agent, world_of_words
from mbdp.experiments.versions import versions
from mbdp.storage.files import remove_partials, replace_file
from mbdp.types import BadInput

IN_USE = 75  # exit code: another process has the run


def start_run(run: PlannedRun) -> subprocess.Popen[str]:
    """Begin a run, or go on with it, in a process of its own that prints into the run's folder."""
    run.folder.mkdir(parents=True, exist_ok=True)
    with (run.folder / state.OUTPUT).open("a") as output:
        return start(__name__, vars(run) | {"folder": str(run.folder)}, stdout=output, stderr=subprocess.STDOUT)


def main() -> int:
    """The exit code is that of `mbdp train`, or IN_USE; the last error stays in the run's folder."""
    asked = received()
    run = PlannedRun(**asked | {"folder": Path(asked["folder"])})
    core = take_a_core()
    follow_parent()
    try:
        carry_out(run)
    except state.InUse:
        return IN_USE
    except KeyboardInterrupt as error:
        return 128 + int(error.args[0] if error.args else signal.SIGINT)
    except Exception as error:
        traceback.print_exc()
        line = str(error) if isinstance(error, BadInput) else f"{type(error).__name__}: {error}"
        state.note_error(run.folder, line)
        return 2 if isinstance(error, BadInput) else 1
    finally:
        if core:
            core.close()
    return 0


def carry_out(run: PlannedRun) -> None:
    """Take all steps that are left of a run, unless another process does or did."""
    with state.held(run.folder):
        if state.is_finished(run.folder):
            return
        state.check_request(run)
        (run.folder / state.ERROR).unlink(missing_ok=True)
        _write(run.folder / state.REQUEST, run.request)
        with (run.folder / state.ATTEMPTS).open("a") as attempts:
            began = {"step": state.saved_step(run.folder), "commit": versions()["commit"]}
            attempts.write(json.dumps(began | _here_and_now()) + "\n")
        share_compilations()
        _train(run.folder, **run.request)
        _write(run.folder / state.FINISHED, {"step": state.saved_step(run.folder)} | _here_and_now())


def _train(
    folder: Path,
    *,
    env: str,
    algo: str,
    seed: int,
    preset: str,
    prefer: str,
    settings: dict[str, Any],
    schedule: dict[str, Any],
    termination: str = "",
    **world: Any,
) -> None:
    if checkpoints_of(folder):
        # An id with a colon imports a module: that the spec may do so was allowed on the command line.
        go_on(folder, None, env if ":" in env else None, quiet=True)
        return
    remove_partials(folder / "checkpoints")  # of an attempt that died before its first checkpoint
    about = {"algo": algo, "preset_name": preset, "prefer": prefer or None, "seed": seed}
    agent = new_agent(env, world_of_words(world), termination=termination, **about, **keywords(settings))
    train(agent, folder, **schedule, quiet=True, world=world_of_words(world))


def _here_and_now() -> dict[str, object]:
    return {"time": time.time(), "host": platform.node(), "pid": os.getpid()}


def _write(file: Path, content: dict) -> None:
    replace_file(file, json.dumps(content, indent=1).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
