"""Runs of a benchmark, by the command line: what was begun goes on from its last checkpoint, what is finished stays."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.cli import main


def run_of(out: Path, env: str, seed: int, steps: int, *options: str) -> Path:
    """The folder of a run of so many env steps, after all of them."""
    folder = out / "mbdp" / f"{env.replace('/', '-')}_{seed}"
    if last_step(folder) >= steps:
        return folder
    if checkpoints_of(folder):
        command = ["resume", str(folder), "--quiet", *(["--env", env] if ":" in env else [])]
    else:
        shutil.rmtree(folder, ignore_errors=True)  # it died before its first checkpoint
        command = ["train", env, "--seed", str(seed), "--steps", str(steps), "--out", str(out), "--quiet", *options]
    if code := main(command):
        sys.exit(code)
    return folder


def evaluations(run: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl that have an evaluation in them."""
    return [line for line in lines_of(run) if "eval/mean_reward" in line]


def lines_of(run: Path) -> list[dict[str, Any]]:
    """All whole lines of metrics.jsonl."""
    file = run / "metrics.jsonl"
    texts = file.read_text().splitlines() if file.exists() else []
    return [json.loads(text) for text in texts if text.endswith("}")]


def last_step(run: Path) -> int:
    """Env steps at the last evaluation; 0 before there is one."""
    found = evaluations(run)
    return int(found[-1]["step"]) if found else 0
