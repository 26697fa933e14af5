"""Films drawn without a screen: the right episode, the return in the picture, and clear words where drawing fails."""

import os
import subprocess
import sys
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.cli import main
from mbdp.experiments.drawing import failure, follow_robot, prepare_off_screen
from mbdp.experiments.evaluate import evaluate
from mbdp.experiments.film import BAR, Scene, Shot, _captioned, _draw, drawable, film
from mbdp.experiments.training_world import make_world
from mbdp.policies.policy import load_policy
from tests.policies.test_policy import make_policy

pytestmark = pytest.mark.filterwarnings("default")  # ffmpeg's reader leaves its pipes to the garbage collector
ENV = "InvertedPendulum-v5"


def save_policy(folder: Path, env: str = ENV, sizes: tuple[int, ...] = (4, 8, 1)) -> str:
    """A policy that falls within a second, in a run directory."""
    policy = make_policy(sizes, low=-3.0, high=3.0)
    object.__setattr__(policy, "env", env)
    policy.save(folder)
    return str(folder)


def frames_of(file: Path) -> list[np.ndarray]:
    if file.suffix == ".gif":
        with Image.open(file) as image:
            return [np.asarray(_at(image, i)) for i in range(getattr(image, "n_frames", 1))]
    reader = imageio_ffmpeg.read_frames(str(file))
    width, height = next(reader)["size"]
    return [np.frombuffer(raw, np.uint8).reshape(height, width, 3) for raw in reader]


def _at(image: Image.Image, frame: int) -> Image.Image:
    image.seek(frame)
    return image.convert("RGB")


@pytest.mark.parametrize("name", ["fall.mp4", "fall.gif"])
def test_evaluate_writes_a_video_that_can_be_read_back(tmp_path, name):
    run, file = save_policy(tmp_path / "run"), tmp_path / name
    assert main(["evaluate", run, "--episodes", "1", "--video", str(file)]) == 0
    frames = frames_of(file)
    assert len(frames) > 3
    assert all(frame[BAR:].std() > 5 for frame in frames)
    assert not np.array_equal(frames[0][BAR:], frames[-1][BAR:])
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ""] == [name]


def test_the_last_picture_says_the_return_of_the_episode(tmp_path):
    policy = load_policy(save_policy(tmp_path / "run"))
    result = evaluate(policy, [make_world(ENV, {})], first_seed=3)
    env = drawable(ENV, {})
    *_, last = film([Scene(policy, env, "a title", 3)], 25.0).pictures
    expected = Shot(np.zeros((480, 480, 3), np.uint8), float(result.returns[0]), int(result.lengths[0]), True)
    np.testing.assert_array_equal(last[:BAR], _captioned(expected, "a title")[:BAR])
    env.close()


def test_a_small_picture_is_enlarged_until_the_return_fits_above_it():
    small = np.random.default_rng(0).integers(255, size=(30, 101, 3), dtype=np.uint8)
    shot = Shot(small, -1234.5, 1000, True)
    shown = _captioned(shot, "")
    np.testing.assert_array_equal(shown[BAR::4, ::4], small)
    wide = _captioned(shot._replace(picture=np.zeros((30, 808, 3), np.uint8)), "")
    np.testing.assert_array_equal(shown[:BAR], wide[:BAR, 404:])


def test_the_worst_world_stands_beside_the_nominal_one(tmp_path, capsys):
    run, file = save_policy(tmp_path / "run"), tmp_path / "worst.gif"
    options = ["--axis", "gear=1,2", "--axis", "mass=0.5,1", "--episodes", "1", "--workers", "1"]
    assert main(["robustness", run, *options, "--out", str(tmp_path / "out"), "--video", str(file)]) == 0
    assert f"video          {file}: nominal beside gear" in capsys.readouterr().out
    first = frames_of(file)[0]
    assert first.shape == (480 + BAR, 960, 3)
    assert first[BAR:, :480].std() > 5
    assert first[BAR:, 480:].std() > 5


def test_the_camera_goes_with_the_robot():
    env = drawable("Hopper-v5", {})
    env.reset(seed=0)
    prepare_off_screen(env)
    follow_robot(env)
    core = env.unwrapped
    place = core.data.qpos.copy()
    place[0] = 50.0
    core.set_state(place, core.data.qvel.copy())
    picture = _draw(env).astype(int)
    brown = picture[..., 0] > picture[..., 2] + 30
    assert brown.sum() > 500
    env.close()


@pytest.mark.parametrize("way", ["egl", "osmesa"])
def test_both_ways_to_draw_without_a_screen_work_here(way):
    assert failure(way) == ""


def run_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mbdp", *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_a_machine_without_a_driver_is_told_what_to_install(tmp_path):
    run, file = save_policy(tmp_path / "run"), tmp_path / "x.gif"
    arguments = ("evaluate", run, "--episodes", "1", "--video", str(file))
    done = run_command(*arguments, MUJOCO_GL="egl", __EGL_VENDOR_LIBRARY_DIRS="/nowhere")
    assert done.returncode == 2
    assert done.stderr.startswith("mbdp: this machine cannot draw off the screen; ")
    assert "apt-get install" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not file.exists()


def test_an_environment_without_pictures_is_one_line(tmp_path, capsys):
    run = save_policy(tmp_path / "run", POINT_MASS, (2, 8, 1))
    assert main(["evaluate", run, "--episodes", "1", "--video", str(tmp_path / "x.gif")]) == 2
    printed = capsys.readouterr().err
    assert f"{POINT_MASS} cannot be filmed: " in printed
    assert printed.count("\n") == 1
