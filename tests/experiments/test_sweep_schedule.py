"""The order and the limits of a sweep, with processes that are only imagined."""

import os
import signal
from pathlib import Path

import pytest

from mbdp.experiments.sweep import process, schedule, state
from mbdp.experiments.sweep.spec import PlannedRun
from mbdp.experiments.sweep.view import View


class Imagined:
    """A place where each process ends at once, with the exit codes that are given for its run, then with 0."""

    def __init__(self, codes: dict[str, list[int]], at_a_time: int = 1):
        self.codes, self.at_a_time = codes, at_a_time
        self.started: list[str] = []

    def slots(self) -> int:
        return self.at_a_time

    def start(self, run: PlannedRun) -> str:
        self.started.append(run.name)
        return run.name

    def exit_code(self, job: str) -> int:
        codes = self.codes.get(job, [])
        return codes.pop(0) if codes else 0

    def stop(self, jobs: list[str], number: int) -> None:
        raise AssertionError("nobody asked for it")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(schedule, "ASK_AGAIN", 0.0)


def runs(folder: Path, count: int) -> list[PlannedRun]:
    made = [PlannedRun(str(i), folder / str(i), 100, {}) for i in range(count)]
    for run in made:
        run.folder.mkdir()
    return made


def failed(imagined: Imagined, made: list[PlannedRun]) -> list[str]:
    return [run.name for run in schedule.carry_out_all(made, imagined, View(made, finished=0))]


def test_runs_are_started_in_order_and_a_killed_one_comes_next(tmp_path):
    imagined = Imagined({"1": [-signal.SIGKILL, 128 + signal.SIGTERM]})
    assert failed(imagined, runs(tmp_path, 3)) == []
    assert imagined.started == ["0", "1", "1", "1", "2"]


def test_a_run_that_fails_is_tried_once(tmp_path):
    imagined = Imagined({"0": [2], "1": [1]}, at_a_time=2)
    assert failed(imagined, runs(tmp_path, 3)) == ["0", "1"]
    assert imagined.started == ["0", "1", "2"]


def test_a_run_that_is_killed_again_and_again_without_progress_fails(tmp_path, capsys):
    made = runs(tmp_path, 2)
    imagined = Imagined({"0": [-signal.SIGKILL] * 1000})
    assert failed(imagined, made) == ["0"]
    assert imagined.started == ["0"] * schedule.MOST_DEATHS + ["1"]
    assert "killed by SIGKILL 10 times without progress" in state.error_of(made[0].folder)


def test_a_run_that_another_process_has_is_left_to_it_until_it_is_free(tmp_path):
    imagined = Imagined({"0": [schedule.IN_USE, schedule.IN_USE]})
    assert failed(imagined, runs(tmp_path, 2)) == []
    assert imagined.started == ["0", "1", "0", "0"]


def test_a_run_that_another_sweep_has_finished_is_not_started(tmp_path, capsys):
    made = runs(tmp_path, 2)
    view = View(made, finished=0)
    view.say = lambda line: (made[1].folder / state.FINISHED).touch()
    imagined = Imagined({})
    schedule.carry_out_all(made, imagined, view)
    assert imagined.started == ["0"]


def test_a_process_takes_a_core_that_no_other_has(tmp_path, monkeypatch):
    taken: list[set[int]] = []
    monkeypatch.setattr(process.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: taken.append(cores), raising=False)
    first, second, third = (process.take_a_core() for _ in range(3))
    assert first is not None
    assert second is not None
    assert third is None
    assert taken[:2] == [{3}, {5}]
    assert len(taken[2]) == 1  # shared, but one
    first.close()
    again = process.take_a_core()
    assert taken[3] == {3}
    for stream in (second, again):
        stream and stream.close()
