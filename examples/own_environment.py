"""An environment of your own, from training to the robot: reward and termination are learned, its physical parameter
is perturbed by name, and the policy is exported. About two minutes on one core."""

import argparse
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np

from mbdp import MBDP
from mbdp.policies.export import export_onnx
from mbdp.policies.foreign import open_policy
from mbdp.robustness import evaluate_grid
from mbdp.types import BadInput


class Crane(gymnasium.Env[np.ndarray, np.ndarray]):
    """Drive a trolley to the middle of its rail without letting the load swing beyond 0.6 rad."""

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (4,), np.float32)
    action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float32)
    perturbations: ClassVar = {"cable": "length"}  # the axis `cable` multiplies the attribute `length`

    def __init__(self) -> None:
        self.length = 1.0  # of the cable, in metres

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state = np.array([self.np_random.uniform(-1.0, 1.0), 0.0, 0.0, 0.0])
        return self.state.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        place, speed, angle, swing = self.state
        force = float(action[0])
        swing -= 0.05 * ((9.8 * np.sin(angle) + force * np.cos(angle)) / self.length + 0.1 * swing)
        speed += 0.05 * force
        place, angle = place + 0.05 * speed, angle + 0.05 * swing
        self.state = np.clip([place, speed, angle, swing], -10, 10)
        fell = bool(abs(angle) > 0.6 or abs(place) > 2)
        # Never negative: where an episode can end early, an agent that only loses by going on would learn to end it.
        return self.state.astype(np.float32), float(np.exp(-4 * place**2 - angle**2)), fell, False, {}


def make() -> gymnasium.Env:
    """The crane, for 100 steps."""
    return gymnasium.wrappers.TimeLimit(Crane(), 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500, help="env steps of training")
    parser.add_argument("--out", type=Path, default=Path("crane.onnx"), help="a new file for the policy")
    args = parser.parse_args()

    agent = MBDP(make(), seed=0, random_steps=300, rollouts=5_000)
    agent.learn(args.steps, progress_bar=True)
    policy = agent.policy()

    # How far can it be trusted if the cable is not as long as we think?
    grid = evaluate_grid(policy, make, {"cable": [0.25, 0.5, 1.0, 2.0, 4.0]}, episodes=10)
    for cable, returns, lengths in zip(grid.axes["cable"], grid.returns, grid.lengths, strict=True):
        fell = int((lengths < 100).sum())
        print(f"cable x {cable:<4g}  return {returns.mean():5.1f} of at most 100, fell in {fell} of 10 episodes")

    # To the robot: one file, compared with the policy on what it will see, that needs neither JAX nor mbdp.
    observations, _ = zip(*(make().reset(seed=seed) for seed in range(100)), strict=True)
    try:
        difference = export_onnx(policy, args.out, np.array(observations))
    except BadInput as error:  # the packages are an extra: pip install 'mbdp[onnx]'
        print(f"not exported: {error}")
        return
    exported = evaluate_grid(open_policy(args.out), make, {"cable": [1.0]}, episodes=10)
    print(f"{args.out}: largest difference {difference:.1e}; its return is {exported.returns.mean():.1f}")


if __name__ == "__main__":
    main()
