"""What is wrong with a video or a window is said before anything is computed."""

import sys

import pytest

from mbdp.experiments.cli import main
from tests.policies.test_policy import make_policy


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_policy((11, 8, 3)).save(tmp_path / "run")


def assert_refused(arguments, message, capsys):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


@pytest.mark.parametrize("command", ["evaluate", "robustness"])
@pytest.mark.parametrize(
    ("file", "message"), [("x.avi", "must end in .mp4 or .gif"), ("no/x.gif", "there is no folder no")]
)
def test_a_video_that_cannot_be_written_is_refused(run, capsys, command, file, message):
    assert_refused([command, "run", "--video", file], message, capsys)


def test_an_mp4_without_ffmpeg_is_refused(run, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)  # what Python does with a module that is not there
    assert_refused(["evaluate", "run", "--video", "x.mp4"], "pip install 'mbdp[video]'", capsys)


def test_a_window_without_a_screen_is_refused(run, capsys, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert_refused(["watch", "run"], "there is no screen to open a window on", capsys)


def test_a_bad_number_of_episodes_is_refused(run, capsys):
    assert_refused(["watch", "run", "--episodes", "0"], "--episodes must be at least 1", capsys)
