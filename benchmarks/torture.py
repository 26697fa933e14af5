"""Kill a run without warning, again and again, and compare what is left in the end with a run that was left alone.

    python -m benchmarks.torture --kills 50        (or: make torture)

One life of the process in four is ended by SIGKILL at an instant drawn from its start-up (imports, loading), the others
at one drawn from what follows (compiling, learning, evaluating, saving at every step). A life that made no progress
makes the next one longer. Writes results/torture.json.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.faults.runs import OPTIONS, remains

from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.versions import versions

ENV = "InvertedPendulum-v5"
STEPS = 240
TRAIN = ["train", ENV, *OPTIONS, "--steps", str(STEPS), "--checkpoint-minutes", "0"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="of the instants")
    parser.add_argument("--out", type=Path, default=Path("results/torture.json"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        result = torture(Path(folder), args.kills, random.Random(args.seed))
    result |= {"command": " ".join(["mbdp", *TRAIN]), "seed": args.seed, "versions": versions()}
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{result['kills']} kills, {result['runs']} runs, all equal: {result['all_equal']}; {args.out}")
    sys.exit(not result["all_equal"])


def torture(folder: Path, kills: int, rng: random.Random) -> dict[str, Any]:
    """Runs that are killed until they are finished, one after the other, until there were so many kills."""
    live([*TRAIN, "--out", str(folder / "alone")], math.inf, math.inf)  # compiles what all others load
    _, startup, rest = live([*TRAIN, "--out", str(folder / "timed")], math.inf, math.inf)
    reference = remains(_run_in(folder / "alone"))
    lives: list[dict[str, Any]] = []
    equal = [remains(_run_in(folder / "timed")) == reference]
    while sum(life["killed"] for life in lives) < kills:
        out = folder / f"run_{len(equal)}"
        lives += suffer(out, startup, rest / 4, rng)  # several lives for each run
        equal.append(remains(_run_in(out)) == reference)
        print(f"run {len(equal)}: equal {equal[-1]}, {sum(life['killed'] for life in lives)} kills so far", flush=True)
    killed = [life for life in lives if life["killed"]]
    return {
        "kills": len(killed),
        "kills_after_start_up": sum(life["learning"] for life in killed),
        "kills_that_left_a_partial_file": sum(life["partial"] for life in killed),
        "runs": len(equal),
        "all_equal": all(equal),
        "compared": "metrics.jsonl but time/*, evaluations.npz, policy, config, all arrays and words of the checkpoint",
        "seconds_of_an_uninterrupted_run": [round(startup, 2), round(rest, 2)],
        "lives": lives,
    }


def suffer(out: Path, startup: float, rest: float, rng: random.Random) -> list[dict[str, Any]]:
    """One run, begun, killed and resumed until it is finished; a list of its lives."""
    lives: list[dict[str, Any]] = []
    run, step = _run_in(out), None
    while not lives or lives[-1]["killed"]:
        if step is None and run.exists():  # it died between making the folder and its first checkpoint
            run.rename(run.with_name(f"stillborn_{len(lives)}"))
        command = [*TRAIN, "--out", str(out)] if step is None else ["resume", str(run), "--quiet"]
        early = rng.random() < 0.25
        before = rng.uniform(0, startup) if early else math.inf
        killed, lasted, learned = live(command, before, rng.uniform(0, rest))
        files = checkpoints_of(run)
        reached = int(files[-1].stem.removeprefix("step_")) if files else None
        rest *= 1.3 if not early and reached == step else 1.0
        step = reached
        partial = bool(list(run.rglob(".*.partial")))
        seconds = [round(lasted, 3), round(learned, 3)]
        lives.append({"killed": killed, "learning": not early, "seconds": seconds, "step": step, "partial": partial})
    return lives


def live(arguments: list[str], before: float, after: float) -> tuple[bool, float, float]:
    """Run the program and kill it so many seconds after its start, or `after` it said where it writes.

    Whether it was killed, and how long it lived until it said so and from then on. Failure is an error.
    """
    command = [sys.executable, "-m", "mbdp.experiments.cli", *arguments]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        if before < math.inf:
            time.sleep(before)
            said = time.monotonic()
            after = 0.0
        else:
            child.stdout.readline()
            said = time.monotonic()
        try:
            _, errors = child.communicate(timeout=None if after == math.inf else after)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return True, said - began, time.monotonic() - said
    if child.returncode:
        raise RuntimeError(f"{' '.join(arguments[:2])} ended with {child.returncode}: {errors}")
    return False, said - began, time.monotonic() - said


def _run_in(out: Path) -> Path:
    return out / "mbdp" / f"{ENV}_0"


if __name__ == "__main__":
    main()
