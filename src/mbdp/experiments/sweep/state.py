"""How far a run of a sweep is, as its folder tells: whoever looks, from whichever machine, sees the same."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from filelock import lock_descriptor

from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.sweep.spec import PlannedRun
from mbdp.storage.files import locked, replace_file
from mbdp.types import BadInput

# Beside the files of every run directory, a folder of a sweep has:
REQUEST = "request.json"  # what the spec asks of the run
ATTEMPTS = "attempts.jsonl"  # one line for each process that began it or went on with it, and from which env step
FINISHED = "finished.json"  # the last file that is written
ERROR = "error.txt"  # why the last attempt failed, in one line
OUTPUT = "output.log"  # all that the attempts printed

TAIL = 50_000  # bytes of metrics.jsonl that are read


class State(NamedTuple):
    """One run: what it is doing, how far it is, its last evaluation, how long it will take, and what went wrong."""

    kind: Literal["finished", "running", "failed", "interrupted", "waiting"]
    step: int = 0
    mean_return: float | None = None
    seconds_left: float | None = None
    error: str = ""


class InUse(Exception):
    """Another process has this run."""


def state_of(run: PlannedRun) -> State:
    """The state of a run, from its folder alone."""
    step, mean_return, seconds_left = progress_of(run)
    if is_finished(run.folder):
        return State("finished", step, mean_return)
    if in_use(run.folder):
        return State("running", step, mean_return, seconds_left)
    if error := error_of(run.folder):
        return State("failed", step, mean_return, error=error)
    return State("interrupted" if checkpoints_of(run.folder) else "waiting", step, mean_return)


def is_finished(folder: Path) -> bool:
    """Whether the run has taken all its steps, and everything that it leaves behind is on the disk."""
    return (folder / FINISHED).exists()


def saved_step(folder: Path) -> int:
    """The env step of the newest checkpoint; 0 if there is none."""
    return max((int(file.stem.removeprefix("step_")) for file in checkpoints_of(folder)), default=0)


def error_of(folder: Path) -> str:
    """Why the last attempt failed, if it did."""
    try:
        return (folder / ERROR).read_text(errors="replace").strip()
    except OSError:
        return ""


def note_error(folder: Path, text: str) -> None:
    """Keep an error in the run's folder, as one line."""
    replace_file(folder / ERROR, " ".join(text.split()).encode() + b"\n")


def progress_of(run: PlannedRun) -> tuple[int, float | None, float | None]:
    """Env steps, the mean return of the last evaluation, and the seconds left, from the end of metrics.jsonl."""
    lines = list(_last_lines(run.folder / "metrics.jsonl"))
    returns = [line["eval/mean_reward"] for line in lines if "eval/mean_reward" in line]
    step = lines[-1]["step"] if lines else 0
    times = [(line["step"], line["time/elapsed"]) for line in lines if "time/elapsed" in line]
    seconds_left = None
    if times and times[-1][0] > times[0][0]:
        (first, began), (last, now) = times[0], times[-1]
        seconds_left = (run.steps - last) * (now - began) / (last - first)
    return step, returns[-1] if returns else None, seconds_left


def _last_lines(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - TAIL))
            content = stream.read()
    except OSError:
        return
    for line in content.splitlines():
        try:
            parsed = json.loads(line)
        except ValueError:
            continue  # half of a line, at either end
        if isinstance(parsed, dict) and isinstance(parsed.get("step"), int):
            yield parsed


def check_request(run: PlannedRun) -> None:
    """Refuse a folder that holds anything else than this run."""
    try:
        before = json.loads((run.folder / REQUEST).read_text())
    except (FileNotFoundError, NotADirectoryError):
        if (run.folder / "config.json").exists():
            raise BadInput(f"{run.folder} holds a run of no sweep: change out or name in the spec") from None
        return
    except (OSError, ValueError) as error:
        raise BadInput(f"{run.folder / REQUEST} cannot be read: {error}") from None
    was, now = (json.dumps(request, sort_keys=True) for request in (before, run.request))
    if was != now:
        raise BadInput(f"{run.folder} was begun with other settings, {was}; the spec says {now}: change out or name")


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The run directory's lock; `InUse` if another process has it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder))
        except BadInput:
            if (folder / ".lock").exists():
                raise InUse from None
            raise
        yield


def in_use(folder: Path) -> bool:
    """Whether a process has the lock; only asked, so that looking at a sweep writes nothing."""
    try:
        with (folder / ".lock").open("r+") as stream:
            return not lock_descriptor(stream.fileno(), blocking=False)
    except OSError:
        return False
