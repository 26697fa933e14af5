"""One training run: the agent learns, and its run directory records how."""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from mbdp import interruption
from mbdp.algorithm import Progress
from mbdp.api import MBDP
from mbdp.experiments.alarms import Alarms
from mbdp.experiments.display import Display
from mbdp.experiments.evaluate import evaluate
from mbdp.experiments.record import Record
from mbdp.experiments.theory_metrics import theory_metrics
from mbdp.experiments.training_world import NOMINAL_WORLD, TrainingWorld, make_judging_world
from mbdp.interruption import Interrupted
from mbdp.types import BadInput, Broken


def new_run_directory(out: Path, algo: str, env_id: str, seed: int) -> Path:
    """Make `out`/ALGO/ENV_SEED; one that exists is never touched."""
    folder = out / algo / f"{env_id.replace('/', '-')}_{seed}"
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise BadInput(
            f"{folder} exists, and nothing is overwritten: choose another --out or --seed, delete it, or go on with "
            f"it: mbdp resume {folder}"
        ) from None
    except OSError as error:
        raise BadInput(f"--out: {folder} cannot be made ({error.strerror})") from None
    return folder


def what_next(folder: Path, env_id: str) -> str:
    """What to tell at the end of a run: files never import code, so an id that does is given again."""
    again = f" --env {env_id}" if ":" in env_id else ""
    return f"done: policy, metrics and {folder / 'learning_curve.png'}; next: mbdp evaluate {folder}{again}"


def train(
    agent: MBDP,
    folder: Path,
    *,
    evaluate_every: int = 1000,
    episodes: int = 10,
    checkpoint_minutes: float = 5.0,
    quiet: bool = False,
    track: Sequence[str] = (),
    world: TrainingWorld = NOMINAL_WORLD,
    past: dict[str, Any] | None = None,
) -> None:
    """Learn until the configured number of env steps, evaluating, logging and saving into `folder`.

    `past` is what a checkpoint of the run says of it; without it the run begins.
    """
    schedule = {"evaluate_every": evaluate_every, "episodes": episodes, "checkpoint_minutes": checkpoint_minutes}
    with interruptible() as caught, _explained(folder):
        record = Record(folder, agent, past, track, world.words())
        with Display(agent.config.steps, agent.learner.step, live=not quiet) as display:
            display.episodes.extend(past["episodes"] if past else [])
            display.latest |= past.get("training", {}) if past else {}
            run = _Run(agent, record, display, schedule, world)
            try:
                if not past:
                    run.checkpoint()  # from the first moment on there is something to resume
                run.go(caught)
            except Interrupted:
                run.leave(caught[0])
            except Broken:
                run.checkpoint()
                raise
            finally:
                record.close()
                agent.close()
        record.draw()


class _Run:
    """The parts that one training run holds together."""

    def __init__(self, agent: MBDP, record: Record, display: Display, schedule: dict[str, Any], world: TrainingWorld):
        self.agent, self.record, self.display, self.schedule = agent, record, display, schedule
        self.world = world
        self.envs = [make_judging_world(agent.env_id, world.perturb) for _ in range(schedule["episodes"])]
        self.alarms = Alarms(agent)
        self.saved_at = time.monotonic()

    def go(self, caught: list[int]) -> None:
        """Take all steps that are left; a signal ends it after a checkpoint."""
        until = self.agent.config.steps
        for progress in self.agent.iterate(until):
            self.display.show(progress)
            from_data = "data/step" in progress.metrics
            if "model/bias" in progress.metrics and (progress.settled or from_data):
                self.record.add(progress.step, progress.metrics)
                self._warn(progress)
            warmed = from_data and not self.agent.learner.data_left
            ended = warmed if not until else progress.settled and progress.step == until
            if warmed or ended or (progress.settled and progress.step % self.schedule["evaluate_every"] == 0):
                self._evaluate(progress)
            minutes = (time.monotonic() - self.saved_at) / 60
            if minutes > self.schedule["checkpoint_minutes"] or warmed or ended:
                self.checkpoint()
            if caught:
                self.leave(caught[0])

    def leave(self, number: int) -> NoReturn:
        """End the run because of a signal, with everything saved."""
        self.checkpoint()
        where = f"at step {self.agent.learner.step}; it goes on with: mbdp resume {self.record.folder}"
        raise KeyboardInterrupt(number, f"{signal.Signals(number).name} {where}")

    def checkpoint(self) -> None:
        """Save everything as it is now."""
        newest = self._training() | self._latest("model/bias_")  # the next evaluation may come before the next fit
        words = {"schedule": self.schedule, "episodes": list(self.display.episodes), "training": newest}
        self.record.checkpoint(self.agent, words | self.world.words())
        self.saved_at = time.monotonic()

    def _training(self) -> dict[str, float]:
        """What the newest updates, which may be some env steps ago, say of themselves."""
        return self._latest("train/")

    def _latest(self, beginning: str) -> dict[str, float]:
        return {name: float(x) for name, x in self.display.latest.items() if name.startswith(beginning)}

    def _evaluate(self, progress: Progress) -> None:
        try:
            policy = self.agent.policy()
        except BadInput as error:
            raise Broken(f"the policy has diverged at step {progress.step}: {error}") from None
        result = evaluate(policy, self.envs, discount=self.agent.discount)
        self.display.evaluated(progress.step, result.returns)
        believed = {"eval/expected_discounted": self.agent.value(result.starts).mean()}
        gathered = self.display.averages() | {"rollout/faults": self.agent.world.faults}
        gathered |= {name: x for name, x in progress.metrics.items() if name == "data/step"}
        guaranteed = theory_metrics(self.agent, result, self.display.latest)
        self.record.evaluation(progress.step, result, believed | guaranteed | self._training() | gathered)
        self._warn(progress)

    def _warn(self, progress: Progress) -> None:
        for sentence in self.alarms.raised_by(progress):
            self.display.say(f"step {progress.step:>8,}  {sentence}")


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """A list that is filled by SIGINT or SIGTERM; the second one ends the process at once, whatever it is doing."""
    caught = interruption.asked
    caught.clear()
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}

    def catch(number: int, frame: Any) -> None:
        caught.append(number)
        for one in before:
            signal.signal(one, signal.SIG_DFL)

    for one in before:
        signal.signal(one, catch)
    try:
        yield caught
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        caught.clear()


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Say in one line which file could not be written, instead of where in the code that was noticed."""
    try:
        yield
    except OSError as error:
        what = f"{error.filename or folder}: {error.strerror or error}"
        raise BadInput(f"{what}; the last checkpoint is as it was, and mbdp resume {folder} goes on from it") from error
