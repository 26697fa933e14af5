"""What a run costs: start-up, seconds per env step as the data grows, memory, and a whole run projected from these.

    python -m benchmarks.run_cost [--quick]        writes results/run_cost.json and results/run_cost.png

Start-up and memory are those of processes of their own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.filled import filled_agent, take
from benchmarks.speed.measure import Way, in_turn, machine, quartiles

from mbdp import MBDP
from mbdp.algorithm import Progress
from mbdp.config import preset

ENV, WHOLE_RUN = "Hopper-v5", 120_000
SAMPLES = (10_000, 30_000, 60_000, 100_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="see whether everything runs; the numbers mean nothing")
    parser.add_argument("--parts", nargs="+", metavar="PART", help="measure only these again, and keep the rest")
    parser.add_argument("--out", type=Path, default=Path("results/run_cost.json"))
    args = parser.parse_args()
    report: dict[str, Any] = {"command": "python -m benchmarks.run_cost", "quick": args.quick, "machine": {}}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    parts: dict[str, Callable[[], Any]] = {
        "env_steps": lambda: growth(stretch=5 if args.quick else 250, rounds=1 if args.quick else 8),
        "long_stretch": lambda: long_stretch(env_steps=20 if args.quick else 10_000),
        "paper_preset": lambda: paper_preset(steps=3 if args.quick else 20, rounds=1 if args.quick else 5),
        "start_up_seconds": start_up,
        "peak_memory": lambda: {env: child("benchmarks.peak_memory", env) for env in (ENV, "Ant-v5")},
    }
    if unknown := set(args.parts or ()) - set(parts):
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(parts)}")
    if args.parts and args.out.exists():
        report = json.loads(args.out.read_text()) | {"quick": args.quick}
        parts = {name: parts[name] for name in args.parts}
    for name, measure in parts.items():
        print(f"measuring: {name}", flush=True)
        report["machine"][name] = machine()  # parts may be measured at different times
        report[name] = measure()
        args.out.write_text(json.dumps(report, indent=1) + "\n")  # after each part: what follows may be interrupted
    draw(report["env_steps"], args.out.with_suffix(".png"))
    print(json.dumps(report, indent=1))


def growth(*, stretch: int, rounds: int) -> dict[str, Any]:
    """Seconds per 1,000 env steps of the default preset, stretches with one fit each, measured in turn."""
    ways, horizons = {}, {}
    more_updates = {"updates_per_step": 8, "actor_every": 2}  # as on most tasks
    cases = {str(samples): (samples, {}) for samples in SAMPLES} | {"more updates": (SAMPLES[2], more_updates)}
    for name, (samples, settings) in cases.items():
        # The first fit is a long one; here all of them are as long as later ones.
        agent, step = filled_agent(ENV, "default", samples, model_every=stretch, first_fit_steps=100, **settings)
        run = agent.iterate(WHOLE_RUN)
        ways[name] = Way(partial(take, run, stretch), stretch)
        horizons[name] = agent.config.horizon_at(step)
    seconds = {name: 1e3 * np.array(found) for name, found in in_turn(ways, rounds).items()}
    with_more_updates = seconds.pop("more updates")
    middle = {name: float(np.median(found)) for name, found in seconds.items()}
    over = [0, *SAMPLES, WHOLE_RUN]
    costs = [middle[str(SAMPLES[0])], *middle.values(), middle[str(SAMPLES[-1])]]
    return {
        "env": f"{ENV}, default preset, {rounds} stretches of {stretch} env steps at each number of samples",
        "horizon": horizons,
        "seconds_per_1000": {name: quartiles(found) for name, found in seconds.items()},
        "rounds": {name: found.tolist() for name, found in seconds.items()},
        "with_8_critic_and_4_actor_updates": {"samples": SAMPLES[2], "seconds_per_1000": quartiles(with_more_updates)},
        "last_to_first": middle[str(SAMPLES[-1])] / middle[str(SAMPLES[0])],
        "hours_of_a_whole_run": float(np.trapezoid(costs, over)) / 1e3 / 3600,
    }


def long_stretch(*, env_steps: int) -> dict[str, Any]:
    """Seconds of one long stretch of the default preset in the middle of a run, and a whole run projected from it."""
    agent, samples = filled_agent(ENV, "default", SAMPLES[2], first_fit_steps=100)
    run = agent.iterate(WHOLE_RUN)
    take(run, 1)  # to warm up
    began = time.perf_counter()
    take(run, env_steps)
    seconds = time.perf_counter() - began
    hours = seconds / env_steps * WHOLE_RUN / 3600
    return {"samples": samples, "env_steps": env_steps, "seconds": seconds, "hours_of_a_whole_run": hours}


def paper_preset(*, steps: int, rounds: int) -> dict[str, Any]:
    """Seconds of an env step with the first fit, with a later one and without, and a whole run projected from these."""
    usual = preset("mbdp", ENV, "paper")
    begun, samples_at_first = filled_agent(ENV, "paper", usual.random_steps)
    with_first_fit, first_steps = _timed(begun.iterate(WHOLE_RUN)), _fit_steps_of(begun)
    agent, samples = filled_agent(ENV, "paper", SAMPLES[2], model_every=steps)
    agent.learner.model, agent.learner.model_optimiser = begun.learner.model, begun.learner.model_optimiser
    run, with_fit, without, fit_steps = agent.iterate(WHOLE_RUN), [], [], []
    take(run, steps)  # to warm up
    for _ in range(rounds):
        before = _fit_steps_of(agent)
        with_fit.append(_timed(run))
        fit_steps.append(_fit_steps_of(agent) - before)
        without += [_timed(run) for _ in range(steps - 1)]
    plain, learning = float(np.median(without)), usual.steps - usual.random_steps
    fits = learning // usual.model_every - 1
    seconds = with_first_fit + fits * float(np.median(with_fit)) + (learning - 1 - fits) * plain
    return {
        "env": f"{ENV}, paper preset, {samples:,} samples, horizon {agent.config.horizon_at(samples)}",
        "first_fit": {"samples": samples_at_first, "steps": first_steps, "seconds_of_the_env_step": with_first_fit},
        "seconds_of_a_step_with_a_fit": with_fit,
        "gradient_steps_of_these_fits": fit_steps,
        "seconds_of_a_step_without": plain,
        "env_steps_between_fits": usual.model_every,
        "hours_of_a_whole_run": seconds / 3600,
    }


def _fit_steps_of(agent: MBDP) -> int:
    """Gradient steps of all fits so far."""
    return int(agent.learner.model_optimiser[0].count)


def _timed(run: Iterator[Progress]) -> float:
    began = time.perf_counter()
    take(run, 1)
    return time.perf_counter() - began


def start_up() -> dict[str, Any]:
    """With an empty cache of compilations, and with the one that this leaves."""
    with tempfile.TemporaryDirectory() as cache:
        return {
            name: child("benchmarks.start_up", str(time.time()), ENV, XDG_CACHE_HOME=cache)
            for name in ("empty cache", "warm cache")
        }


def child(module: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a process prints in its last line."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} {' '.join(arguments)}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def draw(found: dict[str, Any], file: Path) -> None:
    """Seconds per 1,000 env steps over samples."""
    low, middle, high = np.array(list(found["seconds_per_1000"].values())).T
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.errorbar(SAMPLES, middle, [middle - low, high - middle], marker="o", capsize=3)
    for samples, seconds in zip(SAMPLES, middle, strict=True):
        axes.annotate(
            f"horizon {found['horizon'][str(samples)]}", (samples, seconds), (6, -14), textcoords="offset points"
        )
    axes.set(xlabel="real samples", ylabel="seconds per 1,000 env steps", title=f"{ENV}, default preset")
    axes.set_ylim(0, 1.3 * max(high))
    axes.set_xlim(0, 1.2 * SAMPLES[-1])
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
