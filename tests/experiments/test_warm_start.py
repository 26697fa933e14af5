"""`mbdp train --data`: a run that begins with what another one gathered."""

import json
from pathlib import Path

import numpy as np
import pytest

from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.cli import main
from mbdp.experiments.record import cut_metrics
from tests.experiments.test_commands import TRAIN, metrics

SHORT = ["--data-steps", "40", "--steps", "30", "--evaluate-every", "15"]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    assert main([*TRAIN, "--out", str(out / "first")]) == 0
    first = str(out / "first" / "mbdp" / "mbdp-PointMass-v0_0")
    assert main([*TRAIN, *SHORT, "--data", first, "--out", str(out / "second")]) == 0
    return out


def test_the_curve_begins_with_what_the_data_was_worth(out):
    run = out / "second" / "mbdp" / "mbdp-PointMass-v0_0"
    with np.load(run / "evaluations.npz") as stored:
        assert stored["timesteps"].tolist() == [0, 15, 30]
    lines = metrics(run)
    assert [line["data/step"] for line in lines if "data/step" in line] == [1, 21, 40]
    assert json.loads((run / "config.json").read_text())["data"].endswith("step_000000100.mbdp")


def test_such_a_run_resumes_for_longer(out, capsys):
    run = out / "second" / "mbdp" / "mbdp-PointMass-v0_0"
    assert main(["resume", str(run), "--steps", "40"]) == 0
    assert "going on from step 30 of 40" in capsys.readouterr().out


def test_lines_after_a_checkpoint_within_the_data_are_dropped(tmp_path):
    file = tmp_path / "metrics.jsonl"
    lines = [{"step": 0, "data/step": 1}, {"step": 0, "data/step": 21}, {"step": 0, "data/step": 40}, {"step": 15}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    cut_metrics(file, 0, data_step=25)
    assert [json.loads(line) for line in file.read_text().splitlines()] == lines[:2]


def test_slbo_refuses_data_with_one_line(out, capsys):
    first = str(out / "first" / "mbdp" / "mbdp-PointMass-v0_0")
    assert main(["train", POINT_MASS, "--algo", "slbo", "--data", first, "--out", str(out / "third")]) == 2
    assert "slbo cannot start from data" in capsys.readouterr().err
