import gymnasium
import numpy as np
import pytest

from mbdp.envs.interact import MOST_FAULTS, Cut, World
from mbdp.envs.tasks import make
from mbdp.envs.toy import POINT_MASS, PointMass
from mbdp.replay import unpack
from mbdp.types import BadInput


class Faulty(PointMass):
    """A point mass that answers with `reward` at every `period`-th step, or raises if that is None."""

    def __init__(self, reward: float | None, period: int = 5):
        super().__init__()
        self.reward, self.period, self.count = reward, period, 0

    def step(self, action):
        self.count += 1
        observation, reward, terminated, truncated, info = super().step(action)
        if self.count % self.period:
            return observation, reward, terminated, truncated, info
        if self.reward is None:
            raise RuntimeError("a wire broke")
        return observation, self.reward, terminated, truncated, info


def walk(world: World, steps: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([world.step(rng.uniform(-1, 1, world.spec.action_size)).rows for _ in range(steps)])


def test_the_same_seed_walks_the_same_way_and_another_does_not():
    first, second, other = (walk(World(make("Hopper-v5"), seed), 60) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_actions_are_rescaled_to_the_environments_bounds():
    world = World(make("InvertedPendulum-v5"), 0)
    np.testing.assert_allclose(world.to_env(np.array([-1.0])), [-3.0])
    np.testing.assert_allclose(world.to_env(np.array([0.5])), [1.5])


def test_a_time_limit_is_not_a_termination():
    world = World(make(POINT_MASS), 0)
    outcomes = [world.step(np.zeros(1)) for _ in range(50)]
    assert outcomes[-1].episode_length == 50
    assert unpack(outcomes[-1].rows, world.spec).terminated.tolist() == [0.0]


def test_an_episode_that_is_cut_is_not_a_termination_and_a_new_one_begins():
    world = World(make(POINT_MASS), 0)
    outcomes = [world.step(np.zeros(1), cut=Cut(20, np.inf)) for _ in range(21)]
    assert [i for i, one in enumerate(outcomes) if one.episode_length] == [19]
    assert unpack(outcomes[19].rows, world.spec).terminated.tolist() == [0.0]
    following = np.asarray(unpack(outcomes[19].rows, world.spec).next_observation)
    assert not np.array_equal(following, np.asarray(unpack(outcomes[20].rows, world.spec).observation))


@pytest.mark.parametrize(("usual", "length"), [(0.9, 50), (0.95, 20)])
def test_an_episode_is_cut_where_its_last_steps_earned_less_than_usual(usual, length):
    world = World(make(POINT_MASS), 0)
    earned = 1 - float(world.observation[0]) ** 2  # at rest, in every step
    outcomes = [world.step(np.zeros(1), cut=Cut(20, usual)) for _ in range(50)]
    assert 0.9 < earned < 0.95
    assert next(one.episode_length for one in outcomes if one.episode_length) == length


def test_a_termination_is_stored_and_a_new_episode_begins():
    world = World(make("Hopper-v5"), 0)
    rows = unpack(walk(world, 200), world.spec)
    assert rows.terminated.sum() == world.episode >= 1


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_not_stored_and_ends_the_episode(reward):
    world = World(Faulty(reward), 0)
    rows = walk(world, 10)
    assert len(rows) == 8
    assert np.isfinite(rows).all()
    assert (world.faults, world.episode) == (2, 2)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300])
def test_an_observation_that_is_not_finite_is_not_stored_and_ends_the_episode(number):
    class Blind(PointMass):
        def step(self, action):
            observation, *rest = super().step(action)
            return (np.full(2, number) if world.episode == 0 else observation), *rest

    world = World(Blind(), 0)
    rows = walk(world, 3)
    assert len(rows) == 2
    assert np.isfinite(rows).all()
    assert (world.faults, world.episode) == (1, 1)


def test_an_environment_that_only_gives_nan_is_given_up_on():
    world = World(Faulty(float("nan"), period=1), seed=7)
    with pytest.raises(BadInput, match=rf"Faulty at step {MOST_FAULTS} \(seed 7, .*NaN or infinity"):
        walk(world, 50)


def test_an_environment_that_raises_is_named_with_step_and_seed():
    world = World(Faulty(None), seed=7)
    with pytest.raises(BadInput, match=r"Faulty at step 5 \(seed 7, episode 0\) raised RuntimeError: a wire broke"):
        walk(world, 50)


@pytest.mark.parametrize("env_id", ["Hopper-v5", POINT_MASS])
def test_a_world_returns_to_its_bookmark_bit_for_bit(env_id):
    world = World(make(env_id), 1)
    rows = walk(world, 123)
    place = world.bookmark()
    episode = unpack(rows[len(rows) - place["episode_length"] :], world.spec)
    again = World(make(env_id), 1)
    assert again.return_to(place, episode.action, episode.next_observation[-1])
    np.testing.assert_array_equal(walk(world, 80, seed=5), walk(again, 80, seed=5))
    assert again.episode_return == world.episode_return


def test_a_world_that_does_not_repeat_itself_begins_a_new_episode_and_says_so():
    world = World(make(POINT_MASS), 1)
    rows = walk(world, 20)
    again = World(make(POINT_MASS), 2)  # another seed: other episodes
    repeated = again.return_to(
        world.bookmark(), unpack(rows, world.spec).action, unpack(rows, world.spec).next_observation[-1]
    )
    assert not repeated
    assert again.episode == world.episode + 1
    assert again.episode_length == 0


def test_a_reset_with_a_wrong_shape_is_refused():
    class Short(PointMass):
        def reset(self, *, seed=None, options=None):
            return np.zeros(1, np.float32), {}

    with pytest.raises(BadInput, match=r"shape \(1,\): the observation space is Box"):
        World(Short(), 0)


def test_the_point_mass_follows_gymnasiums_rules():
    from gymnasium.utils.env_checker import check_env

    check_env(gymnasium.make(POINT_MASS).unwrapped, skip_render_check=True)
