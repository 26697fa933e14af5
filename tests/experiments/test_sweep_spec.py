"""Specs of sweeps: what they mean, and what is said of those that mean nothing."""

from pathlib import Path

import pytest

from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.cli import main
from mbdp.experiments.sweep.spec import read_spec

ROOT = Path(__file__).parents[2]
ENV = f"env = '{POINT_MASS}'\n"


def names(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "spec.toml"
    file.write_text(text)
    return [run.name for run in read_spec(file)]


def test_a_grid_is_all_combinations_and_all_of_one_seed_come_before_the_next(tmp_path):
    grid = "name = '{algo}_{alpha}_{seed}'\n[grid]\nseed = [3, 1]\nalgo = ['mbdp', 'beta-only']\nalpha = [0.0, 0.2]"
    arms = ["mbdp_0.0", "mbdp_0.2", "beta-only_0.0", "beta-only_0.2"]
    assert names(tmp_path, ENV + grid) == [f"{arm}_{seed}" for seed in (3, 1) for arm in arms]


def test_priority_names_the_keys_that_come_first(tmp_path):
    text = "priority = ['alpha']\nname = '{alpha}_{seed}'\n[grid]\nseed = [0, 1]\nalpha = [0.4, 0.2]"
    assert names(tmp_path, ENV + text) == ["0.4_0", "0.4_1", "0.2_0", "0.2_1"]


def test_several_grids_and_single_runs_are_one_sweep(tmp_path):
    text = "name = '{algo}_{seed}'\n[[grid]]\nseed = [0, 1]\n[[grid]]\nalgo = ['sac']\n[[run]]\nalgo = 'slbo'\nseed = 7"
    assert names(tmp_path, ENV + text) == ["mbdp_0", "sac_0", "mbdp_1", "slbo_7"]


def test_a_grid_may_name_its_runs_itself(tmp_path):
    text = "name = '{algo}_{seed}'\n[[grid]]\nseed = [0]\n[[grid]]\nname = 'deep/{seed}'\nmodel_depth = [4]"
    assert names(tmp_path, ENV + text) == ["mbdp_0", "deep/0"]
    assert "name" not in read_spec(tmp_path / "spec.toml")[1].request["settings"]


def test_a_run_has_the_settings_at_the_top_unless_it_has_its_own(tmp_path):
    file = tmp_path / "spec.toml"
    file.write_text(f"{ENV}steps = 300\nalpha = 0\nepisodes = 3\n[[run]]\nseed = 1\n[[run]]\nsteps = 400")
    second, first = sorted(read_spec(file), key=lambda run: -run.steps)
    assert (first.steps, first.request["seed"], first.request["schedule"]["episodes"]) == (300, 1, 3)
    assert (second.steps, second.request["seed"], second.request["settings"]["alpha"]) == (400, 0, 0.0)


def test_a_grid_of_worlds_is_all_combinations_of_their_axes(tmp_path):
    text = "env = 'Hopper-v5'\nname = '{perturb}_{seed}'\n[grid]\nperturb.mass = [0.8, 1]\nperturb.friction = [2]"
    assert names(tmp_path, text) == ["mass=0.8,friction=2_0", "mass=1,friction=2_0"]
    assert [run.request["perturb"] for run in read_spec(tmp_path / "spec.toml")] == [
        {"mass": 0.8, "friction": 2.0},
        {"mass": 1.0, "friction": 2.0},
    ]


def test_a_run_in_the_nominal_world_asks_for_what_it_always_did(tmp_path):
    file = tmp_path / "spec.toml"
    file.write_text(f"{ENV}[[run]]\nperturb = {{}}\nseed = 1")
    assert "perturb" not in read_spec(file)[0].request


def test_ranges_to_draw_worlds_from_reach_the_run_and_its_name(tmp_path):
    text = "env = 'Hopper-v5'\nname = '{randomise}_{seed}'\n[grid]\nrandomise = [{}, {mass = [0.8, 1.2]}]"
    (tmp_path / "spec.toml").write_text(text)
    runs = read_spec(tmp_path / "spec.toml")
    assert [run.request.get("randomise") for run in runs] == [None, {"mass": [0.8, 1.2]}]
    assert [run.name for run in runs] == ["nominal_0", "mass=0.8-1.2_0"]


def test_runs_are_collected_in_a_folder_named_after_the_spec_or_where_the_command_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "ablation.toml"
    file.write_text(ENV + "[grid]\nseed = [0]")
    assert read_spec(file)[0].folder == tmp_path / "runs/ablation/mbdp/mbdp-PointMass-v0_0"
    assert read_spec(file, Path("else"))[0].folder == tmp_path / "else/mbdp/mbdp-PointMass-v0_0"


@pytest.mark.parametrize("file", sorted((ROOT / "specs").rglob("*.toml")), ids=lambda file: file.stem)
def test_specs_of_the_project_are_sound(file):
    assert read_spec(file)


BAD = {
    "[grid\nseed = [0]": "not valid TOML",
    "steps = 100": "no runs: give a [grid]",
    "[grid]": "grid is empty",
    "[grid]\nseed = []": "seed must be a list of at least one value",
    "[grid]\nseed = 3": "seed must be a list of at least one value",
    "grid = 3": "grid must be a table [grid]",
    "[run]\nseed = 1": "run must be tables [[run]]",
    "alhpa = 0.1\n[grid]\nseed = [0]": "unknown key 'alhpa': did you mean 'alpha'?",
    "[grid]\nsed = [0]": "unknown key 'sed': did you mean 'seed'?",
    "[grid]\nalpha = [0.1, 0.2]": "share the folder",
    "[[run]]\nseed = 1\n[[run]]\nseed = 1": "the same run is there twice",
    "name = '{seed}'\n[grid]\nseed = [0, 1]\nalpha = [0.1, 0.2]": "add {alpha} to name",
    "name = '{sed}'\n[grid]\nseed = [0]": "there is no {sed}",
    "name = '{seed'\n[grid]\nseed = [0]": "is not a pattern",
    "name = '{env.real}'\n[grid]\nseed = [0]": "there is no {env.real}",
    "name = '../{seed}'\n[grid]\nseed = [0]": "not a folder inside of `out`",
    "name = '/{seed}'\n[grid]\nseed = [0]": "not a folder inside of `out`",
    "[[run]]\nenv = 'Hoper-v5'": "did you mean 'Hopper-v5'?",
    "perturb = 3\n[grid]\nseed = [0]": "perturb must be a table of coefficients",
    "randomise = 3\n[grid]\nseed = [0]": "randomise must be a table of ranges",
    "[[run]]\nrandomise = {mass = 1}": "not a table of axes",
    "[[run]]\nrandomise = {mass = [2, 1]}\nenv = 'Hopper-v5'": "must have a range from low to high",
    "[[run]]\nperturb = {mas = 2}": "there is no axis 'mas'",
    "[[run]]\nperturb = {mass = 2}": "is not a MuJoCo environment",
    "[[run]]\nenv = 'InvertedPendulum-v5'\nperturb = {friction = 2}": "would change nothing",
    "[[run]]\nenv = 'CartPole-v1'": "Discrete(2)",
    "[[run]]\nenv = 'some_module:Env-v0'": "would import a module: pass --allow-code",
    "[[run]]\nenv = ''": "env is missing",
    "[[run]]\nenv = 5": "env must be a string; it is 5",
    "[[run]]\nalgo = 'ppo'": "algo must be one of mbdp, mbpo",
    "[[run]]\nalgo = ['mbdp']": "algo must be a string",
    "[[run]]\ntermination = 'guess'": "termination must be one of known, learned",
    "[[run]]\nalgo = 'sac'\ntermination = 'learned'": "termination is of no use",
    "[[run]]\npreset = 'papr'": "preset must be one of default, paper",
    "[[run]]\nseed = '0'": "seed must be a whole number; it is '0'",
    "[[run]]\nseed = -1": "seed must be from 0 to",
    "[[run]]\nepisodes = 0": "episodes must be from 1 to",
    "[[run]]\nsteps = 1.5": "steps must be a whole number; it is 1.5",
    "[[run]]\nsteps = true": "steps must be a whole number; it is True",
    "[[run]]\nlayer_norm = 1": "layer_norm must be true or false; it is 1",
    "[[run]]\nhorizon = [1, 2]": "horizon must be a list of 4 whole numbers",
    "[[run]]\nreal_ratio = 'half'": "real_ratio must be a number; it is 'half'",
    "[[run]]\nalpha = 1.0": "alpha must be a number in [0, 1)",
    "[[run]]\nalgo = 'sac'\nalpha = 0.2": "alpha and beta must be 0 where nothing is imagined",
    "[[run]]\nalgo = 'slbo'\nrollouts = 5": "slbo has no setting 'rollouts'",
    "priority = 'seed'\n[grid]\nseed = [0]": "priority must be a list of keys",
    "priority = ['sed']\n[grid]\nseed = [0]": "priority must be a list of keys",
    "[grid]\nseed = [" + "0, " * 400 + "]\nmembers = [" + "2, " * 400 + "]": "more than 100,000 runs",
}


@pytest.mark.parametrize(("text", "message"), BAD.items(), ids=BAD.values())
def test_a_bad_spec_is_one_line_and_exit_code_2(text, message, tmp_path, capsys):
    file = tmp_path / "spec.toml"
    file.write_text(f"out = '{tmp_path / 'runs'}'\n{ENV}{text}\n")
    assert main(["sweep", str(file)]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert str(file) in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["/nowhere/spec.toml"], "/nowhere/spec.toml: there is no such spec"),
        ([], "required: SPEC.toml"),
        ([str(ROOT / "specs/example.toml"), "--workers", "0"], "--workers must be at least 1"),
        ([str(ROOT / "specs/example.toml"), "--wrokers", "2"], "did you mean --workers?"),
        ([str(ROOT / "specs/example.toml"), "--out", "/dev/null/runs"], "cannot be made"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(arguments, message, capsys):
    assert main(["sweep", *arguments]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
