"""The cost of an env step by its parts, predicted from the speed of the parts, beside what was measured of whole runs.

python -m benchmarks.scaling        reads results/bench.json and results/run_cost.json, prints tables in Markdown
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.speed import flops
from benchmarks.speed.settings import ENV as BENCH_ENV
from benchmarks.speed.settings import KEPT

from mbdp.config import Config, preset
from mbdp.dropout import model_dropout
from mbdp.envs.tasks import make, spec_of
from mbdp.types import Spec

LARGE = "1024 x 1024 x 1024"
RESULTS = Path(__file__).parent.parent / "results"
CASES = [
    ("Hopper-v5", "default", 10_000),
    ("Hopper-v5", "default", 100_000),
    ("Hopper-v5", "paper", 100_000),
    ("HalfCheetah-v5", "default", 100_000),
    ("Ant-v5", "paper", 100_000),
]
MEASURED = {  # each part of a step: where results/bench.json has it, and for whom
    "updates": ("SAC update", "mbdp, default preset"),
    "fit": ("ensemble step", "mbdp"),
    "imagination": ("imagination", "mbdp, grouped by members"),
}


def main() -> None:
    print(needs_table())
    if (RESULTS / "bench.json").exists() and (RESULTS / "run_cost.json").exists():
        measured = [json.loads((RESULTS / name).read_text()) for name in ("bench.json", "run_cost.json")]
        print("\n" + checked_table(*measured) + "\n\n" + whole_runs_table(*measured))


def env_step(config: Config, spec: Spec, step: int) -> dict[str, float]:
    """Floating-point operations of each part, averaged over the env steps between two fits."""
    kept = len(model_dropout(np.arange(config.members, dtype=float), config.beta))
    rows = imagined_rows(config, step)
    actions = rows // kept if config.group == "members" else rows
    update = {"width": config.width, "depth": config.depth, "batch": config.batch, "actor_every": config.actor_every}
    shape = config.model_shape
    passes = flops.imagination(
        spec, rows, actions, model=(shape["width"], shape["depth"]), policy=(config.width, config.depth)
    )
    return {
        "updates": config.updates_per_step * flops.sac_update(spec, **update),
        "fit": _fit_steps(config) * flops.ensemble_step(spec, **shape, batch=config.fit_batch) / config.model_every,
        "imagination": passes / config.model_every,
    }


def env_step_bytes(config: Config, spec: Spec, step: int) -> dict[str, float]:
    """Bytes of weights, optimisers and targets that an env step moves: what limits it where products are cheap."""
    hidden = [config.width] * config.depth
    actor = flops.parameters([spec.observation_size, *hidden, 2 * spec.action_size])
    critics = 2 * flops.parameters([spec.observation_size + spec.action_size, *hidden, 1])
    members = config.members * flops.parameters(
        flops.model_sizes(spec, width=config.model_width, depth=config.model_depth)
    )
    adam, average = 7 * 4, 3 * 4  # four arrays read and three written; two read and one written
    steps = _fit_steps(config) / config.model_every
    return {
        "updates": config.updates_per_step * ((adam + average) * critics + adam * actor / config.actor_every),
        "fit": steps * adam * members,
        "imagination": 4 * spec.row_width * imagined_rows(config, step) / config.model_every,
    }


def imagined_rows(config: Config, step: int) -> int:
    """Rows of the rollouts after a fit."""
    horizon = config.horizon_at(step)
    return config.rollouts_of(horizon) * horizon


def needs_table() -> str:
    """What an env step needs, by preset and task."""
    lines = ["| task, preset, env step | updates | fit | imagination | GFLOP in all | MB of weights and rows |"]
    lines.append("|---|---|---|---|---|---|")
    for env, name, step in CASES:
        config, spec = preset("mbdp", env, name), spec_of(make(env))
        parts, moved = env_step(config, spec, step), env_step_bytes(config, spec, step)
        cells = " | ".join(f"{value / 1e9:.2f}" for value in parts.values())
        total, megabytes = sum(parts.values()) / 1e9, sum(moved.values()) / 1e6
        lines.append(f"| {env}, {name}, {step:,} | {cells} | {total:.1f} | {megabytes:.0f} |")
    return "\n".join(lines)


def checked_table(bench: dict[str, Any], run_cost: dict[str, Any]) -> str:
    """Seconds per 1,000 env steps: predicted from the speed of each part alone, and measured of the whole."""
    speed = {part: _gflop(part) / _milliseconds(bench, part) for part in MEASURED}  # TFLOP/s
    config, spec = preset("mbdp", "Hopper-v5"), spec_of(make("Hopper-v5"))
    acting = bench["parts"]["acting"]["milliseconds"]["mbdp"][1]
    lines = ["| samples | predicted s per 1,000 env steps | measured | measured / predicted |", "|---|---|---|---|"]
    for samples, (_, measured, _) in run_cost["env_steps"]["seconds_per_1000"].items():
        needed = env_step(config, spec, int(samples))
        predicted = acting + sum(work / 1e9 / speed[part] for part, work in needed.items())
        lines.append(f"| {int(samples):,} | {predicted:.1f} | {measured:.1f} | {measured / predicted:.2f} |")
    return "\n".join(lines)


def whole_runs_table(bench: dict[str, Any], run_cost: dict[str, Any]) -> str:
    """Hours of a whole run: of its products alone at the speed of large ones, and as projected from measurements."""
    speed = {name: middle for name, (_, middle, _) in bench["gflop_per_second_of_products"][LARGE].items()}
    fastest = max(speed, key=lambda name: speed[name])
    lines = [f"| Hopper-v5 | PFLOP | at XLA's speed | at that of {fastest} | projected |", "|---|---|---|---|---|"]
    for name, part in (("default", "env_steps"), ("paper", "paper_preset")):
        config = preset("mbdp", "Hopper-v5", name)
        work = _whole_run(config, spec_of(make("Hopper-v5")))
        bounds = " | ".join(f"{work / 1e9 / speed[library] / 3600:.2f} h" for library in ("XLA", fastest))
        projected = run_cost[part]["hours_of_a_whole_run"]
        lines.append(
            f"| {name} preset, {config.steps:,} env steps | {work / 1e15:.2f} | {bounds} | {projected:.2f} h |"
        )
    return "\n".join(lines)


def _whole_run(config: Config, spec: Spec) -> float:
    """Floating-point operations of all env steps."""
    fits = range(config.random_steps, config.steps, config.model_every)
    return config.model_every * sum(sum(env_step(config, spec, at).values()) for at in fits)


def _fit_steps(config: Config) -> int:
    """Of a refit, or the most that it may have if it stops early."""
    return config.fit_steps or config.most_fit_steps


def _milliseconds(bench: dict[str, Any], part: str) -> float:
    name, who = MEASURED[part]
    return bench["parts"][name]["milliseconds"][who][1]


def _gflop(part: str) -> float:
    """Of the unit that results/bench.json has the time of."""
    config, spec = Config(members=10), spec_of(make(BENCH_ENV))
    if part == "updates":
        work = env_step(config, spec, 0)["updates"] / config.updates_per_step
    elif part == "fit":
        work = env_step(config, spec, 0)["fit"] * config.model_every / config.fit_steps
    else:
        shapes = {"model": (config.model_width, config.model_depth), "policy": (config.width, config.depth)}
        work = flops.imagination(spec, 100_000, 100_000 // KEPT, **shapes)
    return work / 1e9


if __name__ == "__main__":
    main()
