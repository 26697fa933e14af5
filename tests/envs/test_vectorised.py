"""Several environments at once are as many single ones, whatever happens to one of them."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from mbdp.envs.interact import MOST_FAULTS, NEVER, Cut, Outcome, World
from mbdp.envs.tasks import make
from mbdp.envs.toy import POINT_MASS
from mbdp.envs.vectorised import VectorWorld, made_of, new_world
from mbdp.replay import unpack
from mbdp.types import BadInput, Spec
from tests.envs.slow_simulators import Dice, Failing, Growing, short

ENVS = 3
SPEC = Spec(2, 1)
PUSH = np.array([[0.0], [1.0], [-0.2]])  # the second leaves the track and is terminated, the others are cut


@contextmanager
def world_of(env, seed: int = 7) -> Iterator[VectorWorld]:
    world = new_world(*made_of(env), seed, ENVS)
    assert isinstance(world, VectorWorld)
    try:
        yield world
    finally:
        world.close()


def actions(step: int) -> np.ndarray:
    return np.clip(PUSH + np.random.default_rng(step).uniform(-0.3, 0.3, PUSH.shape), -1, 1)


def always(chosen: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda observation: chosen


def walk(world: World, steps: int, first: int = 0) -> list[Outcome]:
    """So many env steps; what the environments do depends on how many there were before."""
    return [world.take(always(actions(step // ENVS))) for step in range(first, first + steps)]


def alone(env, lane: int, steps: int, seed: int = 7) -> list[Outcome]:
    world = World(made_of(env)[0], seed, lane)
    return [world.step(actions(step)[lane]) for step in range(steps)]


def same(first: list[Outcome], second: list[Outcome]) -> bool:
    pairs = zip(first, second, strict=True)
    return all(np.array_equal(one.rows, other.rows) and one[1:] == other[1:] for one, other in pairs)


@pytest.fixture(scope="module")
def outcomes() -> list[list[Outcome]]:
    """What each of three environments brought in 60 steps."""
    with world_of(short) as world:
        found = walk(world, 60 * ENVS)
    return [found[lane::ENVS] for lane in range(ENVS)]


@pytest.mark.parametrize("lane", range(ENVS))
def test_every_env_has_the_episodes_of_a_single_one_with_its_seeds_and_actions(outcomes, lane):
    assert same(outcomes[lane], alone(short, lane, 60))


def test_every_env_has_seeds_of_its_own(outcomes):
    starts = {float(own[0].rows[0, 0]) for own in outcomes}
    assert len(starts) == ENVS


def test_the_first_env_has_the_seeds_of_a_run_with_one(outcomes):
    assert outcomes[0][0].rows[0, 0] == World(short(), 7).observation[0]


def test_an_end_is_a_termination_and_a_time_limit_is_none(outcomes):
    last = [np.concatenate([one.rows for one in own if one.episode_length]) for own in outcomes]
    assert unpack(last[0], SPEC).terminated.tolist() == [0.0, 0.0, 0.0]
    assert unpack(last[1], SPEC).terminated.all()
    assert {one.episode_length for one in outcomes[0]} == {None, 20}


def test_the_last_row_of_an_episode_has_its_final_observation_and_the_next_begins_elsewhere(outcomes):
    for own in outcomes:
        rows = unpack(np.concatenate([one.rows for one in own]), SPEC)
        ended = np.array([one.episode_length is not None for one in own])[:-1]
        goes_on = (rows.next_observation[:-1] == rows.observation[1:]).all(axis=1)
        np.testing.assert_array_equal(goes_on, ~ended)
    terminated = [one.rows[0] for one in outcomes[1] if one.episode_length]
    assert all(abs(unpack(row, SPEC).next_observation[0]) > 2 for row in terminated)


@pytest.mark.parametrize("env", [short, partial(make, "Hopper-v5")], ids=["point mass", "hopper"])
def test_a_world_goes_on_bit_for_bit_from_the_middle_of_a_common_step(env):
    size = made_of(env)[0].action_space.shape[0]

    def go(world: World, first: int, steps: int) -> list[Outcome]:
        each = range(first, first + steps)
        return [world.take(always(np.tile(actions(step // ENVS), (1, size)))) for step in each]

    with world_of(env) as world:
        whole = go(world, 0, 100)
    with world_of(env) as world:
        assert same(go(world, 0, 64), whole[:64])
        arrays = world.arrays()
    with world_of(env) as world:
        assert world.restore(arrays)
        assert same(go(world, 64, 36), whole[64:])


def test_episodes_are_cut_in_every_env_from_the_moment_on_that_it_is_asked_for():
    with world_of(short) as world:
        found = [world.take(always(0 * PUSH), cut=cut) for cut in [NEVER] * 3 * ENVS + [Cut(1, np.inf)] * 2 * ENVS]
    assert [one.episode_length for one in found if one.episode_length] == [4] * ENVS + [1] * ENVS


def test_a_world_that_was_closed_goes_on_where_it_was(outcomes):
    with world_of(short) as world:
        walk(world, 31)
        world.close()
        assert multiprocessing.active_children() == []
        rest = walk(world, 2 + 9 * ENVS, first=31)
    assert same(rest[2::ENVS], outcomes[0][11:20])


def test_an_environment_that_does_not_repeat_itself_begins_a_new_episode_and_says_so():
    with world_of(partial(short, Dice)) as world:
        walk(world, 7 * ENVS)
        arrays = world.arrays()
        assert not world.restore(arrays)
        assert [one["episode"] for one in world.bookmarks] == [1, 1, 1]


def test_a_step_that_went_wrong_is_not_stored_and_is_counted():
    with world_of(partial(short, Failing, float("nan"))) as world:
        found = walk(world, 10 * ENVS)
        assert sum(len(one.rows) for one in found) == 8 * ENVS
        assert world.faults == 2 * ENVS
        world.restore(world.arrays())
        assert world.faults == 2 * ENVS


def test_an_environment_that_only_goes_wrong_is_given_up_on():
    with world_of(partial(short, Failing, float("inf"))) as world, pytest.raises(BadInput) as raised:
        walk(world, 5 * MOST_FAULTS * ENVS)
    assert "gave NaN or infinity, the last of 10 faults in a row" in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (Failing, ["raise"], r"^Failing at step 5 of env 0 \(seed 7, episode 0\) raised RuntimeError: a wire broke$"),
        (Failing, ["die"], r"^Failing: the process of env \d ended by signal 9; the simulator crashed, or memory ran"),
        (Growing, [], r"^Growing at step \d+ of env 1 \(seed 7, episode 1\): the observation space changed from Box"),
    ],
)
def test_what_cannot_go_on_is_named_in_one_line_and_leaves_no_process(kind, arguments, message, capfd):
    with world_of(partial(short, kind, *arguments)) as world:
        with pytest.raises(BadInput, match=message):
            walk(world, 100)
        assert multiprocessing.active_children() == []
    assert capfd.readouterr().err == ""


def test_a_step_that_one_env_cannot_take_has_not_happened_for_the_others():
    with world_of(partial(short, Failing, "die")) as world:
        walk(world, 4 * ENVS)
        before = world.arrays()
        with pytest.raises(BadInput):
            walk(world, 1)
        after = world.arrays()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_an_environment_that_is_there_cannot_be_made_again():
    with pytest.raises(
        BadInput, match="envs=3 needs an env that can be made 3 times: pass its id, its class or a func"
    ):
        new_world(*made_of(short()), 0, 3)


@pytest.mark.parametrize("envs", [0, -1, 2.0, True, 257, "4"])
def test_a_number_of_envs_that_is_none_is_refused(envs):
    with pytest.raises(BadInput, match="envs must be a whole number from 1 to 256; it is"):
        new_world(*made_of(POINT_MASS), 0, envs)


def test_one_env_is_the_environment_itself():
    assert type(new_world(*made_of(POINT_MASS), 0, 1)) is World


def test_an_environment_that_cannot_be_made_elsewhere_is_named():
    made = []

    def only_here():
        if not made:
            raise FileNotFoundError("no simulator here")
        return short()

    made.append(1)
    env = only_here()
    made.clear()
    with pytest.raises(BadInput, match=r"^env \d cannot be made in a process of its own: FileNotFoundError: no simul"):
        VectorWorld(env, only_here, 0, 2)


def test_what_cannot_be_sent_to_a_process_is_refused():
    lock = threading.Lock()  # only this process has it
    with pytest.raises(BadInput, match="cannot be sent to another process, so envs must be 1: TypeError"):
        new_world(short(), lambda: short() if lock else None, 0, 2)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("world.bookmarks", lambda array: array - 100),
        ("world.bookmarks", lambda array: array[:2]),
        ("world.bookmarks", lambda array: array.astype(np.float64)),
        ("world.actions", lambda array: array[:-1]),
        ("world.observations", lambda array: array * np.nan),
        ("world.rows", lambda array: array[:, :3]),
        ("world.endings", lambda array: -array),
        ("world.endings", lambda array: array[:0]),
    ],
)
def test_arrays_that_somebody_changed_are_refused(name, change):
    with world_of(short) as world:
        walk(world, 7)
        arrays = world.arrays()
        with pytest.raises(BadInput, match="world"):
            world.restore(arrays | {name: change(arrays[name])})
