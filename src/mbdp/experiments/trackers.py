"""Trackers that people follow runs with, beside TensorBoard's files: W&B and MLflow, both offline.

What they are told stays in the run directory: `wandb sync RUN/wandb/offline-run-*` sends a run, and
`mlflow ui --backend-store-uri sqlite:///RUN/mlflow.db` shows one.
"""

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from mbdp.types import BadInput

NAMES = ("wandb", "mlflow")
NEEDED = {"wandb": ("wandb",), "mlflow": ("mlflow", "sqlalchemy", "alembic")}


class Tracker(Protocol):
    """Somebody who is told the numbers of a run."""

    def add(self, step: int, numbers: Mapping[str, float]) -> None: ...
    def close(self) -> None: ...


def add_track(parser: argparse.ArgumentParser) -> None:
    """The option of commands that train."""
    text = "log there too, offline, beside TensorBoard's files; can be given twice"
    parser.add_argument("--track", action="append", choices=NAMES, default=[], help=text)


def check_installed(names: Sequence[str]) -> None:
    """BadInput for a tracker whose packages are missing; nothing is imported."""
    for name in names:
        if missing := [package for package in NEEDED[name] if find_spec(package) is None]:
            raise BadInput(f"--track {name} needs {missing[0]}, which is not installed: pip install 'mbdp[{name}]'")


def open_trackers(names: Sequence[str], folder: Path, about: Mapping[str, Any]) -> list[Tracker]:
    """The trackers by their names; `about` is config.json."""
    check_installed(names)
    kinds: dict[str, Callable[[Path, Mapping[str, Any]], Tracker]] = {"wandb": WandB, "mlflow": MLflow}
    return [kinds[name](folder, about) for name in dict.fromkeys(names)]


class WandB:
    """An offline run of Weights & Biases in RUN/wandb; one that is resumed becomes a second one, under the same id."""

    def __init__(self, folder: Path, about: Mapping[str, Any]):
        # Set before W&B is imported, which looks for a server, and says much, unless it is told not to.
        os.environ |= {"WANDB_SILENT": "true", "WANDB_ERROR_REPORTING": "false"}
        wandb = import_module("wandb")
        self.run = wandb.init(
            project="mbdp",
            name=_name(about),
            id=_identity(folder),
            resume="allow",
            dir=str(folder),
            config=dict(about),
            mode="offline",
            settings=wandb.Settings(silent=True, console="off", disable_git=True, save_code=False),
        )

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        # A step can bring a refit and an evaluation, and W&B takes a step of its own only once.
        self.run.log({**numbers, "step": step})

    def close(self) -> None:
        self.run.finish()


class MLflow:
    """A run in a SQLite store of its own, RUN/mlflow.db; one that is resumed goes on in it."""

    def __init__(self, folder: Path, about: Mapping[str, Any]):
        # Alembic would tell of every table that it makes, and MLflow counts its uses unless it is told not to.
        os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_LOGGING_LEVEL": "ERROR"}
        client = import_module("mlflow.tracking").MlflowClient
        self.client = client(tracking_uri=f"sqlite:///{(folder / 'mlflow.db').absolute()}")
        known = self.client.get_experiment_by_name("mbdp")
        experiment = known.experiment_id if known else self._new_experiment(folder)
        runs = self.client.search_runs([experiment], max_results=1)
        if runs:
            self.id = runs[0].info.run_id
            self.client.update_run(self.id, status="RUNNING")
            return
        self.id = self.client.create_run(experiment, run_name=_name(about)).info.run_id
        for name, value in {**about, **about["settings"]}.items():
            if not isinstance(value, Mapping):
                self.client.log_param(self.id, name, value)

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        metric, now = import_module("mlflow.entities").Metric, time.time_ns() // 10**6
        self.client.log_batch(self.id, metrics=[metric(name, value, now, step) for name, value in numbers.items()])

    def close(self) -> None:
        self.client.set_terminated(self.id)

    def _new_experiment(self, folder: Path) -> str:
        artifacts = (folder / "mlflow-artifacts").absolute().as_uri()
        return str(self.client.create_experiment("mbdp", artifact_location=artifacts))


def _name(about: Mapping[str, Any]) -> str:
    return f"{about['algo']}/{about['env']}_{about['seed']}"


def _identity(folder: Path) -> str:
    """The id of a run for W&B, made once and kept in its folder."""
    file = folder / "wandb" / "id.txt"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(os.urandom(8).hex() + "\n")
    return file.read_text().strip()
