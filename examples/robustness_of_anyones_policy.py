"""A policy of ours and Stable-Baselines3's SAC on one grid of worlds, from Python.

    pip install 'mbdp[sb3]'
    mbdp train Hopper-v5
    python examples/robustness_of_anyones_policy.py runs/mbdp/Hopper-v5_0 --steps 100000

The same from the command line, for an agent that is already saved:

    mbdp robustness runs/mbdp/Hopper-v5_0 SAC=sac.zip --allow-code
"""

import argparse
from pathlib import Path

import gymnasium
from stable_baselines3 import SAC

from mbdp.analysis.heatmap import draw_grid
from mbdp.envs.tasks import make
from mbdp.policies.policy import load_policy
from mbdp.robustness import evaluate_grid
from mbdp.robustness.perturb import perturb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run directory of ours")
    parser.add_argument("--steps", type=int, default=20_000, help="that SAC is trained for")
    parser.add_argument("--second-axis", default="friction", help="besides mass; gear where nothing touches the ground")
    args = parser.parse_args()

    ours = load_policy(args.run)
    agent = SAC("MlpPolicy", make(ours.env), device="cpu", seed=0)
    agent.learn(args.steps)

    # Any callable from a batch of observations to a batch of actions will do, and so does any agent with `predict`.
    axes = {"mass": [0.6, 0.8, 1.0, 1.2, 1.4], args.second_axis: [0.6, 0.8, 1.0, 1.2, 1.4]}
    grids = {
        f"ours: {ours.algo}": evaluate_grid(ours, ours.env, axes, episodes=3, seed=0),
        "SB3: SAC": evaluate_grid(agent, ours.env, axes, episodes=3, seed=0),
    }
    for label, grid in grids.items():
        print(f"{label:16} nominal {grid.returns[2, 2].mean():8.1f}   mean over the grid {grid.returns.mean():8.1f}")

    # One axis in front for the training seeds, of which each method has one here.
    returns = {label: grid.returns[None] for label, grid in grids.items()}
    file = Path("robustness.png")
    draw_grid(returns, axes, dict.fromkeys(axes, 1.0), file, ours.env, grids["SB3: SAC"].protocol)
    print(f"heat map: {file}")

    # No number has to be believed: a plain loop gives it again.
    env: gymnasium.Env = perturb(make(ours.env), {"mass": 0.6, args.second_axis: 1.4})
    observation, _ = env.reset(seed=1)
    total, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(ours(observation[None])[0])
        total, over = total + float(reward), terminated or truncated
    print(f"by hand {total}, in the grid {grids[f'ours: {ours.algo}'].returns[0, 4, 1]}")


if __name__ == "__main__":
    main()
