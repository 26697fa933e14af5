"""Stable-Baselines3's own tools work on our agents."""

import gymnasium
import numpy as np
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from mbdp import MBDP
from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.evaluate import evaluate
from tests.conftest import TINY

SETTINGS = {name: value for name, value in TINY.items() if name != "steps"}


def test_evaluate_policy_gives_the_return_that_our_own_evaluation_gives():
    agent = MBDP(POINT_MASS, **SETTINGS).learn(60)
    env = gymnasium.make(POINT_MASS)
    ours = evaluate(agent.policy(), [env], first_seed=7).returns[0]
    env.reset(seed=7)
    theirs, _ = evaluate_policy(agent, Monitor(SeededReset(env, 7)), n_eval_episodes=1, deterministic=True)
    assert np.isclose(ours, theirs, rtol=1e-5)


class SeededReset(gymnasium.Wrapper):
    """Every reset starts from one seed."""

    def __init__(self, env, seed):
        super().__init__(env)
        self.seed = seed

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=self.seed, options=options)


def test_evaluate_policy_runs_several_environments_at_once():
    from stable_baselines3.common.env_util import make_vec_env

    agent = MBDP("InvertedPendulum-v5", **SETTINGS)
    returns, lengths = evaluate_policy(
        agent, make_vec_env("InvertedPendulum-v5", 3), n_eval_episodes=6, return_episode_rewards=True
    )
    assert len(returns) == len(lengths) == 6
