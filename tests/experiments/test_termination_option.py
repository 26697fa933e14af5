"""`--termination learned` and `termination` in the spec of a sweep: the run has it to its end, and after a resume."""

import json

import pytest

from mbdp.analysis.run_groups import group_runs
from mbdp.analysis.runs import find_runs
from mbdp.envs.toy import POINT_MASS, PointMass
from mbdp.experiments.checkpoint_folder import newest_of
from mbdp.experiments.cli import main
from mbdp.experiments.sweep.spec import read_spec
from mbdp.experiments.training_world import NOMINAL_WORLD, TrainingWorld, new_agent
from tests.conftest import TINY
from tests.faults.runs import metrics, remains, start_and_die, train

LEARNED = ("--termination", "learned")
RECALL = "model/termination_recall"


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A whole run whose model learned the end of episodes; not to be changed."""
    return train(tmp_path_factory.mktemp("learned"), *LEARNED)


def test_the_run_learns_the_end_of_episodes_and_says_so(learned):
    fits = [line for line in metrics(learned) if "model/kept" in line]
    assert fits
    assert all(RECALL in line and "model/termination_mismatch" not in line for line in fits)
    assert json.loads((learned / "config.json").read_text())["termination"] == "learned"


def test_a_known_rule_is_the_default_and_changes_no_file(tmp_path):
    default, known = train(tmp_path / "default"), train(tmp_path / "known", "--termination", "known")
    assert remains(default) == remains(known)
    assert "termination" not in json.loads((default / "config.json").read_text())


def test_a_resumed_run_still_learns_it_and_comes_to_the_same_end(learned, tmp_path, monkeypatch):
    run = start_and_die(monkeypatch, tmp_path, 95, [70, 85], options=LEARNED)
    assert newest_of(run)[0].termination is None
    assert main(["resume", str(run), "--quiet"]) == 0
    assert remains(run) == remains(learned)


def test_it_is_evaluated_as_any_run(learned, capsys):
    assert main(["evaluate", str(learned), "--episodes", "2"]) == 0
    assert f"mean return {metrics(learned)[-1]['eval/mean_reward']:.2f}" in capsys.readouterr().out


def test_a_perturbed_world_learns_it_too():
    settings = {"seed": 0, **TINY, "members": 5, "samples_per_state": 4}
    agents = [
        new_agent("InvertedPendulum-v5", TrainingWorld({"mass": 2.0}), termination=wanted, **settings)
        for wanted in ("learned", "known")
    ]
    assert [agent.termination is None for agent in agents] == [True, False]


def test_runs_with_and_without_a_rule_are_two_methods(learned, tmp_path):
    runs, _ = find_runs([train(tmp_path), learned])
    assert [group.name for group in group_runs(runs)] == ["mbdp termination default", "mbdp termination learned"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--termination", "guessed"], "invalid choice: 'guessed' (choose from"),
        (["--termination", "learned", "--algo", "sac"], "termination is of no use where nothing is imagined"),
    ],
)
def test_a_wrong_one_is_one_line(options, message, tmp_path, capsys):
    assert main(["train", POINT_MASS, *options, "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_known_rule_is_refused_where_none_is(tmp_path, monkeypatch, capsys):
    lines = (
        "import gymnasium",
        f"from {PointMass.__module__} import PointMass",
        "gymnasium.register('NoRule-v0', PointMass)",
    )
    (tmp_path / "module_without_a_rule.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    env = "module_without_a_rule:NoRule-v0"
    assert main(["train", env, "--termination", "known", "--out", str(tmp_path / "runs")]) == 2
    assert f"termination must be learned in {env}" in capsys.readouterr().err


def test_help_all_shows_it_and_help_does_not(capsys):
    for option, shown in (("--help-all", True), ("--help", False)):
        with pytest.raises(SystemExit):
            main(["train", option])
        assert ("--termination {known,learned}" in capsys.readouterr().out) == shown


def test_a_spec_can_ask_for_it_and_specs_that_do_not_are_as_before(tmp_path):
    text = "name = '{termination}_{seed}'\n[grid]\ntermination = ['', 'learned']"
    (tmp_path / "spec.toml").write_text(f"env = '{POINT_MASS}'\n{text}")
    runs = read_spec(tmp_path / "spec.toml")
    assert [run.request.get("termination", "none") for run in runs] == ["none", "learned"]
    assert [run.name for run in runs] == ["default_0", "learned_0"]


def test_a_run_of_a_sweep_learns_it(learned, tmp_path):
    from mbdp.experiments.sweep.worker import carry_out

    schedule = {"evaluate_every": 30, "episodes": 2, "checkpoint_minutes": 5.0}
    settings = "\n".join(f"{name} = {value}" for name, value in (TINY | {"d_model_fits": 1} | schedule).items())
    (tmp_path / "spec.toml").write_text(f"env = '{POINT_MASS}'\n{settings}\ntermination = 'learned'\n[[run]]\nseed = 0")
    (run,) = read_spec(tmp_path / "spec.toml", tmp_path / "runs")
    run.folder.mkdir(parents=True)
    carry_out(run)
    assert remains(run.folder) == remains(learned)


def test_nothing_is_asked_for_by_default():
    assert new_agent(POINT_MASS, NOMINAL_WORLD, **TINY).termination is not None
