"""A window on a virtual screen, seen through the screen's own memory."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.video.test_video import save_policy

WIDTH, HEIGHT = 640, 480


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A display without a monitor, and the file in which its pixels are."""
    read, write = os.pipe()
    command = [shutil.which("Xvfb") or "Xvfb", "-displayfd", str(write), "-screen", "0", f"{WIDTH}x{HEIGHT}x24"]
    with subprocess.Popen([*command, "-fbdir", str(tmp_path)], pass_fds=[write], stderr=subprocess.DEVNULL) as server:
        os.close(write)
        with os.fdopen(read) as pipe:
            number = pipe.readline().strip()  # comes when the screen is ready
        yield f":{number}", tmp_path / "Xvfb_screen0"
        server.terminate()


def colours_on(file: Path) -> int:
    """How many the screen shows, from X's own format of window dumps: a header, a colour table, the pixels."""
    content = file.read_bytes()
    header, colours = int.from_bytes(content[:4], "big"), int.from_bytes(content[76:80], "big")
    start = header + 12 * colours
    return len(np.unique(np.frombuffer(content[start : start + 4 * WIDTH * HEIGHT], np.uint32)))


def test_watch_draws_the_policy_in_a_window_and_ends(tmp_path, screen):
    display, file = screen
    run = save_policy(tmp_path / "run")
    command = [sys.executable, "-m", "mbdp", "watch", run, "--episodes", "10"]
    environment = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"} | {"DISPLAY": display}
    colours = []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        while child.poll() is None:
            colours.append(colours_on(file))
            time.sleep(0.02)
        assert child.stdout is not None
        printed = child.stdout.read()
    assert child.returncode == 0
    assert printed.count("return") == 10
    assert max(colours) > 50


CLOSE = """
import sys
import glfw
import gymnasium
from mbdp.experiments.watch_command import close, is_closed
env = gymnasium.make("InvertedPendulum-v5", render_mode="human")
env.reset(seed=0)
viewer = env.unwrapped.mujoco_renderer.viewer
assert not is_closed(env)
if sys.argv[1] == "cross":
    glfw.set_window_should_close(viewer.window, True)
else:
    viewer._key_callback(viewer.window, glfw.KEY_ESCAPE, 0, glfw.RELEASE, 0)
assert is_closed(env)
close(env)
print("closed")
"""


@pytest.mark.parametrize("how", ["cross", "escape"])
def test_a_window_that_the_user_closes_is_noticed_and_nothing_crashes(screen, how):
    environment = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"} | {"DISPLAY": screen[0]}
    command = [sys.executable, "-c", CLOSE, how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("closed\n")


def test_a_screen_that_is_not_there_is_one_line(tmp_path):
    command = [sys.executable, "-m", "mbdp", "watch", save_policy(tmp_path / "run")]
    done = subprocess.run(command, env=os.environ | {"DISPLAY": ":987"}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no window can be opened on this screen" in done.stderr
    assert done.stderr.count("\n") == 1
