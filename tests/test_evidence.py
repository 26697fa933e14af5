"""`make evidence` without its training: what is kept of runs, and figures that are drawn from that alone."""

import json
import shutil
from pathlib import Path

import pytest
from benchmarks import evidence
from benchmarks.learning_table import beside_published, runs_of_default
from benchmarks.robustness_table import robustness_table
from benchmarks.seed_table import commits_table, methods_table, seeds_table, write_seeds
from benchmarks.verdict_table import ARMS, verdicts, write_verdicts

from mbdp.analysis.robustness_results import robustness_of
from mbdp.analysis.run_groups import group_runs
from mbdp.analysis.runs import find_runs
from mbdp.experiments.sweep.spec import read_spec
from mbdp.experiments.sweep.state import is_finished
from mbdp.types import BadInput
from tests.analysis.made_up import make_robustness, make_run
from tests.experiments.sweeps import write_spec

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "results" / "published_returns.csv"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """What sweeps would leave: two seeds of each, one of them not finished."""
    folder = tmp_path / "runs"
    for seed in range(2):
        make_run(folder / "learning/mbdp" / f"Hopper-v5_{seed}", [1.0, 5.0 + seed])
        make_run(folder / "systems/sac" / f"Hopper-v5_{seed}", [1.0, 2.0 + seed], algo="sac")
        make_run(folder / "arms/beta-only" / f"Hopper-v5_{seed}", [1.0, 3.0 + seed], algo="beta-only")
        for group in ("returns", "batch"):
            make_run(folder / "groupings" / group / f"Hopper-v5_{seed}", [1.0, 4.0 + seed], group=group)
        for alpha, beta in ((0.0, 0.2), (0.2, 0.2), (0.2, 0.0)):
            run = make_run(
                folder / f"ablation/{alpha}_{beta}" / f"Hopper-v5_{seed}", [1.0, 2.0], alpha=alpha, beta=beta
            )
            (run / "request.json").write_text("{}")
    first = folder / "learning/mbdp/Hopper-v5_0"
    (first / "finished.json").write_text(json.dumps({"step": 2000, "time": 1.0, "host": "somewhere", "pid": 7}))
    (first / "checkpoints").mkdir()
    (first / "checkpoints" / "step_000002000.mbdp").write_bytes(b"large")
    (first / "policy.safetensors").write_bytes(b"large, too")
    return folder


def test_every_sweep_has_a_sound_spec_in_its_own_folder():
    specs = sorted((ROOT / "specs" / "evidence").glob("*.toml"))
    assert sorted(evidence.SWEEPS) == [file.stem for file in specs]
    for file in specs:
        assert read_spec(file)[0].folder.is_relative_to(Path.cwd() / "runs" / "evidence" / file.stem)


def test_only_small_files_are_kept_and_nothing_of_the_machine(runs, tmp_path):
    evidence.collect(runs, tmp_path / "results")
    kept = tmp_path / "results/learning/mbdp/Hopper-v5_0"
    assert sorted(file.name for file in kept.iterdir()) == [
        "config.json",
        "finished.json",
        "metrics.jsonl",
        "versions.json",
    ]
    assert json.loads((kept / "finished.json").read_text()) == {"step": 2000, "time": 1.0}


def test_a_run_that_is_finished_in_the_results_is_not_trained_again(runs, tmp_path):
    evidence.collect(runs, tmp_path / "results")
    shutil.rmtree(runs)
    evidence.restore(tmp_path / "results", runs)
    assert [file.parent.relative_to(runs) for file in runs.rglob("finished.json")] == [
        Path("learning/mbdp/Hopper-v5_0")
    ]
    assert is_finished(runs / "learning/mbdp/Hopper-v5_0")
    assert not (runs / "learning/mbdp/Hopper-v5_1").exists(), "it has no checkpoint to go on from, so it starts anew"


