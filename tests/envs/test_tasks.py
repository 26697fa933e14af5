import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from mbdp.envs.tasks import TASKS, make, spec_of, task_of
from mbdp.types import BadInput

SIZES = {
    "Hopper-v5": (11, 3),
    "Hopper-v4": (11, 3),
    "Walker2d-v5": (17, 6),
    "Walker2d-v4": (17, 6),
    "HalfCheetah-v5": (17, 6),
    "HalfCheetah-v4": (17, 6),
    "Ant-v5": (27, 8),
    "Ant-v4": (27, 8),
    "InvertedPendulum-v5": (4, 1),
    "InvertedDoublePendulum-v5": (9, 1),
    "Swimmer-v5": (8, 2),
    "Reacher-v5": (10, 2),
    "Pendulum-v1": (3, 1),
    "mbdp/PointMass-v0": (2, 1),
}
ENDLESS = {"HalfCheetah", "Swimmer", "Reacher", "Pendulum"}  # only a time limit ends their episodes


def test_every_task_is_in_this_suite():
    assert {env_id.rpartition("-v")[0] for env_id in SIZES} == set(TASKS)


@pytest.mark.parametrize("env_id", SIZES)
def test_sizes_are_those_of_the_literature(env_id):
    assert spec_of(make(env_id)) == SIZES[env_id]


@pytest.mark.parametrize("env_id", SIZES)
def test_the_termination_rule_agrees_with_the_real_environment(env_id):
    env, rng = make(env_id), np.random.default_rng(0)
    low, high = env.action_space.low, env.action_space.high
    steps, terminated_at = [], []
    for episode in range(8):
        observation, over = env.reset(seed=episode)[0], False
        while not over and len(steps) < 150 * (episode + 1):
            # One extreme action after another, each held for a while: noise alone rarely moves the point mass far.
            if len(steps) % 10 == 0:
                action = np.where(rng.random(low.shape) < 0.5, low, high)
            following, _, terminated, truncated, _ = env.step(action)
            steps.append((observation, action, following))
            terminated_at.append(terminated)
            observation, over = following, terminated or truncated
    rule = task_of(env_id).termination
    assert rule is not None
    observations, actions, followings = (np.array(column, np.float32) for column in zip(*steps, strict=True))
    np.testing.assert_array_equal(np.asarray(rule(observations, actions, followings)), terminated_at)
    assert any(terminated_at) == (env_id.rpartition("-v")[0] not in ENDLESS)


@pytest.mark.parametrize("env_id", ["Hopper-v5", "Walker2d-v5", "Ant-v5", "InvertedPendulum-v5"])
def test_a_state_that_is_not_a_number_ends_the_episode(env_id):
    rule = task_of(env_id).termination
    assert rule is not None
    nan = np.full((1, SIZES[env_id][0]), np.nan, np.float32)
    assert bool(np.asarray(rule(nan, None, nan))[0])


def test_nothing_is_presumed_of_an_unknown_task():
    assert task_of("SomebodysRobot-v3").termination is None


@pytest.mark.parametrize(
    ("env_id", "message"),
    [("Hoper-v5", "did you mean 'Hopper-v5'"), ("Nothing-like-it", "Hopper-v5"), ("Hopper-v99", "cannot be made")],
)
def test_an_unknown_environment_is_refused_with_a_hint(env_id, message):
    with pytest.raises(BadInput, match=message):
        make(env_id)


def test_discrete_actions_are_refused():
    with pytest.raises(BadInput, match=r"action space must be a one-dimensional Box; it is Discrete\(2\)"):
        spec_of(gymnasium.make("CartPole-v1"))


class Odd(gymnasium.Env):
    observation_space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Box(0, 1, (1,))})
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))


def test_dict_observations_are_refused():
    with pytest.raises(BadInput, match="observation space must be a one-dimensional Box"):
        spec_of(Odd())


def test_unbounded_actions_are_refused():
    env = Odd()
    env.observation_space = gymnasium.spaces.Box(0, 1, (1,))
    with pytest.raises(BadInput, match="finite bounds"):
        spec_of(env)


QUIET = """
import mujoco
from mbdp.envs.tasks import make
make("HalfCheetah-v5").reset(seed=0)
assert mujoco.get_mju_user_warning() is None
"""
LOUD = """
import gymnasium, mujoco
from mbdp.envs.tasks import make
class Noisy(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Box(-1, 1, (1,))
    def __init__(self):
        ball = "<body><freejoint/><geom size='1'/></body>"
        model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{ball}</worldbody></mujoco>")
        data = mujoco.MjData(model)
        data.qpos[0] = float("nan")
        mujoco.mj_step(model, data)
gymnasium.register("Noisy-v0", Noisy)
make("Noisy-v0", disable_env_checker=True)
"""


def run_in(folder, code):
    """What a program of its own prints while standing in a folder."""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_making_the_half_cheetah_prints_nothing_and_leaves_no_log_file(tmp_path):
    assert run_in(tmp_path, QUIET) == ""
    assert list(tmp_path.iterdir()) == []


def test_other_warnings_of_mujoco_are_shown(tmp_path):
    assert "WARNING: Nan, Inf or huge value in QPOS" in run_in(tmp_path, LOUD)
