"""Kill the workers of a sweep at random, and see that every run ends, none is done twice, and all end as they should.

    python -m benchmarks.sweep_torture --runs 200        (or: make torture-sweep)

While the local pool carries out tiny runs on the point mass, one of its processes after the other is ended by SIGKILL,
some before they learn, most of them later; a run loses up to two. Each seed is there several times, under another
name, so that what is left of a run can be compared with its copies, byte by byte. Writes results/sweep_torture.json.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.experiments.sweeps import attempts, write_spec
from tests.faults.runs import remains

from mbdp.experiments.record import versions
from mbdp.experiments.sweep.spec import PlannedRun, read_spec
from mbdp.experiments.sweep.state import ATTEMPTS, in_use, is_finished
from mbdp.parallel import cores

SEEDS = 5
# What the pool is asked to do matters here, and not what is learned: SAC alone starts and ends in seconds.
RUN = {"algo": "sac", "steps": 60, "evaluate_every": 30, "episodes": 1}
KILLS = (0, 0, 1, 1, 2)  # how often a run is killed: one of these, at random
LOOK_EVERY = 0.3  # seconds
EARLY, LATE = 0.03, 0.3  # the chance to be killed at a look, before and after the first line of metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--seed", type=int, default=0, help="of the instants")
    parser.add_argument("--out", type=Path, default=Path("results/sweep_torture.json"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        result = torture(Path(folder), args.runs, args.workers, random.Random(args.seed))
    result |= {"workers": args.workers, "seed": args.seed, "versions": versions()}
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    sound = result["kills"] > 0 and not result["unfinished"] and not result["done_twice"] and result["all_equal"]
    print(f"{result['kills']} kills, {result['runs']} runs; all ended, none twice, all equal: {sound}; {args.out}")
    sys.exit(not sound)


def torture(folder: Path, count: int, workers: int, rng: random.Random) -> dict[str, Any]:
    """One sweep of so many runs, and what is to be said of their folders when it has ended."""
    # Copies of a seed differ in a setting that changes nothing here: checkpoints are due at every step anyway.
    copies = [f"[[run]]\nseed = {i % SEEDS}\ncheckpoint_minutes = {i // SEEDS * 1e-9}" for i in range(count)]
    spec = write_spec(folder, "\n".join(copies), name="{seed}_{checkpoint_minutes}", **RUN)
    runs = read_spec(spec)
    wanted = {run: rng.choice(KILLS) for run in runs}
    kills, began = dict.fromkeys(runs, 0), time.monotonic()
    with subprocess.Popen([sys.executable, "-m", "mbdp", "sweep", str(spec), "--workers", str(workers)]) as sweep:
        while sweep.poll() is None:
            for run in runs:
                if kills[run] < wanted[run] and _killed(run, rng):
                    kills[run] += 1
            time.sleep(LOOK_EVERY)
    left = {run.name: remains(run.folder) for run in runs if is_finished(run.folder)}
    expected: dict[int, Any] = {}
    equal = [left[run.name] == expected.setdefault(run.request["seed"], left[run.name]) for run in _done(runs)]
    return {
        "runs": count,
        "seconds": round(time.monotonic() - began),
        "exit_code": sweep.returncode,
        "kills": sum(kills.values()),
        "runs_that_were_killed": sum(map(bool, kills.values())),
        "unfinished": [run.name for run in runs if not is_finished(run.folder)],
        "done_twice": [run.name for run in _done(runs) if _done_twice(run, kills[run])],
        "all_equal": all(equal),
        "compared": "metrics.jsonl but time/*, evaluations.npz, policy, config, all arrays and words of the checkpoint",
    }


def _done(runs: list[PlannedRun]) -> list[PlannedRun]:
    return [run for run in runs if is_finished(run.folder)]


def _killed(run: PlannedRun, rng: random.Random) -> bool:
    """Kill the process of a run, if there is one and chance wants it."""
    learning = (run.folder / "metrics.jsonl").exists()
    if not in_use(run.folder) or rng.random() > (LATE if learning else EARLY):
        return False
    lives = attempts(run.folder) if (run.folder / ATTEMPTS).exists() else []
    if not lives:  # it has the lock, and is about to say who it is
        return False
    try:
        os.kill(lives[-1]["pid"], signal.SIGKILL)
    except ProcessLookupError:  # it has just ended, or the next one has not said yet who it is
        return False
    return True


def _done_twice(run: PlannedRun, kills: int) -> bool:
    """Whether more processes worked on a run than had to, or one after it was finished."""
    finished = json.loads((run.folder / "finished.json").read_text())
    lives = attempts(run.folder)
    return len(lives) > 1 + kills or lives[-1]["pid"] != finished["pid"]


if __name__ == "__main__":
    main()
