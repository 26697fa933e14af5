"""`mbdp resume`: what an interrupted run leaves in the end is what an uninterrupted one leaves."""

import json

import pytest

from mbdp.experiments.cli import main
from tests.faults.runs import metrics, remains, start_and_die, train

MUJOCO = "InvertedPendulum-v5"


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


def test_a_simulator_is_brought_back_in_the_middle_of_an_episode(tmp_path, monkeypatch):
    whole = train(tmp_path / "whole", env=MUJOCO)
    run = start_and_die(monkeypatch, tmp_path / "cut", 97, [93], env=MUJOCO)
    assert main(["resume", str(run)]) == 0
    assert remains(run) == remains(whole)


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
