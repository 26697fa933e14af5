"""An environment in which a policy is judged: its numbers pass as they are, and what it did not promise is one line."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict

from mbdp.envs.checked import Checked, promise_of
from mbdp.envs.interact import World
from mbdp.envs.spaces import adapted
from mbdp.envs.toy import PointMass
from mbdp.types import BadInput, Broken

SMALL, LARGE = Box(-10.0, 10.0, (2,), np.float64), Box(-10.0, 10.0, (3,), np.float64)


class Growing(PointMass):
    """Its observation has a number more from a step on, which it says, or from an episode on."""

    def __init__(self, step=99, episode=99):
        super().__init__()
        self.observation_space = SMALL
        self.step_of_change, self.episode_of_change, self.episode, self.length = step, episode, 0, 0

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        self.episode, self.length = self.episode + 1, 0
        return self._grown(observation), info

    def step(self, action):
        observation, *rest = super().step(action)
        self.length += 1
        return self._grown(observation), *rest

    def _grown(self, observation):
        grown = self.length >= self.step_of_change or self.episode >= self.episode_of_change
        self.observation_space = LARGE if grown else SMALL
        return np.resize(observation, self.observation_space.shape).astype(float)


def walk(env, steps=5, seed=3):
    env.reset(seed=seed)
    for _ in range(steps):
        env.step(np.zeros(1, np.float32))


def test_every_number_is_that_of_the_environment():
    env, plain = Checked(Growing()), Growing()
    np.testing.assert_array_equal(env.reset(seed=0)[0], plain.reset(seed=0)[0])
    ours, theirs = env.step(np.ones(1)), plain.step(np.ones(1))
    assert ours[0].dtype == np.float64
    np.testing.assert_array_equal(ours[0], theirs[0])
    assert ours[1:] == theirs[1:]


def outcomes_of(world, steps):
    return [world.step(np.ones(1, np.float32)) for _ in range(steps)]


CHANGED = r"the observation space changed from Box\(.*\(2,\), float64\) to Box\(.*\(3,\), float64\), which no policy"


def test_a_space_that_changes_within_an_episode_is_named_with_the_step():
    with pytest.raises(Broken, match=rf"^Growing at step 3 of an episode: {CHANGED}"):
        walk(Checked(Growing(step=3)))


def test_a_space_that_changes_between_episodes_is_named_with_the_seed():
    env = Checked(Growing(episode=2))
    walk(env)
    with pytest.raises(Broken, match=rf"^Growing at reset with seed 7: {CHANGED}"):
        walk(env, seed=7)


def test_what_was_promised_before_an_earlier_wrapping_counts():
    env = Growing(episode=2)
    promise = promise_of(env)
    walk(Checked(env, promise))
    env.reset()
    with pytest.raises(Broken, match=CHANGED):
        walk(Checked(env, promise))


@pytest.mark.parametrize("when", [{"step": 3}, {"episode": 2}])
def test_training_names_the_change_too_and_not_what_follows_from_it(when):
    with pytest.raises(Broken, match=rf"^Growing at step \d+ .*: {CHANGED}"):
        outcomes_of(World(Growing(**when), 0), 100)


def test_parts_that_change_are_named_under_the_wrapper_that_flattens_them():
    class Parted(PointMass):
        observation_space = Dict({"place": Box(-10, 10, (1,)), "speed": Box(-10, 10, (1,))})

        def reset(self, *, seed=None, options=None):
            place, speed = super().reset(seed=seed)[0]
            return {"place": np.array([place]), "speed": np.array([speed])}, {}

        def step(self, action):
            observation, *rest = super().step(action)
            self.observation_space = Dict({"all": Box(-10, 10, (3,))})
            return {"all": np.resize(observation, 3)}, *rest

    with pytest.raises(Broken, match=r"^Parted at step 1 of an episode: the observation space changed from Dict"):
        walk(Checked(adapted(Parted())))


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda *five: five[:4], r"^Odd at step 1 of an episode: step returned 4 values: Gymnasium's step returns"),
        (lambda s, r, *rest: (s, None, *rest), "step returned the reward None: it must be one number"),
        (lambda s, *rest: ([[0.0], [0.0, 1.0]], *rest), "^Odd at step 1 of an episode raised ValueError: "),
        (lambda *five: five[5], "^Odd at step 1 of an episode raised IndexError: tuple index out of range$"),
    ],
)
def test_an_answer_that_is_not_gymnasiums_is_one_line(answer, named):
    class Odd(PointMass):
        def step(self, action):
            return answer(*super().step(action))

    with pytest.raises(Broken, match=named) as caught:
        walk(Checked(Odd()))
    assert "\n" not in str(caught.value)


def test_what_a_wrapper_of_ours_has_said_is_not_said_twice():
    class Ours(gymnasium.Wrapper):
        def reset(self, *, seed=None, options=None):
            raise BadInput("mass: reset() changes it")

    with pytest.raises(BadInput, match=r"^mass: reset\(\) changes it$"):
        Checked(Ours(PointMass())).reset(seed=0)
