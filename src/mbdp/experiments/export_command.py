"""`mbdp export`: a trained policy as an ONNX file that needs neither JAX nor this library."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mbdp.types import BadInput

if TYPE_CHECKING:
    import numpy as np

    from mbdp.policies.policy import Policy

EXAMPLES = """\
examples:
  mbdp export runs/mbdp/Hopper-v5_0 hopper.onnx
  mbdp robustness hopper.onnx                            the file itself, through onnxruntime

The file takes observations (n, obs) as the environment gives them and returns actions (n, act) as it takes them.
Before the command ends, the file's actions are compared with the policy's, on random observations and on those of an
episode. examples/run_exported_policy.py runs such a file with numpy and onnxruntime alone.
"""
MOST_STEPS = 2000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("file", type=Path, metavar="FILE", help="a new file, as policy.onnx")
    parser.add_argument("--env", metavar="ID", help="needed for an id that imports a module: files import no code")


def run(args: argparse.Namespace) -> None:
    from mbdp.policies.export import check_target, export_onnx
    from mbdp.policies.policy import load_policy

    check_target(args.file)
    policy = load_policy(args.run)
    observations = _visited(policy, args.run, args.env)
    found = export_onnx(policy, args.file, observations)
    rows = f"{len(observations)} observations of an episode" if len(observations) else "random observations only"
    print(f"{args.file}: {policy.observation_size} observations to {policy.action_size} actions, for {policy.env}")
    print(f"compared with the policy on {rows}; largest difference {found:.1e} of half the action's range")


def _visited(policy: "Policy", run: Path, env_id: str | None) -> "np.ndarray":
    """Observations of an episode in the world of training; none where that environment is not at hand."""
    import numpy as np

    from mbdp.envs.tasks import registered
    from mbdp.experiments.training_world import make_judging_world, world_of

    try:
        known = env_id or registered(policy.env, run)
    except BadInput as error:
        print(f"note: {error}; --env ID would add a comparison on real observations")
        return np.zeros((0, policy.observation_size), np.float32)
    env = make_judging_world(known, world_of(run).perturb)
    rows, over = [env.reset(seed=0)[0]], False
    while not over and len(rows) < MOST_STEPS:
        observation, _, terminated, truncated, _ = env.step(policy(rows[-1][None])[0])
        rows.append(observation)
        over = terminated or truncated
    env.close()
    return np.array(rows, np.float32)
