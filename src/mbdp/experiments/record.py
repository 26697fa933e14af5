"""The files of a run directory, written as the run goes on, and cut back to a checkpoint when it is resumed."""

import io
import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
from tensorboardX import SummaryWriter

from mbdp.analysis.curves import draw_curves
from mbdp.api import MBDP
from mbdp.envs.tasks import task_of
from mbdp.experiments.checkpoint_folder import save_in
from mbdp.experiments.evaluate import Evaluation
from mbdp.experiments.trackers import open_trackers
from mbdp.experiments.versions import versions
from mbdp.storage.files import replace_file, sync
from mbdp.types import BadInput


class Record:
    """What a run leaves behind; `past` is what its checkpoint says of it, if it is resumed; `track` names trackers."""

    def __init__(
        self,
        folder: Path,
        agent: MBDP,
        past: dict[str, Any] | None = None,
        track: Sequence[str] = (),
        world: Mapping[str, Any] = MappingProxyType({}),
    ):
        self.folder, self.metrics = folder, folder / "metrics.jsonl"
        self.began = time.monotonic() - (past["elapsed"] if past else 0.0)
        self.evaluations: list[tuple[int, list[float], list[int]]] = past["evaluations"] if past else []
        about = {"env": agent.env_id, "algo": agent.algo, "seed": agent.seed, "settings": asdict(agent.config)}
        about |= world
        about |= {"data": agent.data} if agent.data else {}
        about |= {"envs": agent.world.envs} if agent.world.envs > 1 else {}
        about |= {"termination": "learned"} if agent.termination is None and task_of(agent.env_id).termination else {}
        _write_json(folder / "config.json", about)
        if past:
            learned = getattr(agent.config, "data_steps", 0) - agent.learner.data_left
            cut_metrics(self.metrics, agent.learner.step, learned)
            self._write_evaluations()
        else:
            _write_json(folder / "versions.json", versions())
        self.events = SummaryWriter(str(folder), flush_secs=30, purge_step=agent.learner.step + 1 if past else None)
        self.trackers = open_trackers(track, folder, _plain(about))

    def add(self, step: int, numbers: dict[str, Any]) -> None:
        """One line of metrics.jsonl, and the same numbers for TensorBoard and the trackers."""
        plain = {name: _plain(value) for name, value in numbers.items()}
        line = {"step": step, **plain, "time/elapsed": round(self.elapsed(), 3)}
        with self.metrics.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        scalars = {name: value for name, value in plain.items() if isinstance(value, int | float)}
        for name, value in scalars.items():
            self.events.add_scalar(name, value, step)
        for tracker in self.trackers:
            tracker.add(step, scalars)

    def evaluation(self, step: int, result: Evaluation, numbers: dict[str, Any]) -> None:
        """Log an evaluation, here and in Stable-Baselines3's evaluations.npz."""
        means = {
            "eval/mean_reward": result.returns.mean(),
            "eval/std_reward": result.returns.std(),
            "eval/mean_ep_length": result.lengths.mean(),
            "eval/mean_discounted": result.discounted.mean(),
        }
        self.add(step, means | numbers)
        self.evaluations.append((step, result.returns.tolist(), result.lengths.tolist()))
        self._write_evaluations()

    def checkpoint(self, agent: MBDP, words: dict[str, Any]) -> None:
        """Save the policy and, when everything else up to this step is on the disk, the agent, whole."""
        try:
            agent.policy().save(self.folder)
        except BadInput:
            if all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(agent.learner.agent)):
                raise
            # A policy of NaN is of no use to anybody; the last one that was is left in its place.
        if self.metrics.exists():
            sync(self.metrics)
        save_in(self.folder, agent, words | {"elapsed": self.elapsed(), "evaluations": self.evaluations})

    def close(self) -> None:
        """Let TensorBoard's file and the trackers write what they still have."""
        for one in (self.events, *self.trackers):
            with suppress(OSError):  # what the run ended with matters more than a copy of its numbers
                one.close()

    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def draw(self) -> None:
        draw_curves([self.folder], self.folder / "learning_curve.png")

    def _write_evaluations(self) -> None:
        content = io.BytesIO()
        steps, returns, lengths = zip(*self.evaluations, strict=True) if self.evaluations else ((), (), ())
        np.savez(content, timesteps=np.array(steps, int), results=np.array(returns), ep_lengths=np.array(lengths))
        replace_file(self.folder / "evaluations.npz", content.getvalue())


def cut_metrics(file: Path, step: int, data_step: int = 0) -> None:
    """Drop what was written after an env step, or a step of a warm start from data, and an unfinished last line."""
    kept = []
    for line in file.read_bytes().splitlines() if file.exists() else []:
        try:
            numbers = json.loads(line)
            if numbers["step"] > step or numbers.get("data/step", 0) > data_step:
                break
        except (ValueError, LookupError, TypeError):
            break
        kept.append(line + b"\n")
    replace_file(file, b"".join(kept))


def _write_json(file: Path, content: dict[str, Any]) -> None:
    replace_file(file, json.dumps(_plain(content), indent=1).encode() + b"\n")


def _plain(value: Any) -> Any:
    """A value as JSON can hold it; a number that is not finite becomes null."""
    if isinstance(value, dict):
        return {name: _plain(x) for name, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if isinstance(value, str | bool | int) or value is None:
        return value
    number = float(value)
    return number if math.isfinite(number) else None
