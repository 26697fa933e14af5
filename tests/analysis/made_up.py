"""Run directories made up for tests: small, and with answers that are known by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def make_run(
    folder: Path,
    returns: Sequence[float],
    *,
    algo: str = "mbdp",
    every: int = 1_000,
    seconds: float = 10.0,
    bias: Sequence[Sequence[float]] = (),
    extra: dict[str, Any] | None = None,
    world: dict[str, float] | None = None,
    **settings: Any,
) -> Path:
    """A run directory named ENV_SEED, evaluated every `every` env steps, with a refit for each row of `bias`."""
    env, _, seed = folder.name.rpartition("_")
    folder.mkdir(parents=True)
    planned = {"steps": every * len(returns), "alpha": 0.2, "beta": 0.2, "discount": 0.99} | settings
    config = {"env": env, "algo": algo, "seed": int(seed), "settings": planned} | ({"perturb": world} if world else {})
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "versions.json").write_text(json.dumps({"mbdp": "0.1.0", "jax": "0.10.2"}))
    lines: list[dict[str, Any]] = [
        {"step": every * i, "eval/mean_reward": value, "time/elapsed": seconds * i, **(extra or {})}
        for i, value in enumerate(returns, 1)
    ]
    for i, row in enumerate(bias, 1):
        kept = np.argsort(row)[: len(row) - 1].tolist()
        members = {f"model/bias_{j}": value for j, value in enumerate(row)}
        lines.append({"step": every * i + 1, **members, "model/bias": float(np.mean(row)), "model/kept": kept})
    lines.sort(key=lambda line: line["step"])
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def make_robustness(
    folder: Path,
    methods: Sequence[str] = ("mbdp", "no-dropout"),
    env: str = "Hopper-v5",
    *,
    seeds: Sequence[int] = (0, 1),
    worlds: Sequence[float] = (0.8, 1.2),
    level: float | None = None,
) -> Path:
    """What `mbdp robustness --out` writes, on the paper's four worlds; with a `level`, all returns are close to it."""
    from mbdp.analysis.robustness_report import Result, Setting, write_report

    axes = {"mass": list(worlds), "friction": list(worlds)}
    setting = Setting(env, "zero-shot", axes, {"mass": 1.0, "friction": 1.0}, 2, 0)
    rng = np.random.default_rng(0)
    results = []
    for method in methods:
        for seed in seeds:
            shape = (len(worlds), len(worlds), 2)
            returns = rng.uniform(500, 3000, shape) if level is None else level + rng.uniform(0, 5, shape)
            lengths, nominal = np.full(returns.shape, 1000), rng.uniform(2000, 3000, 2)
            results.append(Result(method, f"runs/{method}_{seed}", seed, returns, lengths, lengths < 0, nominal))
    write_report(folder, setting, results)
    return folder
