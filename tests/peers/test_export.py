"""Exported policies: they act as the run does, and nothing is overwritten or left behind half done."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from mbdp.experiments.cli import main
from mbdp.policies import export
from mbdp.policies.export import export_onnx
from mbdp.policies.foreign import open_policy
from mbdp.types import BadInput
from tests.policies.test_policy import make_policy

pytestmark = pytest.mark.filterwarnings("default")  # onnx warns of affairs of its own
ROOT = Path(__file__).parents[2]
NOTHING = np.zeros((0, 11))


def make_run(folder, env="InvertedPendulum-v5", sizes=(4, 32, 1)):
    policy = make_policy(sizes, low=-3.0, high=3.0)
    object.__setattr__(policy, "env", env)
    policy.save(folder)
    return str(folder)


@pytest.mark.parametrize("hidden", ["relu", "tanh", "silu"])
@pytest.mark.parametrize("output", ["tanh", "clip"])
def test_every_kind_of_policy_acts_from_its_file_as_before(tmp_path, hidden, output):
    policy = make_policy(hidden=hidden, output=output, low=-300.0, high=100.0)
    observations = np.random.default_rng(0).normal(3, 2, size=(500, 11))
    assert export_onnx(policy, tmp_path / "p.onnx", observations) <= 1e-5
    difference = np.abs(open_policy(tmp_path / "p.onnx")(observations) - policy(observations))
    assert difference.max() / 200 <= 1e-5


def test_the_file_is_sound_onnx_and_says_what_it_is(tmp_path, capsys):
    assert main(["export", make_run(tmp_path / "run"), str(tmp_path / "p.onnx")]) == 0
    assert "observations of an episode; largest difference" in capsys.readouterr().out
    onnx.checker.check_model(onnx.load(tmp_path / "p.onnx"), full_check=True)
    words = onnxruntime.InferenceSession(tmp_path / "p.onnx").get_modelmeta().custom_metadata_map
    assert words == {
        "mbdp": export.version("mbdp"),
        "env": "InvertedPendulum-v5",
        "algo": "mbdp",
        "seed": "0",
        "observation_size": "4",
        "action_size": "1",
    }


def test_robustness_of_the_file_is_that_of_the_run(tmp_path):
    run, file = make_run(tmp_path / "run"), str(tmp_path / "p.onnx")
    assert main(["export", run, file]) == 0
    tables = []
    for policy in (run, file):
        options = ["--grid", "0.8,1,1.2", "--episodes", "2", "--workers", "1", "--out", str(tmp_path / "out")]
        assert main(["robustness", policy, *options]) == 0
        tables.append(json.loads((tmp_path / "out" / "table.json").read_text()))
    of_run, of_file = (table["methods"]["mbdp"] | {"policies": None} for table in tables)
    assert of_run.pop("nominal")["value"] == pytest.approx(of_file.pop("nominal")["value"], rel=1e-6)
    assert of_run["grid_mean"]["value"] == pytest.approx(of_file["grid_mean"]["value"], rel=1e-6)
    assert tables[0]["env"] == tables[1]["env"]


def test_an_environment_that_is_not_at_hand_is_said(tmp_path, capsys):
    run = make_run(tmp_path / "run", env="my_module:MyEnv-v0")
    assert main(["export", run, str(tmp_path / "p.onnx")]) == 0
    printed = capsys.readouterr().out
    assert "note: " in printed
    assert "random observations only" in printed


@pytest.mark.parametrize(
    ("run", "file", "message"),
    [
        ("run", "there.onnx", "exists, and nothing is overwritten"),
        ("run", "p.pt", "must end in .onnx"),
        ("run", "no/p.onnx", "there is no folder"),
        ("none", "p.onnx", "No such file"),
    ],
)
def test_bad_input_is_one_line_and_changes_no_file(tmp_path, capsys, run, file, message):
    make_run(tmp_path / "run")
    (tmp_path / "there.onnx").write_bytes(b"mine")
    before = sorted(tmp_path.rglob("*"))
    assert main(["export", str(tmp_path / run), str(tmp_path / file)]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "there.onnx").read_bytes() == b"mine"


def test_a_file_that_acts_otherwise_is_not_left_behind(tmp_path, monkeypatch):
    right, wrong = make_policy(), make_policy(seed=1)
    build = export._model
    monkeypatch.setattr(export, "_model", lambda policy: build(wrong))
    with pytest.raises(BadInput, match="its actions differ by"):
        export_onnx(right, tmp_path / "p.onnx", NOTHING)
    assert list(tmp_path.iterdir()) == []


def test_the_example_runs_with_numpy_and_onnxruntime_alone(tmp_path):
    file, example = tmp_path / "p.onnx", ROOT / "examples" / "run_exported_policy.py"
    policy = make_policy()
    export_onnx(policy, file, NOTHING)
    done = subprocess.run([sys.executable, str(example), str(file)], capture_output=True, text=True, check=True)
    assert "a policy for Hopper-v5 by mbdp" in done.stdout
    assert f"action {policy(np.zeros((1, 11)))[0]}"[:12] in done.stdout
    imported = {line.split()[1] for line in example.read_text().splitlines() if line.startswith("import ")}
    assert imported == {"sys", "time", "numpy", "onnxruntime"}
