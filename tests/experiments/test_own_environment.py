"""An environment in a module of the working directory: trained, evaluated, and refused if it is broken."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.cli import main
from tests.experiments.own_carts import GROWING
from tests.experiments.test_commands import QUICK, metrics
from tests.policies.test_policy import make_policy

MODULE = """
import gymnasium
import numpy as np
from mbdp.envs.toy import PointMass

class InParts(PointMass):
    number = gymnasium.spaces.Box(-10, 10, (1,))
    observation_space = gymnasium.spaces.Dict({"place": number, "speed": number})
    action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.parts(), {}

    def step(self, action):
        _, *rest = super().step(action / 2)
        return self.parts(), *rest

    def parts(self):
        return {"place": np.array([self.position], np.float32), "speed": np.array([self.velocity], np.float32)}

class Old(PointMass):
    def step(self, action):
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, info

class OldReset(PointMass):
    def reset(self, **kwargs):
        return super().reset(**kwargs)[0]

class Short(PointMass):
    def reset(self, **kwargs):
        return super().reset(**kwargs)

    def step(self, action):
        observation, *rest = super().step(action)
        return observation[:1], *rest

gymnasium.register("OldReset-v0", OldReset)
gymnasium.register("Short-v0", Short)
gymnasium.register("InParts-v0", InParts, max_episode_steps=50)
gymnasium.register("Old-v0", Old, max_episode_steps=50, disable_env_checker=True)
"""
ENV = "my_module:InParts-v0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("work")
    (place / "my_module.py").write_text(MODULE)
    (place / "broken_module.py").write_text("gymnasium.register('Nothing-v0')")
    wide, flat = np.zeros((150, 3)), np.zeros(150)
    columns = {"actions": flat, "rewards": flat, "dones": flat}
    np.savez(place / "wide.npz", observations=wide, next_observations=wide, allow_pickle=False, **columns)
    return place


def mbdp(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """The console script, which does not have the working directory in its path."""
    script = Path(sys.executable).with_name("mbdp")
    return subprocess.run([script, *arguments], cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def trained(folder: Path) -> subprocess.CompletedProcess:
    return mbdp(folder, "train", ENV, *QUICK, "--evaluate-every", "50", "--episodes", "2")


def test_it_is_trained_with_a_note_on_what_was_flattened(folder, trained):
    assert trained.returncode == 0, trained.stderr
    assert "note: the observations, Dict('place': Box(-10.0, 10.0, (1,), float32)" in trained.stdout
    assert "are flattened to 2 numbers" in trained.stdout
    assert "Warning" not in trained.stderr
    fits = [line for line in metrics(folder / "runs" / "mbdp" / f"{ENV}_0") if "model/kept" in line]
    assert all("model/termination_recall" in line for line in fits)


def test_the_next_command_that_is_proposed_names_the_module(trained):
    assert trained.stdout.rstrip().endswith(f"next: mbdp evaluate runs/mbdp/{ENV}_0 --env {ENV}")


def test_it_is_evaluated_if_the_user_names_the_module_again(folder, trained):
    run = f"runs/mbdp/{ENV}_0"
    refused = mbdp(folder, "evaluate", run, "--episodes", "2")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "files import no code" in refused.stderr
    assert "mean return" in mbdp(folder, "evaluate", run, "--env", ENV, "--episodes", "2").stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["my_module:Old-v0"], "Old-v0 at step 1 .* step returned 4 values: Gymnasium's step returns"),
        (["broken_module:Nothing-v0"], "cannot be made: NameError: name 'gymnasium' is not defined"),
        (["no_module:Nothing-v0"], "cannot be made: .*no_module"),
        (
            [ENV, "--data", "wide.npz"],
            r"wide.npz: observations has the shape \(150, 3\); the environment needs \(150, 2\)",
        ),
        ([ENV, "--data", "my_module.py"], "my_module.py: not a whole checkpoint of mbdp"),
        ([ENV, "--data-steps", "5"], "--data-steps needs --data"),
        ([ENV, "--steps", "0"], "steps must be a whole number, at least 1, or 0 to learn from --data alone"),
    ],
)
def test_what_is_wrong_is_one_line(folder, arguments, named, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["train", *arguments, "--out", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert re.search(named, said), said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("env", "named"),
    [
        ("OldReset-v0", "reset returned array"),
        ("Short-v0", "step returned an observation of float32 and shape (1,): the observation space is Box"),
    ],
)
def test_what_is_wrong_is_the_last_line_after_the_warnings_of_gymnasiums_checker(folder, env, named, tmp_path):
    refused = mbdp(folder, "train", f"my_module:{env}", "--out", str(tmp_path / "runs"))
    *before, last = refused.stderr.splitlines()
    assert refused.returncode == 2
    assert any("WARN" in line for line in before)
    assert not any("Traceback" in line for line in before)
    assert last.startswith(f"mbdp: {env} at step ")
    assert named in last


GREW = "step returned an observation of float32 and shape (3,): the observation space is Box"


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "--episodes", "1"],
        ["robustness", "--seed", "1000000", "--axis", "action_noise=0,1", "--episodes", "1", "--workers", "1"],
        ["robustness", "--seed", "1000000", "--axis", "action_noise=0,1", "--episodes", "1", "--workers", "2"],
    ],
)
def test_an_environment_that_breaks_off_while_a_policy_is_judged_is_one_line(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_policy((2, 8, 1)).save("run")
    name, *options = command
    assert main([name, "run", "--env", GROWING, *options]) == 2
    said = capsys.readouterr().err
    assert f"tests/Growing-v0 at step 1 of an episode: {GREW}" in said
    assert said.count("\n") == 1


def test_a_run_whose_evaluation_breaks_off_keeps_what_it_learned(tmp_path, capsys):
    assert main(["train", GROWING, *QUICK, "--evaluate-every", "30", "--episodes", "1", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert GREW in said
    assert said.count("\n") == 1
    newest = checkpoints_of(next(tmp_path.glob("mbdp/*")))[-1]
    assert newest.name == "step_000000030.mbdp"
