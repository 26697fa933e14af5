"""Small sweeps on the point mass."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.sweep.state import ATTEMPTS
from tests.conftest import TINY
from tests.faults.test_signals import wait_until

# d_model holds one fit and everything is saved at every step, so that an attempt can end, and be missed, anywhere.
COMMON = TINY | {
    "env": POINT_MASS,
    "steps": 120,
    "d_model_fits": 1,
    "evaluate_every": 30,
    "episodes": 2,
    "checkpoint_minutes": 0.0,
}


def write_spec(folder: Path, tables: str = "[grid]\nseed = [0, 1]", **common: Any) -> Path:
    """A spec of tiny runs, whose folders are in `folder`/runs."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in (COMMON | {"out": str(folder / "runs")} | common).items()]
    file = folder / "spec.toml"
    file.write_text("\n".join([*lines, tables]) + "\n")
    return file


def start_sweep(spec: Path, *options: str) -> subprocess.Popen[str]:
    """`mbdp sweep` in a process of its own."""
    command = [sys.executable, "-m", "mbdp", "sweep", str(spec), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def attempts(run: Path) -> list[dict[str, Any]]:
    """The processes that have worked on a run."""
    return [json.loads(line) for line in (run / ATTEMPTS).read_text().splitlines()]


def wait_until_learning(run: Path) -> int:
    """Wait until a run has fitted its model a few times; the id of its process."""
    log = run / "metrics.jsonl"
    wait_until(lambda: log.exists() and log.stat().st_size > 1500)
    return int(attempts(run)[-1]["pid"])


def kill_when_learning(run: Path, number: int) -> threading.Thread:
    """Send a signal to the process of a run, while the caller does something else."""
    thread = threading.Thread(target=lambda: os.kill(wait_until_learning(run), number), daemon=True)
    thread.start()
    return thread
