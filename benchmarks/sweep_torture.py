"""Kill the workers of a sweep at random, and see that every run ends, none is done twice, and all end as they should.

    python -m benchmarks.sweep_torture --runs 200        (or: make torture-sweep)

While the local pool carries out tiny runs on the point mass, one of its processes after the other is ended by SIGKILL,
one in four as soon as it exists, the others at an instant after their first fit. Each seed is there several times, under
another name, so that what is left of a run can be compared with its copies, byte by byte. Writes
results/sweep_torture.json.
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
from mbdp.experiments.sweep.spec import Run, read_spec
from mbdp.experiments.sweep.state import in_use, is_finished
from mbdp.parallel import cores

SEEDS = 5
KILLS_PER_RUN = 1.5


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
    sound = not result["unfinished"] and not result["done_twice"] and result["all_equal"]
    print(f"{result['kills']} kills, {result['runs']} runs; all ended, none twice, all equal: {sound}; {args.out}")
    sys.exit(not sound)


def torture(folder: Path, count: int, workers: int, rng: random.Random) -> dict[str, Any]:
    """One sweep of so many runs, and what is to be said of their folders when it has ended."""
    # Copies of a seed differ in a setting that changes nothing here: checkpoints are due at every step anyway.
    copies = [f"[[run]]\nseed = {i % SEEDS}\ncheckpoint_minutes = {i // SEEDS * 1e-9}" for i in range(count)]
    spec = write_spec(folder, "\n".join(copies), name="{seed}_{checkpoint_minutes}")
    runs = read_spec(spec)
    kills: dict[str, int] = {}
    with subprocess.Popen([sys.executable, "-m", "mbdp", "sweep", str(spec), "--workers", str(workers)]) as sweep:
        while sweep.poll() is None:
            if sum(kills.values()) < KILLS_PER_RUN * count and (name := _kill_one(runs, rng)):
                kills[name] = kills.get(name, 0) + 1
            time.sleep(rng.uniform(0.0, 1.0))
    left = {run.name: remains(run.folder) for run in runs if is_finished(run.folder)}
    expected: dict[int, Any] = {}
    equal = [left[run.name] == expected.setdefault(run.request["seed"], left[run.name]) for run in _done(runs)]
    return {
        "runs": count,
        "exit_code": sweep.returncode,
        "kills": sum(kills.values()),
        "runs_that_were_killed": len(kills),
        "most_kills_of_a_run": max(kills.values(), default=0),
        "unfinished": [run.name for run in runs if not is_finished(run.folder)],
        "done_twice": [run.name for run in _done(runs) if _done_twice(run, kills.get(run.name, 0))],
        "all_equal": all(equal),
        "compared": "metrics.jsonl but time/*, evaluations.npz, policy, config, all arrays and words of the checkpoint",
    }


def _done(runs: list[Run]) -> list[Run]:
    return [run for run in runs if is_finished(run.folder)]


def _kill_one(runs: list[Run], rng: random.Random) -> str:
    """Kill the process of a run that is going on; the run's name, or nothing if there is none to kill now."""
    going_on = [run for run in runs if in_use(run.folder)]
    if not going_on:
        return ""
    run = rng.choice(going_on)
    learning = (run.folder / "metrics.jsonl").exists()
    if not learning and rng.random() > 0.25:
        return ""
    pid = int((run.folder / ".lock").read_text() or 0)
    if not pid or not in_use(run.folder):
        return ""
    os.kill(pid, signal.SIGKILL)
    return run.name


def _done_twice(run: Run, kills: int) -> bool:
    """Whether more processes worked on a run than had to, or one after it was finished."""
    finished = json.loads((run.folder / "finished.json").read_text())
    lives = attempts(run.folder)
    return len(lives) > 1 + kills or lives[-1]["pid"] != finished["pid"]


if __name__ == "__main__":
    main()
