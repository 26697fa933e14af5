import json
import subprocess
import sys

import numpy as np
import pytest

from mbdp.analysis import tables
from mbdp.analysis.run_groups import group_runs
from mbdp.analysis.runs import find_runs, read_run
from mbdp.types import BadInput
from tests.analysis.made_up import make_run


def test_a_run_is_read_from_its_files(tmp_path):
    run = read_run(make_run(tmp_path / "mbdp" / "Hopper-v5_3", [1.0, 4.0], bias=[[0.3, 0.1]]))
    assert (run.algo, run.env, run.seed) == ("mbdp", "Hopper-v5", 3)
    assert (run.steps.tolist(), run.returns.tolist(), run.seconds.tolist()) == ([1000, 2000], [1, 4], [10, 20])
    steps, bias = run.series("model/bias")
    assert (steps.tolist(), bias.tolist()) == ([1001], [0.2])


def test_stable_baselines3s_evaluations_are_a_run_with_the_mean_over_episodes(tmp_path):
    folder = tmp_path / "sac" / "Hopper-v4_1"
    folder.mkdir(parents=True)
    np.savez(
        folder / "evaluations.npz", timesteps=[100, 200], results=[[1.0, 3.0], [5.0, 7.0]], ep_lengths=[[1, 1]] * 2
    )
    ((run,), broken) = find_runs([tmp_path])
    assert (run.algo, run.env, run.seed, broken) == ("sac", "Hopper-v4", 1, [])
    assert run.returns.tolist() == [2.0, 6.0]


def test_pickled_evaluations_are_never_loaded(tmp_path):
    folder = tmp_path / "Hopper-v4_1"
    folder.mkdir()
    results = np.array([[1.0]], dtype=object)
    np.savez(folder / "evaluations.npz", timesteps=[100], results=results)
    with pytest.raises(BadInput, match=r"evaluations\.npz"):
        read_run(folder)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("config.json", "{", r"config.json: cannot be read"),
        ("config.json", "{}", r"config.json: it needs algo, env, seed"),
        ("metrics.jsonl", "", r"no evaluation in it yet"),
        ("metrics.jsonl", '{"step": 1, "eval/mean_reward": null}\n', r"step 1 is not a finite number"),
        ("metrics.jsonl", 'x\n{"step": 1, "eval/mean_reward": 1}\n', r"line 1 is not a JSON object"),
        ("metrics.jsonl", '{"step": 2, "eval/mean_reward": 1}\n{"step": 1, "eval/mean_reward": 1}\n', r"not in order"),
    ],
)
def test_a_broken_run_is_listed_with_its_reason_beside_the_good_ones(tmp_path, name, content, reason):
    make_run(tmp_path / "Hopper-v5_0", [1.0])
    (make_run(tmp_path / "Hopper-v5_1", [1.0]) / name).write_text(content)
    runs, (broken,) = find_runs([tmp_path])
    assert [run.seed for run in runs] == [0]
    assert broken.folder.name == "Hopper-v5_1"
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(broken.reason)


def test_an_empty_run_directory_is_listed(tmp_path):
    (tmp_path / "mbdp" / "Hopper-v5_0").mkdir(parents=True)
    assert [broken.reason for broken in find_runs([tmp_path])[1]] == [
        "there is no metrics.jsonl or evaluations.npz in it"
    ]


def test_a_run_that_failed_in_a_sweep_is_listed_with_its_error(tmp_path):
    (make_run(tmp_path / "Hopper-v5_0", [1.0]) / "error.txt").write_text("the policy has diverged\n")
    assert [broken.reason for broken in find_runs([tmp_path])[1]] == ["it failed: the policy has diverged"]


def test_a_last_line_cut_by_a_dying_process_is_noted_and_the_rest_used(tmp_path):
    file = make_run(tmp_path / "Hopper-v5_0", [1.0, 2.0]) / "metrics.jsonl"
    file.write_text(file.read_text() + '{"step": 30')
    run = read_run(file.parent)
    assert len(run.steps) == 2
    assert run.notes == ("the last line of metrics.jsonl is unfinished",)


