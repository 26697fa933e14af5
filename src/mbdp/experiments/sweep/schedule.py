"""The order of runs: by priority, each until it is finished. A failure of one stops no other."""

import signal
import time
from typing import Any, Protocol

from mbdp.experiments.run import interruptible
from mbdp.experiments.sweep.process import exit_code, stop
from mbdp.experiments.sweep.spec import PlannedRun
from mbdp.experiments.sweep.state import error_of, in_use, is_finished, note_error, saved_step
from mbdp.experiments.sweep.view import View
from mbdp.experiments.sweep.worker import IN_USE, start_run

LOOK_EVERY = 0.2  # seconds
ASK_AGAIN = 5.0  # seconds until a run that another process has is tried again
MOST_DEATHS = 10  # of a run's processes, one after the other, without any progress


class Place(Protocol):
    """Where runs are carried out."""

    def slots(self) -> int: ...  # how many at a time
    def start(self, run: PlannedRun) -> Any: ...
    def exit_code(self, job: Any) -> int | None: ...  # None while it goes on; negative if a signal ended it
    def stop(self, jobs: list[Any], number: int) -> None: ...  # with a checkpoint each


class ThisMachine:
    """A process for each run, so many at a time."""

    def __init__(self, workers: int):
        self.workers = workers

    def slots(self) -> int:
        return self.workers

    def start(self, run: PlannedRun) -> Any:
        return start_run(run)

    def exit_code(self, job: Any) -> int | None:
        return exit_code(job)

    def stop(self, jobs: list[Any], number: int) -> None:
        stop(jobs, number)


def carry_out_all(runs: list[PlannedRun], place: Place, view: View) -> list[PlannedRun]:
    """Carry out all runs that are not finished; those that failed. A signal ends it, and everything can be resumed."""
    sweep = _Sweep(runs, place, view)
    with interruptible() as caught, view:
        view.say(f"{len(runs)} runs, {len(runs) - len(sweep.todo)} finished before")
        while (sweep.todo or sweep.jobs) and not caught:
            sweep.start_more()
            sweep.collect()
            view.show(list(sweep.jobs), waiting=len(sweep.todo))
            time.sleep(LOOK_EVERY)
        if caught:
            place.stop(list(sweep.jobs.values()), caught[0])
            left = f"{len(sweep.todo) + len(sweep.jobs)} of {len(runs)} runs are left"
            raise KeyboardInterrupt(caught[0], f"{left}; the same command goes on with them")
    return sweep.failed


class _Sweep:
    """The runs that wait, those that go on, and those that failed."""

    def __init__(self, runs: list[PlannedRun], place: Place, view: View):
        self.place, self.view = place, view
        self.todo = [run for run in runs if not is_finished(run.folder)]
        self.jobs: dict[PlannedRun, Any] = {}
        self.failed: list[PlannedRun] = []
        self.not_before: dict[PlannedRun, float] = {}  # runs that another process has, and when to look again
        self.deaths: dict[PlannedRun, tuple[int, int]] = {}  # env step, and how many processes did not get beyond it

    def start_more(self) -> None:
        """Start the most urgent runs for which there is room and that no other process has."""
        room = self.place.slots() - len(self.jobs)
        for run in list(self.todo):
            if room <= 0:
                break
            if time.monotonic() < self.not_before.get(run, 0.0):
                continue
            if in_use(run.folder):
                self.not_before[run] = time.monotonic() + ASK_AGAIN
                continue
            self.todo.remove(run)
            if is_finished(run.folder):  # by another sweep
                self.view.finished(run)
                continue
            try:
                self.jobs[run] = self.place.start(run)
                room -= 1
            except OSError as error:
                self._fail(run, f"{run.folder}: {error.strerror}")

    def collect(self) -> None:
        """Take note of the runs that have ended, and how."""
        for run, job in list(self.jobs.items()):
            if (code := self.place.exit_code(job)) is None:
                continue
            del self.jobs[run]
            if code == 0:
                self.view.finished(run)
            elif code == IN_USE:
                self.not_before[run] = time.monotonic() + ASK_AGAIN
                self.todo.append(run)
            elif _ended_by_signal(code) and self._may_try_again(run, code):
                self.view.say(f"killed    {run.name} ({_name_of(code)}); it goes on from its last checkpoint")
                self.todo.insert(0, run)
            else:
                self._fail(run, error_of(run.folder) or f"ended with exit code {code}")

    def _fail(self, run: PlannedRun, error: str) -> None:
        self.failed.append(run)
        self.view.failed(run, error)

    def _may_try_again(self, run: PlannedRun, code: int) -> bool:
        """A run whose process was killed is tried again, unless it gets nowhere: then something is wrong with it."""
        step = saved_step(run.folder)
        before, count = self.deaths.get(run, (step, 0))
        count = count + 1 if before == step else 1
        self.deaths[run] = step, count
        if count < MOST_DEATHS:
            return True
        note_error(run.folder, f"killed by {_name_of(code)} {count} times without progress; is there enough memory?")
        return False


def _ended_by_signal(code: int) -> bool:
    return code < 0 or code in (128 + signal.SIGINT, 128 + signal.SIGTERM)


def _name_of(code: int) -> str:
    return signal.Signals(-code if code < 0 else code - 128).name
