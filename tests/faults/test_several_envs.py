"""Runs with `--envs`: the same promises as with one environment, in Python and on the command line."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors
from safetensors.numpy import load_file, save_file

from mbdp import MBDP
from mbdp.envs.interact import World
from mbdp.envs.tasks import make
from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.cli import main
from mbdp.storage.checkpoint import read_about, seal
from mbdp.streams import generator
from mbdp.types import BadInput
from tests.conftest import TINY
from tests.envs.slow_simulators import SLOW, Failing, short
from tests.faults.runs import remains, start_and_die, train
from tests.faults.test_signals import wait_until

SETTINGS = {name: value for name, value in TINY.items() if name != "steps"}
THREE = ("--envs", "3")


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run with three environments; not to be changed."""
    return train(tmp_path_factory.mktemp("three"), *THREE)


def test_a_run_says_how_many_envs_it_had(three):
    assert json.loads((three / "config.json").read_text())["envs"] == 3
    assert read_about(checkpoints_of(three)[-1])["world"]["envs"] == 3


def test_an_env_step_is_a_row_whatever_the_number_of_envs(three):
    agent = MBDP.load(checkpoints_of(three)[-1])
    agent.close()
    assert (agent.learner.step, len(agent.learner.d_env)) == (100, 100)
    assert agent.world.steps == 102  # 34 common steps, of which two outcomes are still to be handed out
    assert len(agent.world.waiting) == 2


@pytest.mark.parametrize(("dies", "saved"), [(20, []), (62, [61]), (95, [70, 85]), (100, [92])])
def test_a_run_that_died_in_the_middle_of_a_common_step_goes_on_to_the_same_end(
    three, tmp_path, monkeypatch, dies, saved
):
    run = start_and_die(monkeypatch, tmp_path, dies, saved, options=THREE)
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(three)


@pytest.mark.parametrize(
    ("env", "options"),
    [
        (POINT_MASS, ("--algo", "sac")),
        (POINT_MASS, ("--algo", "steve")),
        ("InvertedPendulum-v5", ("--perturb", "mass=3", "--randomise", "gear=0.8:1.2")),
    ],
)
def test_other_methods_and_worlds_go_on_to_the_same_end(tmp_path, monkeypatch, env, options):
    whole = train(tmp_path / "whole", *options, *THREE, env=env)
    run = start_and_die(monkeypatch, tmp_path / "cut", 88, [73], options=(*options, *THREE), env=env)
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(whole)


def test_an_id_that_imports_a_module_works_and_is_given_again(tmp_path):
    run = train(tmp_path, *THREE, "--steps", "20", env=SLOW)
    assert main(["resume", str(run), "--steps", "25"]) == 2
    assert main(["resume", str(run), "--steps", "25", "--env", SLOW]) == 0


def test_another_number_of_envs_than_the_checkpoints_arrays_have_is_refused(tmp_path):
    agent, file = MBDP(POINT_MASS, envs=2, **SETTINGS).learn(9), tmp_path / "agent.mbdp"
    agent.save(file)
    agent.close()
    with safetensors.safe_open(file, framework="numpy") as opened:
        about = json.loads(opened.metadata()["mbdp"])
    about["world"]["envs"] = 3
    save_file(load_file(file), file, seal(about))
    with pytest.raises(BadInput, match=r"agent\.mbdp: the arrays of its world are not those of 3 envs"):
        MBDP.load(file)


def test_an_agent_of_several_envs_asks_for_what_makes_them(tmp_path):
    agent = MBDP(short, envs=2, **SETTINGS).learn(5)
    agent.close()
    agent.save(tmp_path / "agent.mbdp")
    with pytest.raises(BadInput, match="pass its id, its class or a function"):
        MBDP.load(tmp_path / "agent.mbdp", env=short())
    again = MBDP.load(tmp_path / "agent.mbdp", env=short)
    again.close()
    assert again.continued_exactly


def test_one_env_draws_the_actions_that_it_always_drew():
    agent, world = MBDP(POINT_MASS, seed=3, envs=1, **SETTINGS).learn(30), World(make(POINT_MASS), 3)
    rows = [world.step(generator(3, "action", step).uniform(-1, 1, 1)).rows for step in range(30)]
    np.testing.assert_array_equal(agent.learner.d_env.newest(30), np.concatenate(rows))


def test_slbo_is_refused_because_it_needs_steps_in_a_row(tmp_path, capsys):
    assert main(["train", POINT_MASS, "--algo", "slbo", *THREE, "--out", str(tmp_path)]) == 2
    assert "envs must be 1" in capsys.readouterr().err


def test_no_envs_are_refused_in_one_line(tmp_path, capsys):
    assert main(["train", POINT_MASS, "--envs", "0", "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert "envs must be a whole number from 1 to 256; it is 0" in printed
    assert printed.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_simulator_that_dies_leaves_what_was_learned_until_then():
    agent = MBDP(lambda: short(Failing, "die"), envs=3, **SETTINGS)
    with pytest.raises(BadInput, match="ended by signal 9"):
        agent.learn(30)
    assert (agent.learner.step, len(agent.learner.d_env)) == (12, 12)


def children_of(process: int) -> list[Path]:
    return [Path("/proc") / one for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.parametrize(
    ("number", "to_all", "code"),
    [(signal.SIGINT, True, 130), (signal.SIGTERM, True, 143), (signal.SIGKILL, False, -signal.SIGKILL)],
)
def test_a_run_that_is_ended_leaves_no_process_and_can_be_resumed(tmp_path, number, to_all, code):
    settings = {"steps": 10**5, "random-steps": 10**5, "evaluate-every": 10**5, "checkpoint-minutes": 0, "envs": 3}
    options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "mbdp.experiments.cli", "train", SLOW, *options, "--quiet"]
    with subprocess.Popen(
        [*command, "--out", str(tmp_path)], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        run = tmp_path / "mbdp" / f"{SLOW.replace('/', '-')}_0"
        wait_until(lambda: checkpoints_of(run) and int(checkpoints_of(run)[-1].stem[5:]) > 20)
        processes = children_of(child.pid)
        (os.killpg if to_all else os.kill)(child.pid, number)
        assert child.wait(60) == code
        assert child.stderr is not None
        said = child.stderr.read()
    wait_until(lambda: not any(process.exists() for process in processes))
    assert len(processes) >= 3
    assert "Traceback" not in said
    assert said.count("\n") == 1 or number == signal.SIGKILL
    steps = int(checkpoints_of(run)[-1].stem[5:]) + 4
    assert main(["resume", str(run), "--env", SLOW, "--steps", str(steps), "--quiet"]) == 0
