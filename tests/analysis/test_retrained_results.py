"""Runs of many worlds become one grid; nothing is averaged that is not there."""

import numpy as np
import pytest

from mbdp.analysis.retrained_results import retrained_results
from mbdp.analysis.runs import find_runs
from mbdp.types import BadInput
from tests.analysis.made_up import make_run


def make_grid(folder, seeds=(0, 1), algo="mbdp"):
    for mass in (0.8, 1.2):
        for friction in (0.5, 1.0, 2.0):
            for seed in seeds:
                world = {"mass": mass, "friction": friction}
                where = folder / algo / f"{mass}_{friction}" / f"Hopper-v5_{seed}"
                make_run(where, [0.0] * 9 + [100 * mass + friction + seed / 8], algo=algo, world=world)
    return folder


def test_a_cell_is_the_last_return_of_the_policy_that_was_trained_in_it(tmp_path):
    ((result,), notes) = retrained_results(find_runs([make_grid(tmp_path)])[0])
    assert notes == []
    assert (result.env, result.protocol) == ("Hopper-v5", "retrained")
    assert result.axes == {"mass": [0.8, 1.2], "friction": [0.5, 1.0, 2.0]}
    expected = np.array([[80.5, 81, 82], [120.5, 121, 122]])
    assert result.seeds == {"mbdp": [0, 1]}
    assert result.returns["mbdp"][..., 0] == pytest.approx(np.stack([expected, expected + 1 / 8]))


def test_a_seed_that_lacks_a_world_is_named_and_left_out(tmp_path):
    make_grid(tmp_path)
    (tmp_path / "mbdp" / "0.8_1.0" / "Hopper-v5_1").rename(tmp_path / "gone")
    runs = [run for run in find_runs([tmp_path])[0] if "gone" not in str(run.folder)]
    ((result,), (note,)) = retrained_results(runs)
    assert result.seeds == {"mbdp": [0]}
    assert note == "not in the figure: seed 1 of mbdp in Hopper-v5, which has 5 of 6 worlds"


def test_no_whole_seed_is_refused(tmp_path):
    make_grid(tmp_path, seeds=[0])
    runs = [run for run in find_runs([tmp_path])[0] if "0.8_1.0" not in str(run.folder)]
    with pytest.raises(BadInput, match="no seed has a run in every world of Hopper-v5"):
        retrained_results(runs)


def test_a_run_of_the_nominal_world_is_named(tmp_path):
    make_grid(tmp_path, seeds=[0])
    make_run(tmp_path / "plain" / "Hopper-v5_0", [1.0])
    with pytest.raises(BadInput, match=r"plain/Hopper-v5_0: every run must be trained with `perturb`.*it has none"):
        retrained_results(find_runs([tmp_path])[0])
