"""What an SLBO run's policy does in the real InvertedPendulum, and what the run's own model imagines that it does.

python benchmarks/imagined_path.py RUN > results/inverted_pendulum/imagined_path.csv
"""

import sys
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from mbdp.models.ensemble import predict, sample
from mbdp.policies.policy import load_policy
from mbdp.storage.checkpoint import load_learner, read_about

STEPS, EVERY = 200, 8


def main() -> None:
    run = Path(sys.argv[1])
    real, imagined = real_path(run), imagined_path(run)
    print("step,real position,real angle,real velocity,imagined position,imagined angle,imagined velocity")
    for step in range(0, STEPS, EVERY):
        here = [*(real[step, :3] if step < len(real) else ()), *imagined[step, :3]]
        cells = [f"{x:.3f}" for x in here]
        print(step, *["fallen"] * (6 - len(cells)), *cells, sep=",")


def real_path(run: Path) -> np.ndarray:
    """Observations until the pole has fallen."""
    policy, env = load_policy(run), gymnasium.make("InvertedPendulum-v5")
    observation, _ = env.reset(seed=0)
    path, terminated = [observation], False
    while len(path) < STEPS and not terminated:
        observation, _, terminated, *_ = env.step(policy(observation[None])[0])
        path.append(observation)
    return np.array(path[:-1] if terminated else path)


def imagined_path(run: Path) -> np.ndarray:
    """Observations from the same start in the model of the last checkpoint."""
    file = sorted((run / "checkpoints").iterdir())[-1]
    learner = load_learner(file, read_about(file))
    scaling, member = learner.model.scaling, jax.tree.map(lambda x: x[0], learner.model.members)
    policy, env = load_policy(run), gymnasium.make("InvertedPendulum-v5")
    reach = env.action_space.high
    here = env.reset(seed=0)[0].astype(np.float32)
    path = [here]
    while len(path) < STEPS:
        action = jnp.asarray(policy(here[None]) / reach, jnp.float32)
        normal = predict(member, scaling, here[None], action)
        here = np.asarray(sample(normal, scaling, here[None], noise=jnp.zeros_like(normal.mean))[0][0])
        path.append(here)
    return np.array(path)


if __name__ == "__main__":
    main()
