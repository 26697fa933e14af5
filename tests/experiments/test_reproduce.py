"""`mbdp reproduce`, with sweeps that are made up."""

import tomllib

import pytest

from mbdp.experiments import reproduce_command
from mbdp.experiments.cli import main
from mbdp.experiments.reproduce_command import FIGURES, SCALES, spec_of
from mbdp.experiments.sweep import estimate
from mbdp.experiments.sweep.estimate import Cost
from mbdp.experiments.sweep.spec import read_spec
from tests.analysis.made_up import make_robustness, make_run


@pytest.fixture
def sweeps(monkeypatch):
    """Instead of training, write what training would leave; the specs and folders that were asked for."""
    asked = []

    def train(spec, out, workers):
        asked.append((spec.name, out))
        for seed in range(2):
            extra = {"theory/improvement": 5.0, "theory/improvement_printed": 2.0}
            make_run(out / "mbdp" / f"Hopper-v5_{seed}", [1.0, 2.0 + seed], extra=extra)

    monkeypatch.setattr(reproduce_command, "train", train)
    monkeypatch.setattr(reproduce_command, "announce", lambda spec, out, workers: asked.append(("announced", out)))
    return asked


@pytest.mark.parametrize("figure", ["curves", "residual"])
def test_runs_come_from_the_figures_spec_and_the_figure_from_the_runs(tmp_path, sweeps, figure):
    assert main(["reproduce", figure, "--scale", "laptop", "--out", str(tmp_path)]) == 0
    assert sweeps == [("announced", tmp_path / "runs"), (f"{figure}_laptop.toml", tmp_path / "runs")]
    assert {f"{figure}.pdf", f"{figure}.png", "evaluations.csv"} <= {file.name for file in tmp_path.iterdir()}


def test_runs_that_are_there_are_drawn_without_training(tmp_path, sweeps):
    make_run(tmp_path / "runs" / "mbdp" / "Hopper-v5_0", [1.0, 2.0])
    make_robustness(tmp_path / "runs" / "robustness")
    assert main(["reproduce", "heatmaps", "--from", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 0
    assert sweeps == []
    assert (tmp_path / "heatmaps.pdf").exists()


def test_policies_are_tried_in_perturbed_worlds_under_their_methods_name(tmp_path, monkeypatch, sweeps):
    calls = []

    def command(*arguments):
        calls.append(arguments)
        make_robustness(tmp_path / "robustness" / "Hopper-v5", ["mbdp"])

    monkeypatch.setattr(reproduce_command, "_command", command)
    assert main(["reproduce", "heatmaps", "--out", str(tmp_path), "--workers", "1"]) == 0
    ((name, first, _, *options),) = calls
    assert (name, first) == ("robustness", f"mbdp={tmp_path / 'runs' / 'mbdp' / 'Hopper-v5_0'}")
    assert options[:6] == ["--env", "Hopper-v5", "--grid", "0.5:1.5:3", "--episodes", "1"]


def test_policies_that_were_trained_in_each_world_are_drawn_without_trying_them_elsewhere(tmp_path):
    for mass in (0.8, 1.2):
        for friction in (0.8, 1.2):
            world = {"mass": mass, "friction": friction}
            make_run(tmp_path / "runs" / f"{mass}_{friction}" / "Hopper-v5_0", [mass, friction], world=world)
    arguments = ["--reading", "retrained", "--from", str(tmp_path / "runs"), "--out", str(tmp_path)]
    assert main(["reproduce", "heatmaps", *arguments]) == 0
    assert (tmp_path / "heatmaps_retrained.pdf").exists()
    assert not (tmp_path / "robustness").exists()


def test_the_cost_of_a_long_figure_is_said_before_it_starts(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(estimate, "probe", lambda run: asked.append(run.name) or Cost(10.0, 1000, 0.036, 1.0))
    reproduce_command.announce(spec_of("residual", "laptop"), tmp_path, workers=2)
    assert asked == ["mbdp/Hopper-v5_0"]
    printed = capsys.readouterr().out
    assert "3 runs, 0 of them finished" in printed
    # Of each run 10 s of warm-up, 59,000 steps of 36 ms, and 60 evaluations of a second.
    assert "3 runs, 1.83 core-hours" in printed
    assert "about 1.83 core-hours, 0.914 hours with 2 workers. An estimate" in printed


def test_a_method_that_takes_too_long_to_time_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(estimate, "probe", lambda run: None)
    reproduce_command.announce(spec_of("residual", "laptop"), tmp_path, workers=2)
    assert "and what 3 runs take that could not be timed" in capsys.readouterr().out


def test_nothing_is_timed_when_all_runs_are_finished(tmp_path, monkeypatch, capsys):
    for run in read_spec(spec_of("residual", "laptop"), tmp_path):
        run.folder.mkdir(parents=True)
        (run.folder / "finished.json").touch()
    monkeypatch.setattr(estimate, "probe", lambda run: pytest.fail("timed"))
    reproduce_command.announce(spec_of("residual", "laptop"), tmp_path, workers=2)
    assert capsys.readouterr().out == "3 runs, 3 of them finished\n"


def test_the_error_of_a_sweep_becomes_ours(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reproduce_command, "spec_of", lambda figure, scale: tmp_path / "nowhere.toml")
    with pytest.raises(SystemExit) as caught:
        main(["reproduce", "curves", "--out", str(tmp_path)])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("figure", [*FIGURES, "heatmaps_retrained"])
@pytest.mark.parametrize("scale", SCALES)
def test_every_figure_has_a_spec_for_every_scale(figure, scale):
    content = tomllib.loads(spec_of(figure, scale).read_text())
    assert content["out"] == f"runs/reproduce/{figure}_{scale}"
    grids = content["grid"] if isinstance(content["grid"], list) else [content["grid"]]
    assert all(len(grid["seed"]) >= 2 for grid in grids if scale != "smoke")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["curve"], "argument FIGURE: invalid choice: 'curve'"),
        (["curves", "--reading", "retrained"], "--reading is of heatmaps"),
        (["curves", "--workers", "0"], "--workers must be at least 1"),
        (["curves", "--from", "nowhere"], "nowhere: there is no such folder"),
        (["curves", "--published", "nowhere.csv"], "nowhere.csv: no table of published returns"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"mbdp: {message}")
    assert error.count("\n") == 1