def test_a_line_that_is_being_written_is_left_out(runs, tmp_path):
    metrics = runs / "learning/mbdp/Hopper-v5_1/metrics.jsonl"
    whole = metrics.read_bytes()
    metrics.write_bytes(whole + b'{"step": 30')
    evidence.collect(runs, tmp_path / "results")
    assert (tmp_path / "results/learning/mbdp/Hopper-v5_1/metrics.jsonl").read_bytes() == whole


def test_a_copy_that_has_come_further_is_not_replaced(runs, tmp_path):
    evidence.collect(runs, tmp_path / "results")
    run = runs / "ablation/0.2_0.2/Hopper-v5_0"
    kept = tmp_path / "results" / run.relative_to(runs) / "metrics.jsonl"
    before = kept.read_bytes()
    (run / "metrics.jsonl").write_text('{"step": 10}\n')
    evidence.collect(runs, tmp_path / "results")
    assert kept.read_bytes() == before
    (run / "request.json").write_text('{"alpha": 0.3}')  # another experiment now
    evidence.collect(runs, tmp_path / "results")
    assert kept.read_text() == '{"step": 10}\n'


def test_figures_come_from_the_results_alone_and_are_the_same_twice(runs, tmp_path, capsys):
    results = tmp_path / "results"
    evidence.collect(runs, results)
    shutil.rmtree(runs)
    evidence.collect(runs, results)
    first = {file.name: file.read_bytes() for file in evidence.draw(results, PUBLISHED)}
    second = {file.name: file.read_bytes() for file in evidence.draw(results, PUBLISHED)}
    names = ("learning", "arms", "groupings", "ablation")
    assert sorted(first) == sorted(f"{name}.{kind}" for name in names for kind in ("pdf", "png"))
    assert first == second
    assert "| sac | Hopper-v5 | 2 | 2,000 | 2 | 2 | 3 |" in capsys.readouterr().out


def test_a_failed_run_is_named(runs, tmp_path, capsys):
    (runs / "arms/beta-only/Hopper-v5_1/error.txt").write_text(f"{evidence.ROOT}/runs/x: the policy has diverged\n")
    evidence.collect(runs, tmp_path / "results")
    evidence.draw(tmp_path / "results", PUBLISHED)
    printed = capsys.readouterr().out
    assert "not in the figures: arms/beta-only/Hopper-v5_1: it failed: runs/x: the policy has diverged" in printed


def test_without_any_run_there_is_nothing_to_draw(tmp_path):
    evidence.collect(tmp_path / "runs", tmp_path / "results")
    assert evidence.draw(tmp_path / "results", PUBLISHED) == []


def test_a_sweep_is_carried_out_and_its_runs_are_kept(tmp_path, monkeypatch):
    folder = tmp_path / "specs" / "evidence"
    folder.mkdir(parents=True)
    out = tmp_path / "runs" / "evidence" / "arms"
    write_spec(folder, "[grid]\nseed = [0]", out=str(out)).rename(folder / "arms.toml")
    (tmp_path / "results").mkdir()
    for file in (ROOT / "results").glob("published_*.csv"):
        shutil.copy(file, tmp_path / "results")
    marks = [f"<!-- {name} -->\n<!-- /{name} -->\n" for name in ("published", "robustness")]
    (tmp_path / "README.md").write_text("".join(marks))
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "evidence.md", tmp_path / "docs")
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "SWEEPS", ("arms",))
    monkeypatch.setattr(evidence, "GRIDS", {"arms": ("--axis", "action_noise=0,0.1", "--axis", "action_delay=0,1")})
    monkeypatch.setattr("sys.argv", ["evidence"])
    assert evidence.main() == 0
    kept = tmp_path / "results/evidence/arms/mbdp/mbdp-PointMass-v0_0"
    assert {file.relative_to(kept).as_posix() for file in kept.rglob("*.*")} == set(evidence.KEPT) - {"error.txt"}
    assert (tmp_path / "results/evidence/arms.png").exists()
    assert "| task | ours | seeds |" in (tmp_path / "README.md").read_text()


