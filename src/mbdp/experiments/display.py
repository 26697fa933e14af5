"""The display of a run: a live panel in a terminal, plain lines elsewhere."""

import sys
import time
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mbdp import algorithm

NUMBERS = "{task.fields[numbers]}"


class Display:
    """Env steps, return, steps per second, time left, model bias, members kept, share of samples dropped."""

    def __init__(self, total: int, done: int = 0, *, live: bool = True, silent: bool = False):
        self.live = live and sys.stdout.isatty()
        self.silent = silent
        self.total, self.began_at, self.started = total, done, time.monotonic()
        self.step = done
        self.episodes: deque[tuple[float, int]] = deque(maxlen=10)
        self.latest: dict[str, Any] = {}
        columns = (
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn(NUMBERS),
        )
        self.bar = Progress(*columns, console=Console(), disable=not self.live or silent)
        self.task = self.bar.add_task("", total=total, completed=done, numbers="")

    def __enter__(self) -> "Display":
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def show(self, progress: algorithm.Progress) -> None:
        """Take in one env step."""
        self.step = progress.step
        if progress.outcome and progress.outcome.episode_return is not None:
            self.episodes.append((progress.outcome.episode_return, progress.outcome.episode_length or 0))
        self.latest |= progress.metrics
        if self.live and not self.silent:
            self.bar.update(self.task, completed=progress.step, numbers=self.numbers())

    def evaluated(self, step: int, returns: np.ndarray) -> None:
        """Say what an evaluation gave."""
        self.latest["eval/mean_reward"] = float(returns.mean())
        line = f"step {step:>8,}  evaluation {returns.mean():8.1f} ± {returns.std():.1f}"
        self.say(line if self.live else f"{line}  {self.numbers()}")

    def say(self, line: str) -> None:
        """Print a line, above the panel if there is one."""
        if self.silent:
            return
        if self.live:
            self.bar.console.print(line, highlight=False)
        else:
            print(line, flush=True)

    def averages(self) -> dict[str, float]:
        """Means over the last episodes, and the speed, under Stable-Baselines3's names."""
        numbers = {"time/fps": self.speed()}
        if self.episodes:
            returns, lengths = np.mean(self.episodes, axis=0)
            numbers |= {"rollout/ep_rew_mean": float(returns), "rollout/ep_len_mean": float(lengths)}
        return numbers

    def speed(self) -> float:
        return (self.step - self.began_at) / max(time.monotonic() - self.started, 1e-9)

    def numbers(self) -> str:
        parts = [f"{self.speed():.1f} steps/s"]
        if not self.live and self.speed():
            parts.append(f"{(self.total - self.step) / self.speed() / 60:.0f} min left")
        if not self.step and "data/step" in self.latest:
            parts.append(f"learning from data, step {self.latest['data/step']:,}")
        if self.episodes:
            parts.append(f"return {np.mean([r for r, _ in self.episodes]):.0f}")
        return ", ".join(parts + _of_the_model(self.latest))


def _of_the_model(latest: Mapping[str, Any]) -> list[str]:
    if "model/bias" not in latest:
        return []
    members = sum(name.startswith("model/bias_") for name in latest)
    parts = [f"bias {latest['model/bias']:.3f}", f"{len(latest['model/kept'])}/{members} members kept"]
    if "imagination/alpha_effective" in latest:
        parts.append(f"alpha {float(latest['imagination/alpha_effective']):.2f}")
    return parts
