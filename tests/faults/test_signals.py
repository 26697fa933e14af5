"""Real processes, real signals."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mbdp import MBDP
from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.checkpoint_folder import checkpoint_name, checkpoints_of
from mbdp.experiments.cli import main
from mbdp.experiments.run import interruptible
from mbdp.storage.checkpoint import read_about
from tests.faults.runs import OPTIONS, remains, train

LONG = ("--steps", "400")
# Writing a file takes for ever, as soon as one called "slow" is in the working directory.
SLOW_DISK = """
import os, sys, time
fsync = os.fsync
def slow(opened):
    fsync(opened)
    if os.path.exists("slow") and os.readlink(f"/proc/self/fd/{opened}").endswith(".partial"):
        time.sleep(1000)
os.fsync = slow
from mbdp.experiments.cli import main
from mbdp.storage.checkpoint import read_about
sys.exit(main(sys.argv[1:]))
"""


def start(out: Path, *words: str, options: tuple[str, ...] = ()) -> subprocess.Popen:
    """The program in a process of its own."""
    command = [sys.executable, *(words or ("-m", "mbdp.experiments.cli"))]
    command += ["train", POINT_MASS, *OPTIONS, *LONG, "--checkpoint-minutes", "0", "--out", str(out), *options]
    return subprocess.Popen(command, cwd=out, stderr=subprocess.PIPE, text=True)


def wait_until(happened: Callable[[], object]) -> None:
    for _ in range(6000):  # generous: a busy machine compiles for minutes
        if happened():
            return
        time.sleep(0.1)
    raise TimeoutError


@pytest.fixture(scope="module")
def whole_long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("long"), *LONG)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_ended_goes_on_to_the_same_end(whole_long, tmp_path, number):
    out = tmp_path / "Läufe mit Leerzeichen"
    out.mkdir()
    run = out / "mbdp" / "mbdp-PointMass-v0_0"
    with start(out) as child:
        wait_until(lambda: (run / "metrics.jsonl").exists() and (run / "metrics.jsonl").stat().st_size > 2000)
        child.send_signal(number)
        assert child.wait(600) == (143 if number == signal.SIGTERM else -signal.SIGKILL)
        assert child.stderr is not None
        said = child.stderr.read()
    if number == signal.SIGTERM:
        assert "mbdp: interrupted SIGTERM at step" in said
        assert said.count("\n") == 1
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(whole_long)


def test_a_signal_does_not_wait_for_the_end_of_a_long_fit(tmp_path):
    run = tmp_path / "mbdp" / "mbdp-PointMass-v0_0"
    with start(tmp_path, options=("--first-fit-steps", "1000000000")) as child:
        wait_until(lambda: (file := run / "checkpoints" / checkpoint_name(40)).exists() and read_about(file)["acted"])
        child.send_signal(signal.SIGTERM)
        assert child.wait(600) == 143  # the fit alone would take days
    assert MBDP.load(checkpoints_of(run)[-1]).learner.acted


def test_a_second_signal_leaves_at_once_and_the_old_checkpoint_is_intact(tmp_path):
    run = tmp_path / "mbdp" / "mbdp-PointMass-v0_0"
    with start(tmp_path, "-c", SLOW_DISK) as child:
        wait_until(lambda: len(checkpoints_of(run)) == 2)
        (tmp_path / "slow").touch()
        wait_until(lambda: list(run.rglob(".*.partial")))
        child.send_signal(signal.SIGTERM)
        time.sleep(1)
        assert child.poll() is None  # it is still writing
        child.send_signal(signal.SIGTERM)
        assert child.wait(5) == -signal.SIGTERM
    MBDP.load(checkpoints_of(run)[-1])
    (tmp_path / "slow").unlink()
    assert main(["resume", str(run)]) == 0
    assert not list(run.rglob(".*.partial"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_next_ends_the_process(number):
    before = signal.getsignal(number)
    with interruptible() as caught:
        os.kill(os.getpid(), number)
        assert caught == [number]
        assert signal.getsignal(signal.SIGINT) == signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(number) == before
