"""The sizes that everybody is measured with: HalfCheetah, the paper's networks, 20 updates per env step."""

from typing import NamedTuple

import numpy as np

from mbdp.envs.interact import World
from mbdp.envs.tasks import make
from mbdp.replay import Replay

ENV = "HalfCheetah-v5"
MEMBERS, MODEL_WIDTH, MODEL_DEPTH = 10, 200, 4
KEPT = 8  # members that survive model dropout at beta 0.2; mbrl-lib calls them elite
SAMPLES = 10  # imagined from each state, of which the highest rewards are dropped
WIDTH, DEPTH, BATCH = 256, 2, 256
LEARNING_RATE, MODEL_LEARNING_RATE, DISCOUNT, TAU, TARGET_ENTROPY = 3e-4, 1e-3, 0.99, 0.005, -3.0
UPDATES_PER_STEP, STEPS_PER_FIT, FIT_STEPS = 20, 250, 100


class Sizes(NamedTuple):
    """How much work one measurement is; `--quick` only sees whether everything runs."""

    real_rows: int = 5_000
    updates: int = 40
    fit_steps: int = FIT_STEPS
    imagined: int = 100_000
    env_steps: int = 500  # of acting
    stretch: int = STEPS_PER_FIT  # env steps of the whole algorithm, with one fit in each
    rounds: int = 25
    stretches: int = 4  # 1,000 env steps in all


QUICK = Sizes(real_rows=1_000, updates=4, fit_steps=4, imagined=4_000, env_steps=20, stretch=4, rounds=2, stretches=1)


def random_rows(count: int) -> Replay:
    """A buffer with transitions of random actions."""
    world, rng = World(make(ENV), seed=0), np.random.default_rng(0)
    d_env = Replay(count + 10_000, world.spec)
    while len(d_env) < count:
        d_env.add(world.step(rng.uniform(-1, 1, world.spec.action_size)).rows)
    return d_env
