"""The command line on an environment that declares its own parameters."""

import json

import numpy as np
import pytest

from mbdp.analysis.robustness_report import Result, Setting, write_report
from mbdp.analysis.robustness_results import read_robustness
from mbdp.experiments.checkpoint_folder import newest_of
from mbdp.experiments.cli import main
from mbdp.robustness.randomised import Randomised
from tests.experiments.own_carts import CART, FORGETFUL
from tests.faults.runs import train
from tests.policies.test_policy import make_policy


@pytest.fixture
def policy(tmp_path):
    make_policy((2, 8, 1)).save(tmp_path / "policy")
    return str(tmp_path / "policy")


def test_the_environments_own_parameters_are_the_default_axes(policy, tmp_path):
    out = tmp_path / "out"
    options = ["--env", CART, "--grid", "0.5,1,2", "--episodes", "2", "--workers", "1", "--out", str(out)]
    assert main(["robustness", policy, *options]) == 0
    table = json.loads((out / "table.json").read_text())
    assert table["axes"] == {"mass": [0.5, 1.0, 2.0], "wind": [0.5, 1.0, 2.0]}
    assert table["neutral"] == {"mass": 1.0, "wind": 0.0}
    assert (out / "heatmap.png").stat().st_size > 0


def test_an_own_axis_stands_beside_noise(policy, tmp_path):
    out = tmp_path / "out"
    axes = ["--axis", "wind=-1,0,1", "--axis", "observation_noise=0,0.1"]
    assert main(["robustness", policy, "--env", CART, *axes, "--episodes", "1", "--out", str(out)]) == 0
    returns = read_robustness(out).returns["mbdp"]
    assert len(np.unique(returns)) == returns.size == 6


def test_training_draws_own_parameters_and_the_checkpoint_goes_on_exactly(tmp_path):
    run = train(tmp_path, "--randomise", "mass=0.5:2", "wind=-1:1", "--steps", "70", env=CART)
    agent, *_ = newest_of(run, CART)
    assert agent.continued_exactly
    assert isinstance(agent.world.env, Randomised)
    assert agent.world.env.ranges == {"mass": (0.5, 2.0), "wind": (-1.0, 1.0)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([CART, "--randomise", "mas=1:2"], "there is no axis 'mas': did you mean 'mass'?"),
        ([CART, "--randomise", "mass=-1:2"], "mass must be at least 0"),
        ([CART, "--randomise", "friction=1:2"], "is not a MuJoCo environment: only mass, wind, gain, "),
        ([FORGETFUL, "--randomise", "mass=1:2"], "mass: the environment's reset() changes kilograms"),
        ([FORGETFUL, "--perturb", "mass=2"], "mass: the environment's reset() changes kilograms"),
    ],
)
def test_bad_parameters_are_one_line(words, message, tmp_path, capsys):
    assert main(["train", *words, "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_axis_that_is_called_as_another_column_is_read_back(tmp_path):
    axes, returns = {"length": [0.5, 1.5]}, np.array([[1.0, 2.0], [3.0, 4.0]])
    setting = Setting("Own", "zero-shot", axes, {"length": 1.0}, 2, 0)
    result = Result("mbdp", "run", 0, returns, np.full((2, 2), 50), np.zeros((2, 2), bool), np.ones(2))
    write_report(tmp_path, setting, [result])
    np.testing.assert_array_equal(read_robustness(tmp_path).returns["mbdp"][0], returns)
