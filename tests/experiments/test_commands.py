"""The command line, called as the console script calls it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from mbdp.api import MBDP
from mbdp.baselines import slbo_config, steve_config
from mbdp.config import Config
from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.cli import COMMANDS, main
from mbdp.policies.policy import load_policy
from mbdp.types import BadInput
from tests.conftest import TINY

QUICK = [part for name, value in TINY.items() for part in ("--" + name.replace("_", "-"), str(value))]
TRAIN = ["train", POINT_MASS, *QUICK, "--evaluate-every", "50", "--episodes", "2"]


def metrics(run: Path) -> list[dict]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if not name.startswith("time/")} for line in lines]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    assert main([*TRAIN, "--out", str(out)]) == 0
    return out / "mbdp" / "mbdp-PointMass-v0_0"


def test_a_run_directory_holds_what_the_contract_says(run):
    files = {"config.json", "metrics.jsonl", "evaluations.npz", "policy.safetensors", "policy.json", "versions.json"}
    assert files <= {file.name for file in run.iterdir()}
    assert list(run.glob("events.out.tfevents.*"))
    assert [file.name for file in checkpoints_of(run)] == ["step_000000000.mbdp", "step_000000100.mbdp"]
    assert (run / "learning_curve.png").read_bytes().startswith(b"\x89PNG")


def test_metrics_have_a_line_per_refit_and_per_evaluation_under_the_agreed_names(run):
    lines = metrics(run)
    refits = [line for line in lines if "model/kept" in line]
    evaluations = [line for line in lines if "eval/mean_reward" in line]
    assert [line["step"] for line in refits] == [41, 61, 81]
    assert [line["step"] for line in evaluations] == [50, 100]
    assert {"model/bias_0", "model/bias_3", "imagination/kept_fraction"} <= set(refits[0])
    assert {"rollout/ep_rew_mean", "train/critic_loss", "eval/mean_ep_length"} <= set(evaluations[-1])


def test_evaluations_are_in_stable_baselines3s_layout(run):
    with np.load(run / "evaluations.npz") as stored:
        assert stored["timesteps"].tolist() == [50, 100]
        assert stored["results"].shape == stored["ep_lengths"].shape == (2, 2)


def test_the_config_file_repeats_every_setting(run):
    config = json.loads((run / "config.json").read_text())
    assert (config["env"], config["algo"], config["seed"]) == (POINT_MASS, "mbdp", 0)
    assert config["settings"]["members"] == TINY["members"]


def test_the_saved_policy_acts(run):
    assert load_policy(run)(np.zeros((3, 2))).shape == (3, 1)


def test_the_same_seed_writes_the_same_metrics_and_another_does_not(run, tmp_path):
    assert main([*TRAIN, "--out", str(tmp_path)]) == 0
    assert main([*TRAIN, "--out", str(tmp_path), "--seed", "1"]) == 0
    assert metrics(tmp_path / "mbdp" / run.name) == metrics(run)
    assert metrics(tmp_path / "mbdp" / "mbdp-PointMass-v0_1") != metrics(run)


def test_a_run_directory_that_exists_is_not_touched(run, capsys):
    before = (run / "metrics.jsonl").read_bytes()
    assert main([*TRAIN, "--out", str(run.parent.parent)]) == 2
    assert "exists, and nothing is overwritten" in capsys.readouterr().err
    assert (run / "metrics.jsonl").read_bytes() == before


def test_evaluate_repeats_the_evaluation_at_the_end_of_training(run, capsys):
    assert main(["evaluate", str(run), "--episodes", "2"]) == 0
    assert f"mean return {metrics(run)[-1]['eval/mean_reward']:.2f}" in capsys.readouterr().out


@pytest.mark.parametrize("algo", ["mbpo", "sac"])
def test_other_methods_train_by_the_same_command(algo, tmp_path):
    assert main([*TRAIN, "--algo", algo, "--out", str(tmp_path), "--steps", "60"]) == 0
    assert metrics(tmp_path / algo / "mbdp-PointMass-v0_0")[-1]["step"] == 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "Hoper-v5"], "did you mean 'Hopper-v5'"),
        (["train", "CartPole-v1"], "Discrete(2)"),
        (["train", POINT_MASS, "--alpha", "1"], "alpha must be a number in [0, 1)"),
        (["train", POINT_MASS, "--beta", "-0.1"], "beta must be a number in [0, 1)"),
        (["train", POINT_MASS, "--steps", "0"], "steps must be a whole number, at least 1"),
        (["train", POINT_MASS, "--alhpa", "0.1"], "did you mean --alpha?"),
        (["train", POINT_MASS, "--seed", "-3"], "seed must be a whole number"),
        (["train", POINT_MASS, "--seed", "one"], "invalid int value: 'one'"),
        (["train", POINT_MASS, "--algo", "ppo"], "invalid choice: 'ppo'"),
        (["train", POINT_MASS, "--algo", "slbo", "--rollouts", "5"], "slbo has no setting 'rollouts'; it has steps,"),
        (["train", POINT_MASS, "--algo", "slbo", "--beta", "0.2"], "members must be at least 3 for beta=0.2"),
        (["train", POINT_MASS, "--stage", "3"], "mbdp has no setting 'stage'"),
        (["train", POINT_MASS, "--algo", "steve", "--expansion", "0"], "expansion must be a whole number, at least 1"),
        (["train", POINT_MASS, "--out", "/dev/null/runs"], "--out: "),
        (["train", POINT_MASS, "--episodes", "0"], "at least 1"),
        (["train"], "required: ENV"),
        (["trian"], "did you mean 'train'?"),
        (["evaluate", "/nowhere"], "/nowhere/policy.json"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, capsys):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["evaluate", "--help"], ["--version"]])
def test_help_explains_itself(arguments):
    done = subprocess.run([sys.executable, "-m", "mbdp", *arguments], capture_output=True, text=True)
    assert done.returncode == 0
    assert "mbdp" in done.stdout


HELP = """
import sys
from mbdp.experiments.cli import COMMANDS, main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code
heavy = {"jax", "gymnasium", "mujoco", "matplotlib", "scipy"} & set(sys.modules)
assert not heavy, f"--help imports {sorted(heavy)}"
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], *([command, "--help"] for command in ("train", "resume", "evaluate", "robustness"))]
)
def test_help_imports_neither_learner_nor_simulator(arguments):
    done = subprocess.run([sys.executable, "-c", HELP, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: mbdp" in done.stdout


def test_the_long_help_imports_neither_learner_nor_simulator():
    done = subprocess.run([sys.executable, "-c", HELP, "train", "--help-all"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def help_of(command: str, capsys: pytest.CaptureFixture[str], option: str = "--help") -> str:
    with pytest.raises(SystemExit) as end:
        main([command, option])
    assert not end.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_examples(command, capsys):
    assert f"examples:\n  mbdp {command} " in help_of(command, capsys)


def options_in(text: str) -> list[str]:
    return re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE)


def test_the_help_of_train_shows_the_options_that_matter(capsys):
    shown = "help-all algo preset prefer steps alpha beta data envs randomise seed out evaluate-every episodes quiet"
    assert options_in(help_of("train", capsys)) == [f"--{name}" for name in shown.split()]


def test_the_long_help_of_train_shows_every_setting(capsys):
    shown = set(options_in(help_of("train", capsys, "--help-all")))
    names = {one.name for config in (Config, steve_config.Config, slbo_config.Config) for one in fields(config)}
    assert {"--" + name.replace("_", "-") for name in names} | {"--checkpoint-minutes"} <= shown


def test_an_interrupted_run_ends_with_130_and_a_checkpoint(tmp_path):
    command = [sys.executable, "-m", "mbdp.experiments.cli", *TRAIN, "--steps", "100000", "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        log = tmp_path / "mbdp" / "mbdp-PointMass-v0_0" / "metrics.jsonl"
        for _ in range(1200):
            if log.exists() and log.read_text().count("\n") > 2:
                break
            time.sleep(0.1)
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(60) == 130
        assert child.stderr is not None
        assert "Traceback" not in child.stderr.read()
    assert checkpoints_of(log.parent)[-1].name > "step_000000040.mbdp"
    assert load_policy(log.parent).env == POINT_MASS


def test_a_run_folder_in_the_place_of_a_checkpoint_is_refused_with_the_name_of_its_newest(run):
    with pytest.raises(BadInput, match=r"a folder, not a checkpoint; pass .*step_000000100\.mbdp"):
        MBDP.load(run)


def test_a_way_of_drawing_that_mujoco_does_not_know_is_refused_in_one_line():
    arguments = [sys.executable, "-m", "mbdp", "train", "Hopper-v5", "--steps", "1"]
    environment = os.environ | {"MUJOCO_GL": "nonsense"}
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "mbdp: invalid value for environment variable MUJOCO_GL: nonsense; unset it, or set it to egl, osmesa or glfw"
    ]
