"""Anybody's environment is flattened or refused with a sentence, and broken ones are named."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiDiscrete, Tuple

from mbdp import MBDP
from mbdp.envs.interact import World
from mbdp.envs.spaces import adaptation_of, adapted, flat_rows
from mbdp.envs.toy import PointMass
from mbdp.replay import unpack
from mbdp.types import BadInput
from tests.conftest import TINY

SETTINGS = {name: value for name, value in TINY.items() if name != "steps"}
PARTS = {"place": Box(-10, 10, (1,), np.float64), "speed": Box(-np.inf, np.inf, (1, 1), np.float32)}


class InParts(PointMass):
    """A point mass whose observation is a Dict, and whose actions are a matrix from 0 to 4."""

    def __init__(self):
        super().__init__()
        self.observation_space, self.action_space = Dict(PARTS), Box(0.0, 4.0, (1, 1), np.float64)

    def step(self, action):
        assert self.action_space.contains(action)
        _, *rest = super().step(action[0] / 2 - 1)
        return self.parts(), *rest

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.parts(), {}

    def parts(self):
        return {"place": np.array([self.position]), "speed": np.array([[self.velocity]], np.float32)}


def of(observation=None, action=None, env=PointMass):
    """A point mass that declares other spaces."""
    made = env()
    made.observation_space = observation or made.observation_space
    made.action_space = action or made.action_space
    return made


def answering(reset=None, step=None):
    """A point mass that answers otherwise."""

    class Odd(PointMass):
        def reset(self, *, seed=None, options=None):
            answer = super().reset(seed=seed)
            return reset(*answer) if reset else answer

        def step(self, action):
            answer = super().step(action)
            return step(*answer) if step else answer

    return Odd()


def test_a_dict_of_observations_is_flattened_with_a_message():
    with pytest.warns(
        UserWarning, match=r"InParts: the (observations, Dict\(|actions, Box\().* are flattened to \d num"
    ):
        agent = MBDP(gymnasium.wrappers.TimeLimit(InParts(), 50), **SETTINGS)
    assert agent.world.spec == (2, 1)
    assert agent.learn(60).learner.step == 60


def test_flattened_environments_go_through_the_same_states_as_the_plain_one():
    plain, parts = World(PointMass(), 3), World(adapted(InParts()), 3)
    for action in np.linspace(-1, 1, 30, dtype=np.float32)[:, None]:
        np.testing.assert_allclose(plain.step(action).rows, parts.step(action).rows, atol=1e-6)


def test_predict_takes_observations_as_the_environment_gives_them_and_answers_in_its_units():
    with pytest.warns(UserWarning, match="flattened"):
        agent = MBDP(InParts(), **SETTINGS)
    one, _ = agent.predict({"place": np.array([0.5]), "speed": np.array([[0.1]])})
    many, _ = agent.predict({"place": np.full((3, 1), 0.5), "speed": np.full((3, 1, 1), 0.1)})
    flat, _ = agent.predict(np.array([0.5, 0.1]))
    assert (one.shape, many.shape) == ((1, 1), (3, 1, 1))
    np.testing.assert_array_equal(many[1], one)
    np.testing.assert_array_equal(flat, one)


def test_rows_are_those_of_gymnasiums_own_wrapper():
    space = Tuple([Box(-1, 1, (2, 3)), Discrete(4, start=2), MultiDiscrete([2, 3])])
    space.seed(0)
    for observation in (space.sample() for _ in range(5)):
        rows, single = flat_rows(space, observation)
        assert single
        np.testing.assert_allclose(rows[0], gymnasium.spaces.flatten(space, observation), rtol=1e-6)


def test_a_matrix_of_observations_is_flattened():
    env = adapted(of(Box(-10, 10, (1, 2))))
    assert env.observation_space.shape == (2,)
    assert adaptation_of(env) == ["the observations, Box(-10.0, 10.0, (1, 2), float32), are flattened to 2 numbers"]


def test_nothing_is_said_of_an_environment_that_is_as_it_should_be():
    assert adaptation_of(adapted(PointMass())) == []


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_infinite_bounds_and_either_precision_are_taken(precision):
    env = answering(reset=lambda s, i: (s.astype(precision), i), step=lambda s, *rest: (s.astype(precision), *rest))
    env.observation_space = Box(-np.inf, np.inf, (2,), precision)
    assert World(adapted(env), 0).step(np.zeros(1)).rows.dtype == np.float32


def test_the_end_of_an_episode_and_a_time_limit_are_kept_apart():
    world = World(answering(step=lambda s, r, *rest: (s, r, True, True, {})), 0)
    outcome = world.step(np.zeros(1))
    assert outcome.episode_length == 1
    assert unpack(outcome.rows, world.spec).terminated.tolist() == [1.0]


@pytest.mark.parametrize(
    ("env", "named"),
    [
        (
            of(Box(0, 255, (84, 84, 3), np.uint8)),
            r"PointMass: Box\(0, 255, \(84, 84, 3\), uint8\) is an image.*DreamerV3",
        ),
        (of(Box(0, 1, (3, 64, 64))), "is an image"),
        (of(Box(0, 1, (84, 84))), "is an image"),
        (of(Box(-np.inf, np.inf, (10, 32, 32, 3), np.float64)), "is an image"),
        (of(Dict({"eye": Box(0, 255, (8, 8), np.uint8)})), "part 'eye' of the observation: .* is an image"),
        (of(Graph(Box(0, 1, (1,)), None)), "the observation space must be a Box, or a Dict or Tuple of them"),
        (of(action=Discrete(2)), r"the action space must be a Box of floats; it is Discrete\(2\): .* use DQN or PPO"),
        (of(action=Box(0, 5, (1,), np.int64)), r"must be a Box of floats; it is Box\(0, 5.*use DQN or PPO"),
        (of(action=Dict({"a": Box(0, 1)})), "it is Dict.*takes a Box of numbers"),
        (of(action=Box(-np.inf, 1, (1,))), "finite bounds"),
        (gymnasium.Env(), "the observation space must be a Box.* it is None"),
        ("Cart" + "Pole-v1", "use DQN or PPO"),
        (3, "env must be an id or a gymnasium.Env; it is builtins.int"),
    ],
)
def test_what_cannot_be_learned_in_is_refused_with_what_to_use_instead(env, named):
    with pytest.raises(BadInput, match=named):
        MBDP(env, **SETTINGS)


@pytest.mark.parametrize(
    ("answers", "named"),
    [
        ({"step": lambda s, r, end, cut, i: (s, r, end, i)}, "step returned 4 values: Gymnasium's step returns"),
        ({"reset": lambda s, i: s}, r"reset returned array\(\[.*: Gymnasium's reset takes seed"),
        ({"reset": lambda s, i: (s.astype(complex), i)}, r"observation of complex128 and shape \(2,\): the observ"),
        ({"reset": lambda s, i: (s[:1], i)}, r"reset returned an .* float32 and shape \(1,\): the observation space"),
        ({"step": lambda s, *rest: (np.append(s, 1), *rest)}, r"step returned .* float64 and shape \(3,\)"),
        ({"step": lambda s, r, *rest: (s, None, *rest)}, "step returned the reward None: it must be one number"),
        ({"step": lambda s, r, *rest: (s, np.ones(2), *rest)}, r"the reward array\(\[1\., 1\.\]\)"),
        ({"step": lambda s, r, end, *rest: (s, r, "no", *rest)}, "terminated = 'no': it must be True or False"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_an_answer_that_is_not_gymnasiums_is_named(answers, named, wrapped):
    env = answering(**answers)
    with pytest.raises(BadInput, match=f"Odd at step [01] .*{named}"):
        World(gymnasium.wrappers.TimeLimit(env, 50) if wrapped else env, 0).step(np.zeros(1))


def test_a_reset_without_a_seed_is_named():
    class Old(PointMass):
        def reset(self):
            return np.zeros(2, np.float32)

    with pytest.raises(
        BadInput, match=r"reset is of an old interface.*'seed'.*Gymnasium's reset takes seed= and options="
    ):
        World(Old(), 0)


def test_a_space_that_changes_is_named():
    class Growing(PointMass):
        def reset(self, *, seed=None, options=None):
            self.resets = getattr(self, "resets", 0) + 1
            self.action_space = Box(-1, 1, (self.resets,))
            return super().reset(seed=seed)

    env = Growing()
    env.reset()
    with pytest.raises(BadInput, match=r"the action space changed from Box\(-1.0, 1.0, \(1,\).* to .*\(2,\)"):
        World(env, 0)
