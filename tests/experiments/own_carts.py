"""Environments that are not this library's, imported by their ids on the command line."""

import gymnasium
import numpy as np

from mbdp.envs.toy import PointMass
from mbdp.experiments.evaluate import FIRST_SEED

CLASSES = "tests.robustness.test_parameters"
CART, FORGETFUL, GROWING = (f"{__name__}:tests/{name}-v0" for name in ("Cart", "Forgetful", "Growing"))
gymnasium.register("tests/Cart-v0", entry_point=f"{CLASSES}:Cart", max_episode_steps=50)
gymnasium.register("tests/Forgetful-v0", entry_point=f"{CLASSES}:Forgetful", max_episode_steps=50)


class Growing(PointMass):
    """In an episode of an evaluation, which it knows by the seed, its observation gets a number more."""

    def reset(self, *, seed=None, options=None):
        self.is_judged = seed in range(FIRST_SEED, FIRST_SEED + 100)
        return super().reset(seed=seed)

    def step(self, action):
        observation, *rest = super().step(action)
        return np.resize(observation, 3 if self.is_judged else 2), *rest


gymnasium.register(
    "tests/Growing-v0", entry_point=f"{__name__}:Growing", max_episode_steps=50, disable_env_checker=True
)
