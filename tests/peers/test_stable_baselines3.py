"""Stable-Baselines3's own tools work on our agents."""

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from mbdp import MBDP
from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.cli import main
from mbdp.experiments.evaluate import evaluate
from mbdp.types import BadInput
from tests.conftest import TINY
from tests.experiments.test_commands import QUICK

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


ENV = "InvertedPendulum-v5"
EVERY, EPISODES = 50, 3


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The evaluations.npz of a run of ours and of a run of Stable-Baselines3's EvalCallback, equally long."""
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs") / "sac" / f"{ENV}_1"
    schedule = ["--evaluate-every", str(EVERY), "--episodes", str(EPISODES)]
    assert main(["train", ENV, *QUICK, *schedule, "--out", str(ours), "--quiet"]) == 0
    written = EvalCallback(
        Monitor(gymnasium.make(ENV)), n_eval_episodes=EPISODES, eval_freq=EVERY, log_path=str(theirs), verbose=0
    )
    SAC("MlpPolicy", ENV, learning_starts=10**6, device="cpu").learn(2 * EVERY, callback=written)
    return ours / "mbdp" / f"{ENV}_0" / "evaluations.npz", theirs / "evaluations.npz"


def test_our_evaluations_have_the_keys_dtypes_and_shapes_of_an_eval_callback(files):
    ours, theirs = ({name: (array.dtype, array.shape) for name, array in np.load(file).items()} for file in files)
    assert ours == theirs
    assert set(ours) == {"timesteps", "results", "ep_lengths"}
    assert np.load(files[0])["timesteps"].tolist() == np.load(files[1])["timesteps"].tolist() == [EVERY, 2 * EVERY]


def test_rl_zoo_reads_the_same_curve_from_ours_as_from_theirs(files):
    """What rl_zoo3.plots.all_plots does with each file; the package itself cannot be installed beside our versions."""
    for file in files:
        log = np.load(file)
        mean = np.squeeze(log["results"].mean(axis=1))
        assert mean.shape == log["timesteps"].shape == (2,)
        assert np.squeeze(log["ep_lengths"].mean(axis=1)).shape == (2,)
        assert log["results"][-1].shape == (EPISODES,)


def test_a_callback_of_their_own_class_is_refused_with_a_sentence():
    class Own(BaseCallback):
        def _on_step(self):
            return True

    with pytest.raises(BadInput, match=r"it is a .*Own: derive it from mbdp\.Callback"):
        MBDP(POINT_MASS, **SETTINGS).learn(5, callback=Own())
