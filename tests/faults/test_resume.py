"""`mbdp resume`: what an interrupted run leaves in the end is what an uninterrupted one leaves."""

import json
import os

import gymnasium
import pytest

from mbdp import MBDP
from mbdp.envs.toy import PointMass
from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.cli import main
from tests.faults.runs import metrics, remains, start_and_die, train

MUJOCO = "InvertedPendulum-v5"


@pytest.fixture
def own_id():
    """Registers an environment of the user's own."""

    def register(make):
        gymnasium.register("Own-v0", make, max_episode_steps=50)
        return "Own-v0"

    yield register
    del gymnasium.registry["Own-v0"]


@pytest.mark.parametrize(("dies", "saved"), [(20, []), (41, []), (62, [61]), (95, [70, 85]), (100, [90])])
def test_a_run_that_died_goes_on_to_the_same_end(whole, tmp_path, monkeypatch, dies, saved):
    run = start_and_die(monkeypatch, tmp_path, dies, saved)
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(whole)


@pytest.mark.parametrize("algo", ["mbpo", "sac", "alpha-only", "beta-only", "no-dropout", "steve", "slbo"])
def test_every_method_goes_on_to_the_same_end(tmp_path, monkeypatch, algo):
    whole = train(tmp_path / "whole", "--algo", algo)
    run = start_and_die(monkeypatch, tmp_path / "cut", 88, [73], options=("--algo", algo))
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(whole)


@pytest.mark.parametrize(("algo", "step"), [("mbdp", 60), ("steve", 60), ("slbo", 59)])
def test_a_run_that_died_between_the_pieces_of_a_step_goes_on_to_the_same_end(tmp_path, monkeypatch, algo, step):
    whole = train(tmp_path / "whole", "--algo", algo)
    run = start_and_die(monkeypatch, tmp_path / "cut", step, [step], acted=True, options=("--algo", algo))
    assert MBDP.load(checkpoints_of(run)[-1]).learner.acted
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(whole)


def test_a_simulator_is_brought_back_in_the_middle_of_an_episode(tmp_path, monkeypatch):
    whole = train(tmp_path / "whole", env=MUJOCO)
    run = start_and_die(monkeypatch, tmp_path / "cut", 97, [93], env=MUJOCO)
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(whole)


def test_an_episode_that_training_cuts_is_cut_at_the_same_step(tmp_path, monkeypatch):
    options = ("--cut-episodes", "7")
    whole = train(tmp_path / "whole", *options)
    run = start_and_die(monkeypatch, tmp_path / "cut", 88, [73], options=options)
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(whole)


def test_an_environment_of_ones_own_is_brought_back(tmp_path, monkeypatch, own_id):
    whole = train(tmp_path / "whole", env=own_id(PointMass))
    run = start_and_die(monkeypatch, tmp_path / "cut", 88, [73], env="Own-v0")
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(whole)


def test_an_environment_whose_id_imports_a_module_is_given_again(tmp_path, monkeypatch, own_id):
    (tmp_path / "module_of_ones_own.py").write_text(f"import {PointMass.__module__}\n")
    monkeypatch.syspath_prepend(tmp_path)
    own_id(PointMass)
    env = "module_of_ones_own:Own-v0"
    whole = train(tmp_path / "whole", env=env)
    run = start_and_die(monkeypatch, tmp_path / "cut", 88, [73], env=env)
    assert main(["resume", str(run)]) == 2
    assert main(["resume", str(run), "--env", env]) == 0
    assert remains(run) == remains(whole)


def test_an_environment_that_does_not_repeat_itself_begins_a_new_episode_which_is_said(
    tmp_path, monkeypatch, own_id, capsys
):
    class Dice(PointMass):
        """Its seed has no meaning."""

        def reset(self, *, seed=None, options=None):
            return super().reset(seed=int.from_bytes(os.urandom(4)), options=options)

    run = start_and_die(monkeypatch, tmp_path, 88, [73], env=own_id(Dice))
    assert main(["resume", str(run)]) == 0
    said = "the environment did not repeat the interrupted episode; a new one begins, so the run differs from there"
    assert said in capsys.readouterr().out
    assert metrics(run)[-1]["step"] == 100


def test_a_run_that_dies_twice_goes_on_to_the_same_end(whole, tmp_path, monkeypatch):
    run = start_and_die(monkeypatch, tmp_path, 64, [62])
    assert main(["resume", str(run), "--steps", "80"]) == 0
    assert main(["resume", str(run), "--steps", "100"]) == 0
    lines = [line for line in metrics(run) if line["step"] != 80]  # the end of the shorter run was evaluated too
    assert lines == metrics(whole)
    assert remains(run)["tensors"].keys() == remains(whole)["tensors"].keys()
    assert remains(run)["policy"] == remains(whole)["policy"]


def test_a_torn_last_line_of_the_metrics_is_written_anew(whole, tmp_path, monkeypatch):
    run = start_and_die(monkeypatch, tmp_path, 64, [62])
    file = run / "metrics.jsonl"
    file.write_bytes(file.read_bytes() + b'{"step": 81, "model/bi')
    assert main(["resume", str(run)]) == 0
    assert metrics(run) == metrics(whole)


def test_a_finished_run_says_so_and_stays_as_it_is(finished, capsys):
    before = remains(finished)
    assert main(["resume", str(finished)]) == 0
    assert "the run is finished: all 100 steps were done before; --steps N adds more" in capsys.readouterr().out
    assert remains(finished) == before


def test_a_finished_run_that_lost_its_curve_gets_it_back(finished):
    (finished / "learning_curve.png").unlink()
    assert main(["resume", str(finished)]) == 0
    assert (finished / "learning_curve.png").exists()


def test_other_versions_are_named(finished, capsys):
    file = finished / "versions.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"jax": "0.0.1"}))
    assert main(["resume", str(finished)]) == 0
    assert "may differ from an uninterrupted run: jax 0.0.1 -> " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["/nowhere"], "/nowhere: there is no such run directory"),
        (["RUN", "--steps", "50"], "--steps must be at least 100, where the run stands; it is 50"),
        (["RUN", "--env", "Hopper-v5"], "but the environment has Spec"),
        ([], "required: RUN"),
    ],
)
def test_what_cannot_be_resumed_is_one_line(finished, capsys, arguments, message):
    assert main(["resume", *(str(finished) if word == "RUN" else word for word in arguments)]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
