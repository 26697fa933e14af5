"""Sweeps in real processes: what is finished is not done again, and what was ended goes on to the same end."""

import shutil
import signal
from pathlib import Path

import pytest

from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.cli import main
from mbdp.experiments.sweep.state import in_use, is_finished
from tests.experiments.sweeps import attempts, kill_when_learning, start_sweep, wait_until_learning, write_spec
from tests.faults.runs import remains
from tests.faults.test_signals import wait_until

ONE_RUN = "[grid]\nseed = [0]"


def runs_in(folder: Path) -> list[Path]:
    return [folder / "runs" / "mbdp" / f"mbdp-PointMass-v0_{seed}" for seed in (0, 1)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep that nothing happened to; not to be changed."""
    folder = tmp_path_factory.mktemp("whole")
    assert main(["sweep", str(write_spec(folder)), "--workers", "1"]) == 0
    return folder


def test_each_run_has_what_mbdp_train_writes(whole):
    files = {"config.json", "metrics.jsonl", "evaluations.npz", "policy.safetensors", "versions.json", "finished.json"}
    for run in runs_in(whole):
        assert files <= {file.name for file in run.iterdir()}
        assert checkpoints_of(run)[-1].name == "step_000000120.mbdp"
    assert remains(runs_in(whole)[0]) != remains(runs_in(whole)[1])


def test_finished_runs_are_skipped(whole, tmp_path, capsys):
    shutil.copytree(whole / "runs", tmp_path / "runs")
    assert main(["sweep", str(write_spec(tmp_path))]) == 0
    assert "2 runs, 2 finished before" in capsys.readouterr().out
    assert [len(attempts(run)) for run in runs_in(tmp_path)] == [1, 1]


def test_status_is_a_table_and_changes_nothing(whole, tmp_path, capsys):
    shutil.copytree(runs_in(whole)[1], runs_in(tmp_path)[1])
    before = sorted(tmp_path.rglob("*"))
    assert main(["sweep", str(write_spec(tmp_path)), "--status"]) == 0
    printed = capsys.readouterr().out
    assert "2 runs: 1 waiting, 1 finished" in printed
    assert "120/120" in printed
    assert sorted({*tmp_path.rglob("*")} - {tmp_path / "spec.toml"}) == before


def test_a_worker_that_is_killed_is_started_again_and_comes_to_the_same_end(whole, tmp_path, capsys):
    run = runs_in(tmp_path)[0]
    killer = kill_when_learning(run, signal.SIGKILL)
    assert main(["sweep", str(write_spec(tmp_path, ONE_RUN)), "--workers", "1"]) == 0
    killer.join(60)
    assert "killed    mbdp/mbdp-PointMass-v0_0 (SIGKILL)" in capsys.readouterr().out
    first, second = attempts(run)
    assert first["step"] == 0 < second["step"]
    assert remains(run) == remains(runs_in(whole)[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_sweep_that_is_ended_goes_on_to_the_same_end(number, whole, tmp_path):
    spec, run = write_spec(tmp_path, ONE_RUN), runs_in(tmp_path)[0]
    with start_sweep(spec, "--workers", "1") as sweep:
        wait_until_learning(run)
        sweep.send_signal(number)
        printed, _ = sweep.communicate(timeout=600)
    if number == signal.SIGKILL:  # nobody tells the worker, which notices
        wait_until(lambda: not in_use(run))
    else:
        assert sweep.returncode == 128 + number
        assert "1 of 1 runs are left; the same command goes on with them" in printed
        assert "Traceback" not in printed
        assert not in_use(run)
    assert checkpoints_of(run)
    assert not is_finished(run)
    assert main(["sweep", str(spec)]) == 0
    assert remains(run) == remains(runs_in(whole)[0])


def test_a_run_that_fails_is_reported_and_does_not_stop_the_others(whole, tmp_path, capsys):
    first, second = runs_in(tmp_path)
    (first / "checkpoints").mkdir(parents=True)
    (first / "checkpoints" / "step_000000050.mbdp").write_bytes(b"no checkpoint")
    assert main(["sweep", str(write_spec(tmp_path)), "--workers", "1"]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("mbdp: 1 of 2 runs failed: mbdp/mbdp-PointMass-v0_0;")
    assert printed.err.count("\n") == 1
    assert "no checkpoint can be used" in (first / "error.txt").read_text()
    assert (first / "error.txt").read_text().strip() in printed.out
    assert remains(second) == remains(runs_in(whole)[1])


def test_two_sweeps_of_one_spec_share_the_work(whole, tmp_path):
    spec = write_spec(tmp_path)
    with start_sweep(spec, "--workers", "1") as one, start_sweep(spec, "--workers", "1") as other:
        assert [sweep.wait(600) for sweep in (one, other)] == [0, 0]
    assert [len(attempts(run)) for run in runs_in(tmp_path)] == [1, 1]
    assert [remains(run) for run in runs_in(tmp_path)] == [remains(run) for run in runs_in(whole)]


def test_a_folder_that_holds_something_else_is_refused(whole, tmp_path, capsys):
    shutil.copytree(whole / "runs", tmp_path / "runs")
    assert main(["sweep", str(write_spec(tmp_path, beta=0.5))]) == 2
    assert "was begun with other settings" in capsys.readouterr().err
    (runs_in(tmp_path)[0] / "request.json").unlink()
    assert main(["sweep", str(write_spec(tmp_path))]) == 2
    printed = capsys.readouterr().err
    assert "holds a run of no sweep" in printed
    assert printed.count("\n") == 1


def test_a_dry_run_lists_the_runs_and_estimates_their_cost(tmp_path, capsys):
    assert main(["sweep", str(write_spec(tmp_path)), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("mbdp-PointMass-v0_0  waiting") < printed.index("mbdp-PointMass-v0_1  waiting")
    assert "ms per env step; 2 runs" in printed
    assert "An estimate" in printed
    assert not (tmp_path / "runs").exists()
