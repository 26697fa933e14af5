"""Speed of every part and of the whole, against its peers and against this machine's matrix products, in one run.

python -m benchmarks.speed [--quick]        (or: make bench) writes results/bench.json
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sbx
import stable_baselines3
from benchmarks.speed import flops, mbrl_lib, ours, products, stable_baselines
from benchmarks.speed.measure import Way, in_turn, machine
from benchmarks.speed.report import OURS, described, table
from benchmarks.speed.settings import (
    BATCH,
    DEPTH,
    MEMBERS,
    MODEL_DEPTH,
    MODEL_WIDTH,
    QUICK,
    SAMPLES,
    UPDATES_PER_STEP,
    WIDTH,
    Sizes,
    random_rows,
)

from mbdp.replay import Replay


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="see whether everything runs; the numbers mean nothing")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--out", type=Path, default=Path("results/bench.json"))
    args = parser.parse_args()
    sizes = QUICK if args.quick else Sizes()
    report: dict[str, Any] = {"command": "python -m benchmarks.speed", "quick": args.quick, "machine": machine()}
    report |= {"sizes": sizes._asdict(), "parts": {}}
    if len(args.parts) < len(PARTS) and args.out.exists():  # the other parts stay as they were measured
        earlier = json.loads(args.out.read_text())
        report["parts"] = earlier["parts"] if earlier["quick"] == args.quick else {}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    report["gflop_per_second_of_products"] = products.by_size(sizes.rounds)
    d_env = random_rows(sizes.real_rows)
    for name in args.parts:
        unit, make_ways, work = PARTS[name]
        print(f"measuring: {name}", flush=True)
        rounds = sizes.stretches if name == "whole algorithm" else sizes.rounds
        ways = make_ways(d_env, sizes)
        seconds = in_turn(ways | products.ways(), rounds)
        report["parts"][name] = {
            "unit": unit,
            **described(seconds, list(ways), work(d_env, sizes), products.gflops(seconds)),
        }
        args.out.write_text(json.dumps(report, indent=1) + "\n")  # after each part: what follows may be interrupted
    print(table(report))


def sac_update(d_env: Replay, sizes: Sizes) -> dict[str, Way]:
    peers = {"SBX": sbx.SAC, "Stable-Baselines3": stable_baselines3.SAC}
    return {
        OURS: Way(ours.sac_update(d_env, sizes), sizes.updates),
        f"{OURS}, training rollout": Way(ours.training_rollout_update(d_env, sizes), sizes.updates),
        **{
            name: Way(stable_baselines.sac_update(stable_baselines.create(kind, d_env), sizes), sizes.updates)
            for name, kind in peers.items()
        },
        "mbrl-lib": Way(mbrl_lib.sac_update(mbrl_lib.Parts(d_env, sizes)), sizes.updates),
    }


def ensemble_step(d_env: Replay, sizes: Sizes) -> dict[str, Way]:
    return {
        OURS: Way(ours.ensemble_step(d_env, sizes), sizes.fit_steps),
        "mbrl-lib": Way(*mbrl_lib.ensemble_step(mbrl_lib.Parts(d_env, sizes))),
    }


def imagination(d_env: Replay, sizes: Sizes) -> dict[str, Way]:
    return {
        OURS: Way(ours.imagination(d_env, sizes, "state")),
        f"{OURS}, grouped by members": Way(ours.imagination(d_env, sizes, "members")),
        "mbrl-lib": Way(mbrl_lib.imagination(mbrl_lib.Parts(d_env, sizes))),
    }


def whole_algorithm(d_env: Replay, sizes: Sizes) -> dict[str, Way]:
    return {
        OURS: Way(ours.whole_algorithm(d_env, sizes), sizes.stretch),
        "mbrl-lib": Way(mbrl_lib.whole_algorithm(mbrl_lib.Parts(d_env, sizes)), sizes.stretch),
    }


def acting(d_env: Replay, sizes: Sizes) -> dict[str, Way]:
    peers = {"SBX": sbx.SAC, "Stable-Baselines3": stable_baselines3.SAC}
    return {
        OURS: Way(ours.acting(d_env, sizes), sizes.env_steps),
        **{
            name: Way(stable_baselines.acting(stable_baselines.create(kind, d_env), sizes), sizes.env_steps)
            for name, kind in peers.items()
        },
        "mbrl-lib": Way(mbrl_lib.acting(mbrl_lib.Parts(d_env, sizes)), sizes.env_steps),
    }


def update_work(d_env: Replay, sizes: Sizes) -> float:
    return flops.sac_update(d_env.spec, width=WIDTH, depth=DEPTH, batch=BATCH)


def fit_work(d_env: Replay, sizes: Sizes) -> float:
    return flops.ensemble_step(d_env.spec, members=MEMBERS, width=MODEL_WIDTH, depth=MODEL_DEPTH, batch=BATCH)


def imagination_work(d_env: Replay, sizes: Sizes) -> float:
    shapes = {"model": (MODEL_WIDTH, MODEL_DEPTH), "policy": (WIDTH, DEPTH)}
    return flops.imagination(d_env.spec, sizes.imagined, sizes.imagined // SAMPLES, **shapes)


def whole_work(d_env: Replay, sizes: Sizes) -> float:
    fits = (sizes.fit_steps * fit_work(d_env, sizes) + imagination_work(d_env, sizes)) / sizes.stretch
    return UPDATES_PER_STEP * update_work(d_env, sizes) + fits


def acting_work(d_env: Replay, sizes: Sizes) -> float:
    return flops.forward([d_env.spec.observation_size, *[WIDTH] * DEPTH, 2 * d_env.spec.action_size], 1)


Maker = Callable[[Replay, Sizes], dict[str, Way]]
PARTS: dict[str, tuple[str, Maker, Callable[[Replay, Sizes], float]]] = {
    "SAC update": ("update", sac_update, update_work),
    "ensemble step": ("gradient step of ten members", ensemble_step, fit_work),
    "imagination": ("100,000 transitions", imagination, imagination_work),
    "acting": ("env step", acting, acting_work),
    "whole algorithm": ("env step", whole_algorithm, whole_work),
}


if __name__ == "__main__":
    main()
