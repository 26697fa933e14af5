"""Sweeps on a real Ray cluster of two nodes, which are two sets of processes on this machine."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from mbdp.experiments.cli import main
from mbdp.experiments.sweep.state import ATTEMPTS, is_finished
from tests.experiments.sweeps import attempts, start_sweep, wait_until_learning, write_spec
from tests.faults.runs import remains
from tests.faults.test_signals import wait_until

SEEDS = range(4)
STEPS = 400  # so many that a run lasts far longer than a cluster needs to notice the death of a node


def runs_in(folder: Path) -> list[Path]:
    return [folder / "runs" / "mbdp" / f"mbdp-PointMass-v0_{seed}" for seed in SEEDS]


def under_way(folder: Path) -> list[Path]:
    return [run for run in runs_in(folder) if (run / ATTEMPTS).exists() and not is_finished(run)]


def spec_in(folder: Path) -> Path:
    return write_spec(folder, f"[grid]\nseed = {list(SEEDS)}", steps=STEPS)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A head that runs nothing, and two nodes with one core each."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same sweep by the local pool; not to be changed."""
    folder = tmp_path_factory.mktemp("local")
    assert main(["sweep", str(spec_in(folder)), "--workers", "2"]) == 0
    return folder


def test_a_sweep_that_loses_a_node_ends_like_one_on_this_machine(cluster, local, tmp_path):
    with start_sweep(spec_in(tmp_path), "--ray", cluster.address) as sweep:
        wait_until_learning(runs_in(tmp_path)[0])
        wait_until(lambda: len(under_way(tmp_path)) == 2)  # so whichever node goes, it has a run
        node = next(iter(cluster.worker_nodes))
        cluster.remove_node(node, allow_graceful=False)
        time.sleep(1)
        cluster.add_node(num_cpus=1)
        printed, _ = sweep.communicate(timeout=900)
    assert sweep.returncode == 0, printed
    assert "all 4 runs are finished" in printed
    lives = [attempts(run) for run in runs_in(tmp_path)]
    assert sum(map(len, lives)) > len(SEEDS)  # the node had a run
    for run, life in zip(runs_in(tmp_path), lives, strict=True):
        finished = json.loads((run / "finished.json").read_text())
        assert finished["pid"] == life[-1]["pid"]  # the last that began it ended it, and nobody began it afterwards
        assert [line["step"] for line in life] == sorted(line["step"] for line in life)
    assert [remains(run) for run in runs_in(tmp_path)] == [remains(run) for run in runs_in(local)]


def test_an_interrupted_sweep_on_a_cluster_leaves_checkpoints_and_goes_on(cluster, local, tmp_path):
    spec = spec_in(tmp_path)
    with start_sweep(spec, "--ray", cluster.address) as sweep:
        wait_until_learning(runs_in(tmp_path)[0])
        sweep.terminate()
        printed, _ = sweep.communicate(timeout=300)
    assert sweep.returncode == 143, printed
    assert not all(map(is_finished, runs_in(tmp_path)))
    with start_sweep(spec, "--ray", cluster.address) as sweep:
        printed, _ = sweep.communicate(timeout=900)
    assert sweep.returncode == 0, printed
    assert [remains(run) for run in runs_in(tmp_path)] == [remains(run) for run in runs_in(local)]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", "--ray 127.0.0.1:1: nothing answers there"),
        ("no-such-host.invalid:6379", "nothing answers there"),
        ("head", "--ray takes HOST:PORT of the head node, or auto; not 'head'"),
        ("auto", "--ray auto: no Ray cluster can be reached"),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_one_line_and_exit_code_2(address, message, tmp_path, capfd):
    assert main(["sweep", str(spec_in(tmp_path)), "--ray", address]) == 2
    printed = capfd.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "runs").exists()