def test_the_table_of_the_readme_has_the_mean_of_the_last_tenth_over_the_seeds_that_came_so_far(tmp_path):
    for seed, returns in enumerate(([1.0] * 18 + [90.0, 110.0], [1.0] * 18 + [290.0, 310.0] + [5.0] * 30)):
        make_run(tmp_path / "mbdp" / f"Hopper-v5_{seed}", returns)
    table = beside_published(find_runs([tmp_path])[0], PUBLISHED)
    (row,) = (line.split(" | ") for line in table.splitlines()[2:])
    assert row[:4] == ["| Hopper-v5", "200 / 5 / -", "2 / 1 / -", "1,798 / 3,364 / 3,368"]


def test_of_each_task_and_seed_the_run_that_came_furthest_counts(tmp_path):
    for sweep, length in (("learning", 3), ("arms", 5)):
        make_run(tmp_path / sweep / "mbdp/Hopper-v5_0", [1.0] * length)
    make_run(tmp_path / "arms/mbdp/Hopper-v5_1", [1.0])
    make_run(tmp_path / "arms/no-dropout/Hopper-v5_2", [1.0], algo="no-dropout")
    assert [(run.seed, len(run.steps)) for run in runs_of_default(tmp_path)] == [(0, 5), (1, 1)]


def test_runs_of_two_versions_of_the_code_are_told_apart(tmp_path):
    for seed, commit in enumerate(("a" * 40, "a" * 40, "b" * 40)):
        run = make_run(tmp_path / "arms/mbdp" / f"Hopper-v5_{seed}", [1.0])
        (run / "versions.json").write_text(json.dumps({"commit": commit, "learner": "123"}))
    (tmp_path / "arms/mbdp/Hopper-v5_0/finished.json").write_text("{}")
    rows = commits_table(tmp_path, ("arms",)).splitlines()[2:]
    assert rows == ["| arms | aaaaaaa | 123 | 1 | 1 |", "| arms | bbbbbbb | 123 | 0 | 1 |"]


def arms(folder: Path, **returns: float) -> Path:
    """Four seeds of each arm, whose returns in the nominal and in perturbed worlds differ by the seed's number."""
    for arm, value in returns.items():
        algo = arm.replace("_", "-")
        for seed in range(4):
            run = make_run(folder / algo / f"Hopper-v5_{seed}", [value, value + seed], algo=algo, alpha=len(algo))
            make_robustness(run / "robustness", [algo], seeds=[seed], level=value)
    return folder


def test_claims_are_decided_by_the_seeds_of_the_arms(tmp_path):
    methods = group_runs(find_runs([arms(tmp_path, alpha_only=900.0, no_dropout=100.0, mbdp=500.0)])[0])
    rows = [line.split(" | ") for line in verdicts(methods, ARMS).splitlines()[2:]]
    words = {(row[0].removeprefix("| "), row[2]): row[-1].removesuffix(" |") for row in rows}
    assert words["alpha makes policies more robust", "robustness, alpha-only against no-dropout"] == "confirmed"
    assert words["alpha costs efficiency", "efficiency, alpha-only against no-dropout"] == "refuted"
    assert words["the same, with alpha", "efficiency, mbdp against alpha-only"] == "refuted"
    assert not any("beta-only" in row[2] for row in rows), "it has no runs"


def test_the_heat_maps_of_runs_are_put_together_by_method(tmp_path):
    methods = group_runs(find_runs([arms(tmp_path, alpha_only=900.0, no_dropout=100.0)])[0])
    (together,) = robustness_of(methods)
    assert together.returns["alpha-only"].shape == (4, 2, 2, 2)
    assert list(together.seeds["no-dropout"]) == [0, 1, 2, 3]
    assert together.returns["alpha-only"].mean() - together.returns["no-dropout"].mean() == pytest.approx(800, abs=5)


