"""What a known termination rule buys on Hopper-v5: the same agent with the rule, and with an end that its models learn.

    python -m benchmarks.learned_termination [--seeds 3] [--steps 20000]     writes results/learned_termination.json

Hours of one core. After any interruption the same command goes on; the file is written anew after each run.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.resumable_runs import evaluations, lines_of, run_of

ENV, RULES = "Hopper-v5", ("known", "learned")
FILE = Path(__file__).parent.parent / "results" / "learned_termination.json"
OF_THE_FIT = ("precision", "recall", "held_out")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--steps", type=int, default=20_000, metavar="N", help="env steps of each run")
    parser.add_argument("--evaluate-every", type=int, default=1_000, metavar="N")
    parser.add_argument("--runs", type=Path, default=Path("runs/learned_termination"), metavar="DIR")
    parser.add_argument("--out", type=Path, default=FILE, metavar="FILE")
    args = parser.parse_args()
    done: list[dict[str, Any]] = []
    for seed in range(args.seeds):
        for rule in RULES:
            out = args.runs / f"{args.steps}_steps" / rule
            options = ("--termination", rule, "--evaluate-every", str(args.evaluate_every))
            done.append(result_of(run_of(out, ENV, seed, args.steps, *options), rule, seed))
            about = {"env": ENV, "steps": args.steps, "last_third": last_third(done)}
            args.out.write_text(json.dumps(about | {"runs": done}, indent=1) + "\n")
    print(table(done))


def result_of(run: Path, rule: str, seed: int) -> dict[str, Any]:
    """Every evaluation of a run, what its last fit says of the ends that it learned, and the code that it ran."""
    curve = evaluations(run)
    fits = [line for line in lines_of(run) if "model/termination_recall" in line]
    ends = {name: fits[-1][f"model/termination_{name}"] for name in OF_THE_FIT} if fits else {}
    versions = json.loads((run / "versions.json").read_text())
    return {
        "termination": rule,
        "seed": seed,
        "steps": [line["step"] for line in curve],
        "returns": [round(line["eval/mean_reward"], 2) for line in curve],
        "last_fit": ends,
        "commit": versions["commit"],
        "learner": versions["learner"],
    }


def last_third(done: list[dict[str, Any]]) -> dict[str, float]:
    """The mean return of the last third of the evaluations under each rule, and learned divided by known.

    Only seeds that have both runs count.
    """
    means = {rule: {one["seed"]: late_mean(one) for one in done if one["termination"] == rule} for rule in RULES}
    both = means["known"].keys() & means["learned"].keys()
    if not both:
        return {}
    known, learned = (float(np.mean([means[rule][seed] for seed in both])) for rule in RULES)
    return {"known": round(known, 2), "learned": round(learned, 2), "ratio": round(learned / known, 3)}


def late_mean(one: dict[str, Any]) -> float:
    """Mean return over the last third of a run's evaluations."""
    late = [value for step, value in zip(one["steps"], one["returns"], strict=True) if step > one["steps"][-1] * 2 / 3]
    return float(np.mean(late))


def table(done: list[dict[str, Any]]) -> str:
    """A row for each seed, and one for their mean, as Markdown."""
    lines = ["| seed | known rule | learned | precision, recall of the last fit |", "|---|---|---|---|"]
    for known, learned in zip(done[::2], done[1::2], strict=True):
        fit = [learned["last_fit"].get(name) for name in OF_THE_FIT[:2]]
        ends = ", ".join("no end" if value is None else f"{value:.2f}" for value in fit)
        lines.append(f"| {known['seed']} | {late_mean(known):,.0f} | {late_mean(learned):,.0f} | {ends} |")
    mean = last_third(done)
    lines.append(f"| mean | {mean['known']:,.0f} | {mean['learned']:,.0f} | learned / known {mean['ratio']:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
