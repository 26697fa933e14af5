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


def test_every_task_is_in_this_suite():
    assert {env_id.rpartition("-v")[0] for env_id in SIZES} == set(TASKS)


@pytest.mark.parametrize("env_id", SIZES)
def test_sizes_are_those_of_the_literature(env_id):
    assert spec_of(make(env_id)) == SIZES[env_id]


@pytest.mark.parametrize("env_id", SIZES)
def test_the_termination_rule_agrees_with_the_real_environment(env_id):
    env = make(env_id)
    env.action_space.seed(0)
    real, following = [], []
    for episode in range(8):
        env.reset(seed=episode)
        for _ in range(150):
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            real.append(terminated)
            following.append(observation)
            if terminated or truncated:
                break
    rule = task_of(env_id).termination
    assert rule is not None
    states = np.array(following, np.float32)
    np.testing.assert_array_equal(np.asarray(rule(states, None, states)), real)


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
