"""The bounds of Section 3.3 for a run that is there, from its newest checkpoint and one evaluation; nothing is trained.

    python -m benchmarks.theory_of_run RUN --out results/theory/NAME.json

For runs that were made before `theory/*` was logged. The run is only read.
"""

import argparse
import json
from pathlib import Path

from mbdp.api import MBDP
from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.evaluate import evaluate
from mbdp.experiments.theory_metrics import theory_metrics
from mbdp.experiments.training_world import make_world


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--episodes", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    agent = MBDP.load(checkpoints_of(args.run)[-1])
    step = agent.learner.step
    lines = [json.loads(line) for line in (args.run / "metrics.jsonl").read_text().splitlines()]
    fit = [line for line in lines if "model/bias_0" in line and line["step"] <= step][-1]
    worlds = [make_world(agent.env_id, {}) for _ in range(args.episodes)]
    result = evaluate(agent.policy(), worlds, discount=agent.discount)
    found = {"env": agent.env_id, "step": step, "seed": agent.seed, "eval/mean_reward": float(result.returns.mean())}
    found |= {"gamma": agent.discount, **theory_metrics(agent, result, fit)}
    args.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
