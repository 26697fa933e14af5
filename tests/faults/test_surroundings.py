"""The disk, the folder, the clock and other processes."""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.cli import main
from mbdp.experiments.display import Display
from mbdp.experiments.record import Record
from mbdp.storage.files import locked, replace_file
from mbdp.types import BadInput
from tests.faults.runs import OPTIONS, metrics, remains, train

HOLDER = """
import pathlib, sys, time
from mbdp.storage.files import locked
with locked(pathlib.Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(1000)
"""

# As a program does that wants the user's language: MuJoCo then reads its XML in it too.
GERMAN = """
import locale, os, sys
if os.path.exists(os.path.join(os.environ["LOCPATH"], os.environ["LC_ALL"])):
    locale.setlocale(locale.LC_ALL, "")
    assert locale.localeconv()["decimal_point"] == ","
from mbdp.experiments.cli import main
sys.exit(main(sys.argv[1:]))
"""


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_the_old_file_and_no_partial_one(tmp_path, monkeypatch):
    file = tmp_path / "file"
    replace_file(file, b"old")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(BadInput, match="No space left on device"):
        replace_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_content_is_on_the_disk_before_the_name_and_the_name_before_it_counts(tmp_path, monkeypatch):
    events, fsync, rename = [], os.fsync, Path.replace

    def note_fsync(opened):
        events.append("folder" if stat.S_ISDIR(os.fstat(opened).st_mode) else "file")
        fsync(opened)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", lambda self, target: (events.append("rename"), rename(self, target))[1])
    replace_file(tmp_path / "file", b"new")
    assert events == ["file", "rename", "folder"]


def at_step(monkeypatch, step, action):
    """Have something happen in the middle of a run."""
    show = Display.show

    def wrapper(self, progress):
        if progress.step == step and progress.outcome:  # once, if the step comes in pieces
            action()
        show(self, progress)

    monkeypatch.setattr(Display, "show", wrapper)


def test_a_disk_that_fills_up_ends_the_run_which_goes_on_when_there_is_room(whole, tmp_path, monkeypatch, capsys):
    run = tmp_path / "mbdp" / whole.name
    with monkeypatch.context() as context:
        at_step(context, 70, lambda: context.setattr(os, "fsync", full_disk))
        assert main(["train", POINT_MASS, *OPTIONS, "--checkpoint-minutes", "0", "--out", str(tmp_path)]) == 2
    assert "cannot be written (No space left on device)" in capsys.readouterr().err
    assert checkpoints_of(run)[-1].name == "step_000000069.mbdp"
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(whole)


def test_a_line_of_metrics_that_does_not_fit_on_the_disk_ends_the_run(whole, tmp_path, monkeypatch, capsys):
    run = tmp_path / "mbdp" / whole.name
    with monkeypatch.context() as context:
        at_step(context, 81, lambda: context.setattr(Record, "add", full_disk))
        assert main(["train", POINT_MASS, *OPTIONS, "--checkpoint-minutes", "0", "--out", str(tmp_path)]) == 2
    assert (
        f"No space left on device; the last checkpoint is as it was, and mbdp resume {run}" in capsys.readouterr().err
    )
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(whole)


def test_a_run_directory_that_vanishes_is_named(whole, tmp_path, monkeypatch, capsys):
    run = tmp_path / "mbdp" / whole.name
    at_step(monkeypatch, 41, lambda: shutil.rmtree(run))
    assert main(["train", POINT_MASS, *OPTIONS, "--out", str(tmp_path)]) == 2
    assert f"{run}/metrics.jsonl: No such file or directory" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to_is_named(capsys):
    assert main(["train", POINT_MASS, *OPTIONS, "--out", "/proc/runs"]) == 2
    assert "--out: /proc/runs" in capsys.readouterr().err


def test_a_run_that_became_read_only_is_named(finished, monkeypatch, capsys):
    def read_only(self, *_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "open", read_only)
    assert main(["resume", str(finished)]) == 2
    assert f"{finished} cannot be written to (Read-only file system)" in capsys.readouterr().err


def test_a_language_with_a_decimal_comma_does_not_show(tmp_path):
    language = tmp_path / "de_DE.UTF-8"
    environment = os.environ | {"LOCPATH": str(tmp_path), "LC_ALL": language.name}
    with suppress(FileNotFoundError):  # a system without it knows no languages at all
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(language)])
    command = [sys.executable, "-c", GERMAN, "train", "InvertedPendulum-v5", *OPTIONS, "--out", str(tmp_path / "komma")]
    assert subprocess.run(command, env=environment, timeout=600).returncode == 0
    whole = train(tmp_path / "point", env="InvertedPendulum-v5")
    assert remains(tmp_path / "komma" / "mbdp" / whole.name) == remains(whole)


def test_a_run_in_use_by_another_process_is_refused_and_a_dead_ones_lock_is_not(finished, capsys):
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(finished)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        assert main(["resume", str(finished)]) == 2
        assert f"is in use by another process (pid {holder.pid})" in capsys.readouterr().err
        holder.kill()
    assert (finished / ".pid").read_text() == str(holder.pid)
    with locked(finished):
        assert (finished / ".pid").read_text() == str(os.getpid())


def test_what_a_dead_process_was_writing_is_removed(finished):
    strays = [finished / ".policy.json.partial", finished / "checkpoints" / ".step_000000200.mbdp.partial"]
    for stray in strays:
        stray.write_bytes(b"half")
    assert main(["resume", str(finished)]) == 0
    assert not any(stray.exists() for stray in strays)


def test_two_checkpoints_are_kept(tmp_path):
    assert main(["train", POINT_MASS, *OPTIONS, "--checkpoint-minutes", "0", "--out", str(tmp_path)]) == 0
    names = [file.name for file in next(tmp_path.glob("*/*/checkpoints")).iterdir()]
    assert sorted(names) == ["step_000000099.mbdp", "step_000000100.mbdp"]


def test_a_clock_that_goes_back_does_not_show(whole, tmp_path, monkeypatch):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - time.monotonic())
    assert main(["train", POINT_MASS, *OPTIONS, "--out", str(tmp_path)]) == 0
    run = tmp_path / "mbdp" / whole.name
    assert metrics(run) == metrics(whole)
    elapsed = [json.loads(line)["time/elapsed"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert elapsed == sorted(elapsed)
    assert elapsed[0] >= 0
