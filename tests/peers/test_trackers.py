"""W&B and MLflow, the real packages, offline: they are told what metrics.jsonl says."""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mbdp.envs.toy import POINT_MASS
from tests.conftest import TINY

pytestmark = pytest.mark.filterwarnings("default")  # both warn of affairs of their own

QUICK = [part for name, value in TINY.items() for part in ("--" + name.replace("_", "-"), str(value))]
TRAIN = ["train", POINT_MASS, *QUICK, "--evaluate-every", "50", "--episodes", "2", "--quiet"]
BLOCK = 2**15


def mbdp(*arguments: str) -> str:
    """The command line in a process of its own that can reach no server; what it prints."""
    nowhere = {"WANDB_BASE_URL": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    command = [sys.executable, "-m", "mbdp", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | nowhere)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that both followed, and resumed once."""
    out = tmp_path_factory.mktemp("tracked")
    mbdp(*TRAIN, "--out", str(out), "--track", "wandb", "--track", "mlflow")
    folder = out / "mbdp" / "mbdp-PointMass-v0_0"
    mbdp("resume", str(folder), "--steps", "150", "--track", "wandb", "--track", "mlflow", "--quiet")
    return folder


def evaluations(run: Path) -> list[tuple[int, float]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(line["step"], line["eval/mean_reward"]) for line in lines if "eval/mean_reward" in line]


def records(log: bytes) -> Iterator[bytes]:
    """The records of a log as LevelDB writes it, after W&B's header of 7 bytes: parts in blocks of 32 KiB."""
    place, record = 7, b""
    while place + 7 <= len(log):
        if BLOCK - place % BLOCK < 7:  # no room for the head of a part: zeros
            place += BLOCK - place % BLOCK
            continue
        size, kind = struct.unpack_from("<HB", log, place + 4)
        record += log[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


def test_mlflow_has_the_metrics_and_settings_of_a_resumed_run_in_one_store(run):
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{run / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("mbdp")
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.status == "FINISHED"
    assert found.data.params["algo"] == "mbdp"
    assert found.data.params["members"] == str(TINY["members"])
    history = client.get_metric_history(found.info.run_id, "eval/mean_reward")
    assert [(one.step, one.value) for one in history] == evaluations(run)


def test_wandb_has_the_metrics_in_its_offline_files(run):
    from wandb.proto import wandb_internal_pb2

    told, identities = [], set()
    for file in sorted(run.glob("wandb/offline-run-*/*.wandb")):
        identities.add(file.stem)
        for content in records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(content)
            items = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            if "eval/mean_reward" in items:
                told.append((items["step"], items["eval/mean_reward"]))
    assert sorted(told) == evaluations(run)
    assert len(identities) == 1  # so that both parts become one run where they are sent


def test_nothing_is_written_outside_of_the_run(run):
    assert sorted(path.name for path in run.parent.parent.iterdir()) == ["mbdp"]