def test_a_run_that_ended_early_says_so(tmp_path):
    assert read_run(make_run(tmp_path / "Hopper-v5_0", [1.0], steps=9_000)).notes == ("ends at step 1,000 of 9,000",)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadInput, match="nowhere: there is no such folder"):
        find_runs([tmp_path / "nowhere"])


def test_seeds_of_one_folder_are_one_method(tmp_path):
    for seed in range(3):
        make_run(tmp_path / "mbdp" / f"Hopper-v5_{seed}", [1.0])
    assert [(m.name, len(m.runs)) for m in group_runs(find_runs([tmp_path])[0])] == [("mbdp", 3)]


def test_methods_of_one_algorithm_are_named_by_the_settings_that_differ(tmp_path):
    for alpha in (0.1, 0.2):
        make_run(tmp_path / str(alpha) / "Hopper-v5_0", [1.0], alpha=alpha)
    assert [m.name for m in group_runs(find_runs([tmp_path])[0])] == ["mbdp alpha 0.1", "mbdp alpha 0.2"]


def test_the_same_seed_with_the_same_settings_in_two_folders_is_two_methods(tmp_path):
    for name in ("before", "after"):
        make_run(tmp_path / name / "Hopper-v5_0", [1.0])
    assert [m.name for m in group_runs(find_runs([tmp_path])[0])] == ["after", "before"]


def test_other_seeds_with_the_same_settings_in_another_folder_are_one_method(tmp_path):
    for seed in (0, 1):
        make_run(tmp_path / f"job{seed}" / f"Hopper-v5_{seed}", [1.0])
    assert [(m.name, len(m.runs)) for m in group_runs(find_runs([tmp_path])[0])] == [("mbdp", 2)]


def test_a_label_of_the_user_wins(tmp_path):
    make_run(tmp_path / "a" / "Hopper-v5_0", [1.0])
    make_run(tmp_path / "b" / "Hopper-v5_0", [1.0], alpha=0.5)
    runs, _ = find_runs([f"ours={tmp_path / 'a'}", f"theirs={tmp_path / 'b'}"])
    assert [m.name for m in group_runs(runs)] == ["ours", "theirs"]


def test_tidy_tables_have_a_row_per_evaluation_and_list_broken_runs(tmp_path):
    make_run(tmp_path / "Hopper-v5_0", [1.0, 2.0], bias=[[0.3, 0.1]])
    (tmp_path / "Hopper-v5_1").mkdir()
    runs, broken = find_runs([tmp_path])
    methods = group_runs(runs)
    assert tables.evaluations(methods)[1] | {"algo": ""} == {
        "method": "mbdp",
        "algo": "",
        "env": "Hopper-v5",
        "seed": 0,
        "step": 2000,
        "return": 2.0,
        "seconds": 20.0,
    }
    assert [row["kept"] for row in tables.refits(methods)] == ["1"]
    assert "broken: there is no metrics.jsonl" in tables.to_csv(tables.runs(methods, broken))


def test_analysis_never_imports_the_learner_or_jax():
    modules = "runs run_groups learning tables robustness_results published report.page "
    modules += "figure_curves figure_heatmaps figure_ablation figure_residual"
    code = "import sys, importlib\n" + "".join(
        f"importlib.import_module('mbdp.analysis.{m}')\n" for m in modules.split()
    )
    code += (
        "print([m for m in sys.modules if m.split('.')[0] in ('jax', 'equinox', 'mujoco') or m == 'mbdp.algorithm'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_runs_that_were_trained_in_different_worlds_are_different_methods(tmp_path):
    for seed, perturb in enumerate(({"mass": 0.8}, {"mass": 1.2}, {})):
        config = make_run(tmp_path / "mbdp" / f"Hopper-v5_{seed}", [1.0, 2.0]) / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | ({"perturb": perturb} if perturb else {})))
    names = [method.name for method in group_runs(find_runs([tmp_path])[0])]
    assert names == ["mbdp perturb mass 0.8", "mbdp perturb mass 1.2", "mbdp perturb nominal"]
