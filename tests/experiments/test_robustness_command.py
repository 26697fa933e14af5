import csv
import json
import zipfile

import numpy as np
import pytest

from mbdp.experiments.cli import main
from mbdp.policies.policy import Policy, load_policy
from mbdp.robustness import evaluate_grid
from tests.conftest import TINY_SLBO, TINY_STEVE

ENV = "InvertedPendulum-v5"


def save_linear(folder, gains=(0.1, 1.3, 0.1, 0.3), algo="linear", seed=0, env=ENV):
    """A controller that keeps the pendulum up in its nominal world."""
    weight, bounds = np.array(gains)[:, None], np.array([3.0])
    Policy((weight,), (np.zeros(1),), -bounds, bounds, output="clip", env=env, algo=algo, seed=seed).save(folder)
    return str(folder)


@pytest.fixture
def run(tmp_path):
    return save_linear(tmp_path / "run")


def robustness(*arguments, out):
    return main(["robustness", *map(str, arguments), "--workers", "1", "--episodes", "2", "--out", str(out)])


def read(file):
    with open(file, newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_episode_is_in_the_csv_as_the_python_function_gives_it(run, tmp_path, capsys):
    out = tmp_path / "out"
    assert robustness(run, "--mass", "0.8,1.2", "--axis", "gear=0.5:1:2", "--seed", 3, out=out) == 0
    grid = evaluate_grid(load_policy(run), ENV, {"mass": [0.8, 1.2], "gear": [0.5, 1.0]}, episodes=2, seed=3)
    rows = read(out / "episodes.csv")
    assert [float(row["return"]) for row in rows] == grid.returns.ravel().tolist()
    assert [int(row["length"]) for row in rows] == grid.lengths.ravel().tolist()
    first = {"method": "linear", "policy": run, "training_seed": "0", "protocol": "zero-shot", "mass": "0.8"}
    assert first.items() <= rows[0].items()
    assert {"gear": "1.0", "episode": "1", "reset_seed": "4", "diverged": "0"}.items() <= rows[-1].items()
    printed = capsys.readouterr().out
    for name in ("heatmap.png", "table.csv", "table.json", "episodes.csv", "versions.json"):
        assert (out / name).stat().st_size > 0
        assert str(out / name) in printed
    assert "steps/s" in printed


@pytest.mark.parametrize(("algo", "settings"), [("steve", TINY_STEVE), ("slbo", TINY_SLBO)])
def test_a_run_of_a_baseline_is_judged_like_any_other(algo, settings, tmp_path):
    options = [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    assert main(["train", ENV, "--algo", algo, "--steps", "40", *options, "--out", str(tmp_path), "--quiet"]) == 0
    run = tmp_path / algo / f"{ENV}_0"
    assert robustness(run, "--axis", "gear=1,2", out=tmp_path / "out") == 0
    grid = evaluate_grid(load_policy(run), ENV, {"gear": [1.0, 2.0]}, episodes=2, seed=0)
    rows = read(tmp_path / "out/episodes.csv")
    assert {row["method"] for row in rows} == {algo}
    assert [float(row["return"]) for row in rows] == grid.returns.ravel().tolist()


def test_training_seeds_are_grouped_and_methods_stand_side_by_side(tmp_path, capsys):
    runs = [save_linear(tmp_path / str(i), algo="ours", seed=i) for i in range(2)]
    other = save_linear(tmp_path / "x", gains=(0, 0, 0, 0))
    assert robustness(*runs, f"still={other}", "--axis", "gear=1,2", out=tmp_path / "out") == 0
    table = json.loads((tmp_path / "out/table.json").read_text())
    assert (table["protocol"], table["env"], table["episodes"]) == ("zero-shot", ENV, 2)
    assert {name: method["training_seeds"] for name, method in table["methods"].items()} == {"ours": 2, "still": 1}
    assert table["methods"]["ours"]["nominal"] == {"value": 1000.0, "low": 1000.0, "high": 1000.0}
    assert table["methods"]["still"]["nominal"]["low"] is None
    assert table["methods"]["ours"]["paper_mean"] is None
    rows = read(tmp_path / "out/table.csv")
    assert {row["protocol"] for row in rows} == {"zero-shot"}
    assert "ours (2 seeds)" in capsys.readouterr().out


def test_a_nominal_world_outside_the_grid_is_run_all_the_same(run, tmp_path):
    assert robustness(run, "--axis", "gear=0.5", out=tmp_path) == 0
    table = json.loads((tmp_path / "table.json").read_text())["methods"]["linear"]
    assert table["nominal"]["value"] == 1000.0
    assert table["retention"]["value"] == table["grid_mean"]["value"] / 1000


def test_where_friction_does_nothing_the_default_grid_says_so_and_takes_the_actuators(run, tmp_path, capsys):
    assert robustness(run, "--grid", "0.9,1", out=tmp_path) == 0
    assert "friction would change nothing" in capsys.readouterr().out
    assert json.loads((tmp_path / "table.json").read_text())["axes"] == {"mass": [0.9, 1.0], "gear": [0.9, 1.0]}


def test_the_default_grid_is_the_papers(tmp_path, capsys):
    hopper = tmp_path / "hopper"
    Policy((np.zeros((11, 3)),), (np.zeros(3),), -np.ones(3), np.ones(3), env="Hopper-v5", algo="still").save(hopper)
    assert main(["robustness", str(hopper), "--episodes", "1", "--workers", "1", "--out", str(tmp_path)]) == 0
    table = json.loads((tmp_path / "table.json").read_text())
    assert table["axes"] == {
        name: [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5] for name in ("mass", "friction")
    }
    assert table["methods"]["still"]["paper_mean"]["value"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mass", "0:1:3"], "mass must be more than 0"),
        (["--mass=-1,1"], "mass must be more than 0"),
        (["--mass", "nan"], "mass must be a finite number"),
        (["--mass", "0.5:1.5"], "LO:HI:N"),
        (["--mass", "0.5:1.5:0"], "LO:HI:N"),
        (["--mass", "0.5:1.5:1000000000"], "LO:HI:N"),
        (["--mass", "heavy"], "LO:HI:N"),
        (["--grid", "gear=1,2"], "write --axis gear=1,2"),
        (["--mass", ""], "LO:HI:N"),
        (["--mass", "1,1"], "same value twice"),
        (["--mass", "1:2:9999", "--friction", "1:2:9999"], "more than 100000 worlds"),
        (["--friction", "0.5:1.5:3"], "friction would change nothing"),
        (["--axis", "mass:nose=1"], "there is no body 'nose'; there are cart, pole"),
        (["--axis", "gravitty=1"], "did you mean 'gravity'?"),
        (["--axis", "gear"], "LO:HI:N"),
        (["--axis", "gear=1", "--axis", "gear=2"], "given twice"),
        (["--axis", "action_delay=0.5"], "whole number"),
        (["--env", "Pendulum-v1"], "not a MuJoCo environment"),
        (["--env", "Walker2d-v5", "--axis", "mass=1"], "does not fit Walker2d-v5"),
        (["--env", "Nothing-v0"], "no environment 'Nothing-v0'"),
        (["--episodes", "0"], "episodes must be"),
        (["--seed", "-1"], "seed must be"),
        (["--workers", "0"], "workers must be"),
        (["--episode", "1"], "did you mean --episodes?"),
        (["--out", "/proc/nowhere"], "cannot write there"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run, tmp_path, capsys, arguments, words):
    # What comes last counts, so the case's own arguments come after the usual ones.
    usual = ["--workers", "1", "--episodes", "1", "--out", str(tmp_path / "out")]
    assert_refused(["robustness", run, *usual, *arguments], words, capsys)


def assert_refused(arguments, words, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing", None, "no such file"),
        ("policy.txt", b"x", "a policy is a run directory"),
        ("agent.zip", b"x", "--allow-code"),
        ("label=missing.zip", None, "missing.zip: there is no such file"),
    ],
)
def test_a_path_that_is_no_policy_is_refused(tmp_path, monkeypatch, capsys, name, content, words):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert_refused(["robustness", name, "--env", ENV], words, capsys)


def test_an_empty_directory_is_refused(tmp_path, capsys):
    assert_refused(["robustness", str(tmp_path)], "policy.json: No such file", capsys)


def test_a_policy_given_twice_is_refused(run, capsys):
    assert_refused(["robustness", run, f"again={run}"], "given twice", capsys)


def test_policies_of_different_environments_need_an_env(tmp_path, capsys):
    runs = [save_linear(tmp_path / "a"), save_linear(tmp_path / "b", env="Other-v0")]
    assert_refused(["robustness", *runs], "give the environment with --env", capsys)


def test_an_environment_id_in_a_file_cannot_import_code(tmp_path, capsys):
    run = save_linear(tmp_path / "a", env="antigravity:Hopper-v5")
    assert_refused(["robustness", run], "would import code", capsys)


@pytest.mark.parametrize("data", [None, b"x", b"{}", b'{"policy_class": {"__module__": "os.path"}}', b"[" * 100_000])
def test_a_zip_that_stable_baselines_did_not_save_is_refused_before_any_loader(tmp_path, capsys, data):
    file = tmp_path / "agent.zip"
    with zipfile.ZipFile(file, "w") as archive:
        if data is not None:
            archive.writestr("data", data)
    assert_refused(["robustness", str(file), "--allow-code", "--env", ENV], "agent.zip", capsys)
