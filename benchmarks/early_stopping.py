"""How long a refit in the paper preset should last: errors and gradient steps of several rules, on real samples.

    python -m benchmarks.early_stopping CHECKPOINT        writes results/early_stopping.json, prints a table

Each rule begins with one ensemble and refits it after every 250 samples, as a run does. Before each refit the ensemble
predicts those samples, which it has not seen yet: `ahead` is that error, by which no early stopping has chosen,
`held_out` the one by which it has.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from benchmarks.speed.measure import machine

from mbdp.config import preset
from mbdp.models import ensemble
from mbdp.models.ensemble import Ensemble
from mbdp.models.fit import Budget, create_optimiser, fit, score
from mbdp.replay import Replay
from mbdp.storage.checkpoint import load_learner, read_about

FIRST_STEPS = 4_000
NO_LIMIT = {"longest_epoch": 0, "most_steps": 0}  # MBPO's rule
RULES: dict[str, dict[str, int]] = {
    "as the paper preset": {},
    "100 steps, as the default preset": {"steps": 100},
    "as MBPO's authors": NO_LIMIT,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--samples", type=int, nargs=2, default=(5_000, 10_000), metavar=("FIRST", "LAST"))
    parser.add_argument("--members", type=int, help="fewer take less time (default: the preset's)")
    parser.add_argument("--out", type=Path, default=Path("results/early_stopping.json"))
    args = parser.parse_args()
    about = read_about(args.checkpoint)
    real, config = load_learner(args.checkpoint, about).d_env, preset("mbdp", about["env"], "paper")
    first, last = args.samples
    if len(real) < last:
        parser.error(f"{args.checkpoint} has {len(real)} samples, not {last}")
    shape = config.model_shape | ({"members": args.members} if args.members else {})
    usual = config.budget(lambda *_: None)  # a rule of termination that is known, as for Hopper
    samples = list(range(first + config.model_every, last + 1, config.model_every))
    report = {"command": "python -m benchmarks.early_stopping", "env": about["env"], "machine": machine()}
    report |= {"samples": samples, "members": shape["members"], "fits": {}}
    model, optimiser = begun(real, first, shape, usual)
    for rule, changes in RULES.items():
        print(rule, flush=True)
        report["fits"][rule] = refitted(model, optimiser, real, samples, usual._replace(**changes))
        args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(table(report))


def table(report: dict[str, Any]) -> str:
    """Means over the fits, as Markdown."""
    names = ("steps", "seconds", "distance_ahead", "mse_ahead", "distance_held_out", "mse_held_out")
    lines = ["| rule | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for rule, fits in report["fits"].items():
        lines.append(f"| {rule} | " + " | ".join(f"{np.mean([one[n] for one in fits]):.3g}" for n in names) + " |")
    return "\n".join(lines)


def begun(real: Replay, count: int, shape: dict[str, Any], budget: Budget) -> tuple[Ensemble, Any]:
    """An ensemble that knows the first samples."""
    model = ensemble.create(real.spec, **shape, key=jax.random.key(0))
    optimiser, rng = create_optimiser(model, budget.learning_rate), np.random.default_rng(0)
    fixed = budget._replace(steps=FIRST_STEPS, first_steps=FIRST_STEPS)
    model, optimiser, _ = fit(model, optimiser, _first(real, count), fixed, seed=0, rng=rng)
    return model, optimiser


def refitted(
    model: Ensemble, optimiser: Any, real: Replay, samples: list[int], budget: Budget
) -> list[dict[str, float]]:
    """One fit after another."""
    rng, told, seen = np.random.default_rng(1), [], 2 * samples[0] - samples[1]
    for count in samples:
        ahead = score(model, real.rows[seen:count], np.ones(count - seen, np.float32), real.spec)
        before, began = int(optimiser[0].count), time.perf_counter()
        model, optimiser, held_out = fit(model, optimiser, _first(real, count), budget, seed=0, rng=rng)
        told.append(
            {
                "seconds": time.perf_counter() - began,
                "steps": int(optimiser[0].count) - before,
                "mse_ahead": float(np.mean(ahead.mse)),
                "distance_ahead": float(np.mean(ahead.distance)),
                "mse_held_out": float(np.mean(held_out.mse)),
                "distance_held_out": float(np.mean(held_out.distance)),
            }
        )
        seen = count
        print("  " + ", ".join(f"{name} {value:.4g}" for name, value in told[-1].items()), flush=True)
    return told


def _first(real: Replay, count: int) -> Replay:
    """The first samples of a run, in a buffer as large as the run's."""
    some = Replay(real.capacity, real.spec)
    some.add(real.rows[:count])
    return some


if __name__ == "__main__":
    main()
