"""The newest policy of a run beside averages of its weights over env steps: the return of each at every evaluation.

python -m benchmarks.averages InvertedPendulum-v5 --seed 0 --steps 4250 --every 250 --out FILE
python -m benchmarks.averages CHECKPOINT --steps 100000 --out FILE            goes on from a checkpoint

Training does not depend on it: all these policies come from one run.
"""

import argparse
import dataclasses
import json
from pathlib import Path

import jax
import numpy as np

from mbdp import MBDP
from mbdp.envs.tasks import make
from mbdp.experiments.evaluate import evaluate
from mbdp.networks import MLP
from mbdp.policies.policy import Policy

OVER = (1, 100, 250, 500)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("start", help="an environment's id, or a checkpoint")
    parser.add_argument("--seed", type=int, default=0, help="of a run that begins here")
    parser.add_argument("--steps", type=int, required=True, help="env steps in all")
    parser.add_argument("--every", type=int, default=1000, help="env steps between two evaluations")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    agent = MBDP.load(args.start) if Path(args.start).exists() else MBDP(args.start, seed=args.seed)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    envs = [make(agent.env_id) for _ in range(10)]
    averages = dict.fromkeys(OVER, agent.learner.agent.actor)
    for progress in agent.iterate(args.steps):
        if not progress.settled:
            continue
        averages = {over: closer(average, agent.learner.agent.actor, over) for over, average in averages.items()}
        if progress.step % args.every == 0:
            found = {over: evaluate(policy_of(agent, one), envs).returns.mean() for over, one in averages.items()}
            line = {"step": progress.step} | {f"over {over}": float(value) for over, value in found.items()}
            with args.out.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
            print(line, flush=True)


def closer(average: MLP, newest: MLP, over: int) -> MLP:
    """The average one env step later."""
    return jax.tree.map(lambda a, b: (1 - 1 / over) * np.asarray(a) + np.asarray(b) / over, average, newest)


def policy_of(agent: MBDP, actor: MLP) -> Policy:
    """The deterministic policy of these weights."""
    learned = dataclasses.replace(agent.learner.agent, averaged_actor=actor)
    layers = agent.method.acting.greedy(learned, agent.world.spec.action_size)
    return dataclasses.replace(agent.policy(), **layers)


if __name__ == "__main__":
    main()
