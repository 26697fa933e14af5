"""Early-stopped fits with whole and with shorter epochs, on the real samples of a run: errors and gradient steps.

    python -m benchmarks.early_stopping CHECKPOINT        writes results/early_stopping.json, prints a table

Each rule begins with one ensemble, which an early-stopped fit has finished, and is then fitted again after every 250
samples, as in a run. Before each fit the ensemble predicts those samples, which nobody has seen yet: `ahead` is that
error, which no early stopping has chosen by, `held_out` the one that it has.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from benchmarks.speed.measure import machine

from mbdp.checkpoint import load_learner, read_about
from mbdp.models import ensemble
from mbdp.models.ensemble import Ensemble
from mbdp.models.fit import Budget, create_optimiser, fit, score
from mbdp.replay import Replay

EVERY, FIRST_STEPS = 250, 5_000
WHOLE, BETWEEN, SHORT = "whole epochs", "at most 100 minibatches", "at most 50 minibatches"
RULES = {WHOLE: 0, BETWEEN: 100, SHORT: 50}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--fits", type=int, default=6, help="of each rule")
    parser.add_argument("--out", type=Path, default=Path("results/early_stopping.json"))
    args = parser.parse_args()
    about = read_about(args.checkpoint)
    real = load_learner(args.checkpoint, about).d_env
    if len(real) < args.samples:
        parser.error(f"{args.checkpoint} has {len(real)} samples, not {args.samples}")
    begin = args.samples - args.fits * EVERY
    model, optimiser = begun(real, begin, about["config"])
    report: dict[str, Any] = {"command": "python -m benchmarks.early_stopping", "env": about["env"], "fits": {}}
    report |= {"machine": machine(), "samples": [begin + (i + 1) * EVERY for i in range(args.fits)]}
    for rule, longest in RULES.items():
        print(rule, flush=True)
        report["fits"][rule] = refitted(model, optimiser, real, report["samples"], about["config"], longest)
        args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(table(report))


def table(report: dict[str, Any]) -> str:
    """Means over the fits, as Markdown."""
    names = ("steps", "mse_ahead", "distance_ahead", "mse_held_out", "distance_held_out")
    lines = ["| epochs | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for rule, fits in report["fits"].items():
        lines.append(f"| {rule} | " + " | ".join(f"{np.mean([one[n] for one in fits]):.4g}" for n in names) + " |")
    return "\n".join(lines)


def begun(real: Replay, count: int, config: Any) -> tuple[Ensemble, Any]:
    """An ensemble that knows the first samples."""
    model = ensemble.create(real.spec, **config.model_shape, key=jax.random.key(0))
    optimiser, rng = create_optimiser(model, config.model_learning_rate), np.random.default_rng(0)
    for budget in (_budget(config, FIRST_STEPS, 0), _budget(config, 0, RULES[BETWEEN])):
        model, optimiser, _ = fit(model, optimiser, _first(real, count), budget, seed=0, rng=rng)
    return model, optimiser


def refitted(
    model: Ensemble, optimiser: Any, real: Replay, samples: list[int], config: Any, longest: int
) -> list[dict[str, float]]:
    """One fit after another."""
    budget, rng, told = _budget(config, 0, longest), np.random.default_rng(1), []
    for count in samples:
        ahead = score(model, real.rows[count - EVERY : count], np.ones(EVERY, np.float32), real.spec)
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
        print("  " + ", ".join(f"{name} {value:.4g}" for name, value in told[-1].items()), flush=True)
    return told


def _budget(config: Any, steps: int, longest: int) -> Budget:
    usual = config.budget(lambda *_: None)  # a rule of termination that is known, as for Hopper
    return usual._replace(steps=steps, first_steps=steps, longest_epoch=longest)


def _first(real: Replay, count: int) -> Replay:
    """The first samples of a run, in a buffer as large as the run's."""
    some = Replay(real.capacity, real.spec)
    some.add(real.rows[:count])
    return some


if __name__ == "__main__":
    main()
