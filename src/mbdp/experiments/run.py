"""One training run: the agent learns, and its run directory records how."""

import json
import math
import platform
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from tensorboardX import SummaryWriter

from mbdp.agent import MBDP
from mbdp.analysis.curves import draw_curves
from mbdp.checkpoint import replace_file
from mbdp.envs.tasks import make
from mbdp.experiments.display import Display
from mbdp.experiments.evaluate import Evaluation, evaluate
from mbdp.types import BadInput

PACKAGES = ("mbdp", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco")


def new_run_directory(out: Path, algo: str, env_id: str, seed: int) -> Path:
    """Make `out`/ALGO/ENV_SEED; one that exists is never touched."""
    folder = out / algo / f"{env_id.replace('/', '-')}_{seed}"
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise BadInput(
            f"{folder} exists, and nothing is overwritten: choose another --out or --seed, or delete it"
        ) from None
    except OSError as error:
        raise BadInput(f"--out: {folder} cannot be made ({error.strerror})") from None
    return folder


def train(
    agent: MBDP,
    folder: Path,
    *,
    evaluate_every: int = 1000,
    episodes: int = 10,
    checkpoint_minutes: float = 5.0,
    quiet: bool = False,
) -> None:
    """Learn until the configured number of env steps, evaluating, logging and saving into `folder`."""
    record = Record(folder, agent)
    envs = [make(agent.env_id) for _ in range(episodes)]
    until, saved_at = agent.config.steps, time.monotonic()
    with Display(until, agent.learner.step, live=not quiet) as display, interruptible() as interrupted:
        for progress in agent.iterate(until):
            display.show(progress)
            refitted, due = (
                "model/bias" in progress.metrics,
                progress.step % evaluate_every == 0 or progress.step == until,
            )
            if refitted:
                record.add(progress.step, progress.metrics)
            if due:
                result = evaluate(agent.policy(), envs, discount=agent.config.discount)
                display.evaluated(progress.step, result.returns)
                training = {name: x for name, x in progress.metrics.items() if name.startswith("train/")}
                believed = {"eval/expected_discounted": agent.value(result.starts).mean()}
                record.evaluation(progress.step, result, believed | training | display.averages())
            if interrupted or time.monotonic() - saved_at > 60 * checkpoint_minutes or progress.step == until:
                record.checkpoint(agent)
                saved_at = time.monotonic()
            if interrupted:
                raise KeyboardInterrupt
    record.close()


class Record:
    """The files of a run directory, written as the run goes on."""

    def __init__(self, folder: Path, agent: MBDP):
        self.folder, self.began = folder, time.time()
        self.events = SummaryWriter(str(folder), flush_secs=30)
        self.evaluations: list[tuple[int, Evaluation]] = []
        about = {"env": agent.env_id, "algo": agent.algo, "seed": agent.seed, "settings": asdict(agent.config)}
        _write_json(folder / "config.json", about)
        _write_json(folder / "versions.json", versions())

    def add(self, step: int, numbers: dict[str, Any]) -> None:
        """One line of metrics.jsonl, and the same numbers for TensorBoard."""
        plain = {name: _plain(value) for name, value in numbers.items()}
        line = {"step": step, **plain, "time/elapsed": round(time.time() - self.began, 3)}
        with (self.folder / "metrics.jsonl").open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        for name, value in plain.items():
            if isinstance(value, int | float):
                self.events.add_scalar(name, value, step)

    def evaluation(self, step: int, result: Evaluation, numbers: dict[str, Any]) -> None:
        """Log an evaluation, here and in Stable-Baselines3's evaluations.npz."""
        means = {
            "eval/mean_reward": result.returns.mean(),
            "eval/std_reward": result.returns.std(),
            "eval/mean_ep_length": result.lengths.mean(),
            "eval/mean_discounted": result.discounted.mean(),
        }
        self.add(step, means | numbers)
        self.evaluations.append((step, result))
        steps, results = zip(*self.evaluations, strict=True)
        partial = self.folder / ".evaluations.partial.npz"
        np.savez(
            partial,
            timesteps=np.array(steps),
            results=np.stack([r.returns for r in results]),
            ep_lengths=np.stack([r.lengths for r in results]),
        )
        partial.replace(self.folder / "evaluations.npz")

    def checkpoint(self, agent: MBDP) -> None:
        """Save the agent, whole, and its policy."""
        agent.save(self.folder / "checkpoints" / "latest.mbdp")
        agent.policy().save(self.folder)

    def close(self) -> None:
        self.events.close()
        draw_curves([self.folder], self.folder / "learning_curve.png")


def versions() -> dict[str, str]:
    """What this result was made with."""
    return {name: version(name) for name in PACKAGES} | {
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """A list that is filled by SIGINT or SIGTERM; the second one acts as it would without us."""
    caught: list[int] = []
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}

    def catch(number: int, frame: Any) -> None:
        caught.append(number)
        for one, handler in before.items():
            signal.signal(one, handler)

    for one in before:
        signal.signal(one, catch)
    try:
        yield caught
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


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