def test_heat_maps_of_different_worlds_are_not_put_together(tmp_path):
    methods = group_runs(find_runs([arms(tmp_path, alpha_only=900.0, no_dropout=100.0)])[0])
    other = tmp_path / "no-dropout/Hopper-v5_2/robustness"
    shutil.rmtree(other)
    make_robustness(other, ["no-dropout"], seeds=[2], worlds=(0.8, 1.3))
    with pytest.raises(BadInput, match=r"Hopper-v5_2.*its grid is not that of"):
        robustness_of(methods)


def test_without_runs_the_tables_say_so():
    assert verdicts([], ARMS) == methods_table([]) == seeds_table([]) == "No runs yet."


def test_a_method_has_a_row_with_every_seed_of_it(tmp_path):
    methods = group_runs(find_runs([arms(tmp_path, alpha_only=900.0, no_dropout=100.0)])[0])
    rows = {row[1]: row for row in (line.split(" | ") for line in methods_table(methods).splitlines()[2:])}
    assert rows["no-dropout"][2:6] == ["4", "101", "102", "100, 101, 102, 103"]
    assert rows["no-dropout"][7].startswith("10")
    assert rows["alpha-only"][7].startswith("90")
    assert rows["no-dropout"][8:] == ["-", "- |"], "worlds in which they were not tried"


def test_a_seed_has_a_row_with_the_env_steps_until_its_goals(tmp_path):
    make_run(tmp_path / "mbdp/Hopper-v5_0", [100.0] * 18 + [2600.0] * 3)
    runs = find_runs([tmp_path])[0]
    (row,) = (line.split(" | ") for line in seeds_table(runs).splitlines()[2:])
    assert row == ["| Hopper-v5", "0", "21,000", "2,600", "-", "-", "2,600", "2,500: 19,000; 3,400: not yet |"]
    (tmp_path / "mbdp/Hopper-v5_0/finished.json").write_text("{}")
    assert seeds_table(runs).endswith("2,500: 19,000; 3,400: never |")


def test_the_table_of_the_readme_is_what_the_committed_runs_say():
    table = beside_published(runs_of_default(ROOT / "results/evidence"), PUBLISHED)
    assert f"<!-- published -->\n{table}\n<!-- /published -->" in (ROOT / "README.md").read_text()


def test_our_policies_stand_beside_published_ones_in_the_worlds_that_both_were_tried_in(tmp_path):
    for seed in range(2):
        run = make_run(tmp_path / "mbdp" / f"Hopper-v5_{seed}", [1.0, 2.0])
        make_robustness(run / "robustness", ["mbdp"], seeds=[seed], worlds=(0.5, 0.8, 1.0, 1.2, 1.5), level=100.0)
        (run / "finished.json").write_text("{}")
    rows = robustness_table(find_runs([tmp_path])[0], ROOT / "results/published_robustness.csv").splitlines()
    assert rows[2].startswith("| Hopper-v5 | ours | 2 | 10")
    assert rows[3] == "|  | MBPO, v4 | 5 | 3,388 | 1,704 | 974 | 505 |"
    assert len(rows) == 5


def test_the_robustness_table_of_the_readme_is_what_the_committed_runs_say():
    table = robustness_table(runs_of_default(ROOT / "results/evidence"), ROOT / "results/published_robustness.csv")
    assert f"<!-- robustness -->\n{table}\n<!-- /robustness -->" in (ROOT / "README.md").read_text()


def test_the_verdicts_in_the_documents_are_what_the_committed_runs_say(tmp_path):
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs/evidence.md", tmp_path / "docs")
    (tmp_path / "results").symlink_to(ROOT / "results")
    write_verdicts(tmp_path)
    write_seeds(tmp_path)
    assert (tmp_path / "docs/evidence.md").read_text() == (ROOT / "docs/evidence.md").read_text()
