"""What a sweep will cost, from a few hundred env steps of one run per method and task."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mbdp.api import MBDP
from mbdp.experiments.compilation_cache import share_compilations
from mbdp.experiments.evaluate import evaluate
from mbdp.experiments.sweep.process import follow_parent, received, start, stop, take_a_core
from mbdp.experiments.sweep.settings import keywords
from mbdp.experiments.sweep.spec import PlannedRun
from mbdp.experiments.sweep.state import saved_step, state_of
from mbdp.experiments.training_world import make_judging_world, new_agent, world_of_words
from mbdp.types import BadInput

CYCLE = 250  # env steps that are timed of a method that has no cycle of its own
LIMIT = 90.0  # seconds that a probe may take, compilations included


@dataclass(frozen=True)
class Cost:
    """Seconds on one core: until learning goes at its pace, per env step from there, and per evaluation."""

    warm_up: float
    warm_up_steps: int
    per_step: float
    per_evaluation: float

    def seconds(self, run: PlannedRun, done: int = 0) -> float:
        """What the steps that are left of a run will take."""
        left = run.steps - done
        evaluations = left / run.request["schedule"]["evaluate_every"]
        learning = max(0, left - self.warm_up_steps) * self.per_step
        return self.warm_up * min(1.0, left / self.warm_up_steps) + learning + evaluations * self.per_evaluation


def print_estimate(runs: list[PlannedRun], workers: int) -> None:
    """Say what would run, in which order, and about how many core-hours it would take."""
    states = {run: state_of(run) for run in runs}
    todo = [run for run in runs if states[run].kind != "finished"]
    print(f"{len(runs)} runs, {len(runs) - len(todo)} finished; to do, in this order:")
    for run in todo:
        print(f"  {run.name}  {states[run].kind}, step {saved_step(run.folder):,} of {run.steps:,}")
    print_cost(todo, workers)


def print_cost(todo: list[PlannedRun], workers: int) -> None:
    """Time one run per method and task, and say how many core-hours all of them will take."""
    groups = dict[tuple[str, str], list[PlannedRun]]()
    for run in todo:
        groups.setdefault((run.request["algo"], run.request["env"]), []).append(run)
    print(f"timing one run for each of {len(groups)} pairs of method and task, {LIMIT:.0f} s at most", flush=True)
    total, unknown = 0.0, 0
    for (algo, env), group in groups.items():
        cost = probe(group[0])
        if cost is None:
            unknown += len(group)
            print(f"{algo} on {env}: {len(group)} runs; the first fit was not over after {LIMIT:.0f} s", flush=True)
            continue
        core_hours = sum(cost.seconds(run, saved_step(run.folder)) for run in group) / 3600
        total += core_hours
        each = f"{1000 * cost.per_step:.3g} ms per env step"
        print(f"{algo} on {env}: {each}; {len(group)} runs, {core_hours:.3g} core-hours", flush=True)
    more = f", and what {unknown} runs take that could not be timed" if unknown else ""
    print(
        f"in all about {total:.3g} core-hours, {total / workers:.3g} hours with {workers} workers{more}. An estimate:"
    )
    print(f"a run was timed for a cycle of learning, or {LIMIT:.0f} s, on one core of this machine, as busy as it is.")
    print(
        "Rollouts that grow longer, fits that stop early and settings that differ between runs change it.", flush=True
    )


def probe(run: PlannedRun) -> Cost | None:
    """Measure a run's cost as a worker would have it: in a process of its own, on one core. Nothing is written.

    None if learning did not begin within the time that a probe may take.
    """
    child = start(__name__, run.request, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert child.stdout is not None
    timer = threading.Timer(LIMIT, child.kill)
    timer.start()
    try:
        printed = child.stdout.read()  # and not communicate(): it would close the pipe that the child lives by
        child.wait()
    finally:
        timer.cancel()
        stop([child], signal.SIGKILL)
        child.stdout.close()
    if child.returncode > 0:
        raise BadInput(f"{run.name}: {(printed.strip() or 'the probe failed').splitlines()[-1]}")
    costs = [line for line in printed.split("\n")[:-1] if line.startswith('{"warm_up":')]
    return Cost(**json.loads(costs[-1])) if costs else None


def measure(
    *,
    env: str,
    algo: str,
    seed: int,
    preset: str,
    prefer: str,
    settings: dict[str, Any],
    schedule: dict[str, Any],
    termination: str = "",
    **world: Any,
) -> Iterator[Cost]:
    """Estimates, each better than the last, while a run learns, until a whole cycle from fit to fit was timed.

    The first cycle has compilations in it, so the second is the one that counts.
    """
    about = {"algo": algo, "preset_name": preset, "prefer": prefer or None, "seed": seed}
    agent = new_agent(env, world_of_words(world), termination=termination, **about, **keywords(settings))
    per_evaluation = _seconds_of_an_evaluation(agent, schedule["episodes"], world.get("perturb", {}))
    cycle = getattr(agent.config, "model_every", getattr(agent.config, "stage", CYCLE))
    began, marks = (
        time.perf_counter(),
        dict[int, float](),
    )  # env steps from the first update on, and when they were done
    for progress in agent.iterate(agent.config.steps):
        ended = progress.step == agent.config.steps
        if not progress.settled or not (marks or progress.metrics or ended):
            continue
        step = progress.step
        now = marks[step] = time.perf_counter() - began
        first = min(marks)
        if (cycles := (step - first) // cycle) and step == first + cycles * cycle:
            since = marks[step - cycle]
            yield Cost(since, step - cycle, (now - since) / cycle, per_evaluation)
        elif not cycles or ended:  # either rate can miss the costly part of a cycle
            rates = [now / step, (now - marks[first]) / max(1, step - first)]
            yield Cost(now, step, max(rates), per_evaluation)
        if cycles == 2:
            return


def _seconds_of_an_evaluation(agent: MBDP, episodes: int, perturb: dict[str, float]) -> float:
    """As if no episode ended early: those of a good policy do not."""
    envs = [make_judging_world(agent.env_id, perturb) for _ in range(episodes)]
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
    for cost in measure(**request):
        print(json.dumps(asdict(cost)), flush=True)
    if core:
        core.close()


if __name__ == "__main__":
    main()
