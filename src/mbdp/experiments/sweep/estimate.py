"""What a sweep will cost, from a few hundred env steps of one run per method and task."""

import json
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from typing import Any

from mbdp.api import MBDP
from mbdp.envs.tasks import make
from mbdp.experiments.compilation_cache import share_compilations
from mbdp.experiments.evaluate import evaluate
from mbdp.experiments.sweep.process import follow_parent, received, start, stop, take_a_core
from mbdp.experiments.sweep.settings import keywords
from mbdp.experiments.sweep.spec import Run
from mbdp.experiments.sweep.state import saved_step, state_of
from mbdp.types import BadInput

CYCLE = 250  # env steps that are timed of a method that has no cycle of its own


@dataclass(frozen=True)
class Cost:
    """Seconds on one core: until learning goes at its pace, per env step from there, and per evaluation."""

    warm_up: float
    warm_up_steps: int
    per_step: float
    per_evaluation: float

    def seconds(self, run: Run, done: int = 0) -> float:
        """What the steps that are left of a run will take."""
        left = run.steps - done
        evaluations = left / run.request["schedule"]["evaluate_every"]
        learning = max(0, left - self.warm_up_steps) * self.per_step
        return self.warm_up * min(1.0, left / self.warm_up_steps) + learning + evaluations * self.per_evaluation


def print_estimate(runs: list[Run], workers: int) -> None:
    """Say what would run, in which order, and about how many core-hours it would take."""
    states = {run: state_of(run) for run in runs}
    todo = [run for run in runs if states[run].kind != "finished"]
    print(f"{len(runs)} runs, {len(runs) - len(todo)} finished; to do, in this order:")
    for run in todo:
        print(f"  {run.name}  {states[run].kind}, step {saved_step(run.folder):,} of {run.steps:,}")
    total, groups = 0.0, dict[tuple[str, str], list[Run]]()
    for run in todo:
        groups.setdefault((run.request["algo"], run.request["env"]), []).append(run)
    for (algo, env), group in groups.items():
        cost = probe(group[0])
        core_hours = sum(cost.seconds(run, saved_step(run.folder)) for run in group) / 3600
        total += core_hours
        each = f"{1000 * cost.per_step:.3g} ms per env step"
        print(f"{algo} on {env}: {each}; {len(group)} runs, {core_hours:.3g} core-hours")
    print(f"in all about {total:.3g} core-hours, {total / workers:.3g} hours with {workers} workers. An estimate:")
    print(
        "one run per method and task was timed for a cycle of learning, on one core of this machine, as busy as it is."
    )
    print("Rollouts that grow longer, fits that stop early and settings that differ between runs change it.")


def probe(run: Run) -> Cost:
    """Measure a run's cost as a worker would have it: in a process of its own, on one core. Nothing is written."""
    child = start(__name__, run.request, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert child.stdout is not None
    try:
        printed = child.stdout.read().strip()  # and not communicate(): it would close the pipe that the child lives by
        child.wait()
    finally:
        stop([child], signal.SIGKILL)
        child.stdout.close()
    last = (printed or "the probe was killed").splitlines()[-1]
    if child.returncode:
        raise BadInput(f"{run.name}: {last}")
    return Cost(**json.loads(last))


def measure(
    *, env: str, algo: str, seed: int, preset: str, prefer: str, settings: dict[str, Any], schedule: dict[str, Any]
) -> Cost:
    """Learn until the first fits and all compilations are over, then time one whole cycle from fit to fit."""
    agent = MBDP(env, algo=algo, preset_name=preset, prefer=prefer or None, seed=seed, **keywords(settings))
    cycle = getattr(agent.config, "model_every", getattr(agent.config, "stage", CYCLE))
    began, first, marks = time.perf_counter(), agent.config.steps, dict[int, float]()
    for progress in agent.iterate(agent.config.steps):
        if not progress.settled:
            continue
        if progress.metrics:  # from the first update on
            first = min(first, progress.step)
        if progress.step in (first + cycle, first + 2 * cycle, agent.config.steps):
            marks[progress.step] = time.perf_counter() - began
        if progress.step == first + 2 * cycle:
            break
    # Of a run that is too short for that, all is measured.
    (step, warm_up), (last, until) = min(marks.items()), max(marks.items())
    per_step = (until - warm_up) / (last - step) if last > step else warm_up / step
    return Cost(warm_up, step, per_step, _seconds_of_an_evaluation(agent, schedule["episodes"]))


def _seconds_of_an_evaluation(agent: MBDP, episodes: int) -> float:
    """As if no episode ended early: those of a good policy do not."""
    envs = [make(agent.env_id) for _ in range(episodes)]
    began = time.perf_counter()
    longest = int(evaluate(agent.policy(), envs).lengths.max())
    seconds = time.perf_counter() - began
    spec = envs[0].spec
    return seconds * ((spec.max_episode_steps if spec else None) or longest) / longest


def main() -> None:
    request = received()
    core = take_a_core()
    follow_parent()
    share_compilations()
    print(json.dumps(asdict(measure(**request))))
    if core:
        core.close()


if __name__ == "__main__":
    main()
