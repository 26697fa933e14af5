"""Which run is when: the most urgent first, each until it is finished, and no failure stops the others."""

import signal
import time
from collections import deque
from typing import Any, Protocol

from mbdp.experiments.run import interruptible
from mbdp.experiments.sweep.process import exit_code, stop
from mbdp.experiments.sweep.spec import Run
from mbdp.experiments.sweep.state import error_of, in_use, is_finished, note_error, saved_step
from mbdp.experiments.sweep.view import View
from mbdp.experiments.sweep.worker import IN_USE, start_run

LOOK_EVERY = 0.2  # seconds
ASK_AGAIN = 5.0  # seconds until a run that another process has is tried again
MOST_DEATHS = 10  # of a run's processes, one after the other, without any progress


class Place(Protocol):
    """Where runs are carried out."""

    def slots(self) -> int: ...  # how many at a time
    def start(self, run: Run) -> Any: ...
    def exit_code(self, job: Any) -> int | None: ...  # None while it goes on; negative if a signal ended it
    def stop(self, jobs: list[Any], number: int) -> None: ...  # with a checkpoint each


class ThisMachine:
    """A process for each run, so many at a time."""

    def __init__(self, workers: int):
        self.workers = workers

    def slots(self) -> int:
        return self.workers

    def start(self, run: Run) -> Any:
        return start_run(run)

    def exit_code(self, job: Any) -> int | None:
        return exit_code(job)

    def stop(self, jobs: list[Any], number: int) -> None:
        stop(jobs, number)


def carry_out_all(runs: list[Run], place: Place, view: View) -> list[Run]:
    """Carry out all runs that are not finished; those that failed. A signal ends it, and everything can be resumed."""
    todo = deque(run for run in runs if not is_finished(run.folder))
    jobs: dict[Run, Any] = {}
    failed: list[Run] = []
    deaths: dict[Run, tuple[int, int]] = {}  # env step, and how many processes in a row did not get beyond it
    not_before: dict[Run, float] = {}

    def next_run() -> Run | None:
        """The most urgent run that no other process has; what another sweep has finished is crossed off."""
        for run in list(todo):
            if time.monotonic() < not_before.get(run, 0.0):
                continue
            if not in_use(run.folder):
                todo.remove(run)
                if not is_finished(run.folder):
                    return run
                view.finished(run)
            not_before[run] = time.monotonic() + ASK_AGAIN
        return None

    with interruptible() as caught, view:
        view.say(f"{len(runs)} runs, {len(runs) - len(todo)} finished before")
        while (todo or jobs) and not caught:
            while len(jobs) < place.slots() and (run := next_run()):
                jobs[run] = place.start(run)
            for run, job in list(jobs.items()):
                if (code := place.exit_code(job)) is None:
                    continue
                del jobs[run]
                if code == 0:
                    view.finished(run)
                elif code == IN_USE:
                    not_before[run] = time.monotonic() + ASK_AGAIN
                    todo.append(run)
                elif _ended_by_signal(code) and _may_try_again(run, code, deaths):
                    view.say(f"killed    {run.name} ({_name_of(code)}); it goes on from its last checkpoint")
                    todo.appendleft(run)
                else:
                    failed.append(run)
                    view.failed(run, error_of(run.folder) or f"ended with exit code {code}")
            view.show(list(jobs), waiting=len(todo))
            time.sleep(LOOK_EVERY)
        if caught:
            place.stop(list(jobs.values()), caught[0])
            left = len(todo) + len(jobs)
            raise KeyboardInterrupt(
                caught[0], f"{left} of {len(runs)} runs are left; the same command goes on with them"
            )
    return failed


def _ended_by_signal(code: int) -> bool:
    return code < 0 or code in (128 + signal.SIGINT, 128 + signal.SIGTERM)


def _may_try_again(run: Run, code: int, deaths: dict[Run, tuple[int, int]]) -> bool:
    """A run whose process was killed is tried again, unless it gets nowhere: then something is wrong with it."""
    step, count = saved_step(run.folder), 1
    if run in deaths and deaths[run][0] == step:
        count += deaths[run][1]
    deaths[run] = step, count
    if count < MOST_DEATHS:
        return True
    note_error(run.folder, f"killed by {_name_of(code)} {count} times without progress; is there enough memory?")
    return False


def _name_of(code: int) -> str:
    return signal.Signals(-code if code < 0 else code - 128).name
