"""Data that was gathered before: read in three forms, checked, and learned from before the first env step."""

import equinox as eqx
import gymnasium
import numpy as np
import pytest

from mbdp import MBDP
from mbdp.envs.interact import World
from mbdp.envs.tasks import make
from mbdp.envs.toy import POINT_MASS
from mbdp.replay import unpack
from mbdp.storage.datasets import read_data
from mbdp.types import BadInput
from tests.conftest import TINY

PENDULUM = "Pendulum-v1"
SETTINGS = {name: value for name, value in TINY.items() if name != "steps"} | {"data_steps": 40}


def gathered(env_id: str, count: int = 150) -> dict[str, np.ndarray]:
    """Random steps of an environment, under Stable-Baselines3's names; its actions are in [-1, 1]."""
    env, rng = gymnasium.make(env_id), np.random.default_rng(0)
    assert isinstance(env.action_space, gymnasium.spaces.Box)
    high, rows = env.action_space.high, []
    observation, _ = env.reset(seed=0)
    for _ in range(count):
        action = rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        following, reward, terminated, truncated, _ = env.step(action * high)
        rows.append((observation, following, action, reward, terminated or truncated, truncated and not terminated))
        observation = env.reset()[0] if terminated or truncated else following
    names = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
    return {name: np.array(column, np.float32) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


@pytest.fixture(scope="module")
def world() -> World:
    return World(make(PENDULUM), 0)


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    return gathered(PENDULUM, 450)


def test_rows_hold_what_the_arrays_hold_and_a_time_limit_is_no_end(world, arrays):
    steps = unpack(read_data(arrays, world).rows, world.spec)
    for name, column in {"observations": "observation", "actions": "action", "rewards": "reward"}.items():
        np.testing.assert_array_equal(getattr(steps, column), arrays[name])
    assert (arrays["dones"].sum(), steps.terminated.sum()) == (2, 0)


def test_without_timeouts_every_done_is_an_end(world, arrays):
    own = {name: array for name, array in arrays.items() if name != "timeouts"}
    assert unpack(read_data(own, world).rows, world.spec).terminated.sum() == 2


def test_an_axis_for_environments_is_taken_as_stable_baselines3_has_it(world, arrays):
    stacked = {name: array.reshape(225, 2, *array.shape[1:]) for name, array in arrays.items()}
    np.testing.assert_array_equal(read_data(stacked, world).rows, read_data(arrays, world).rows)


def test_actions_may_be_in_the_environments_units_if_they_are_named_so(world, arrays):
    own = {name: array for name, array in arrays.items() if name != "actions"} | {"env_actions": 2 * arrays["actions"]}
    read = read_data(own, world)
    np.testing.assert_allclose(read.rows, read_data(arrays, world).rows, atol=1e-6)
    assert read.remarks == []


def test_scaled_actions_are_mentioned_where_the_units_differ(world, arrays):
    assert "scaled to [-1, 1], as SB3 stores them, not in [-2, 2]" in read_data(arrays, world).remarks[0]


def test_observations_beyond_the_bounds_are_mentioned_with_the_first_of_them(world, arrays):
    said = read_data(broken(arrays, "next_observations", (17, 2), 25.0), world).remarks[0]
    assert said.startswith("data: next_observations go beyond the bounds of Pendulum-v1 in 1 of 450 rows, first in row")
    assert "row 17: number 2 is 25, beyond [-8, 8]; are units and order the same?" in said


def test_observations_without_bounds_are_never_beyond_them():
    world = World(make("Swimmer-v5"), 0)
    rows = {name: np.full((100, world.spec.observation_size), 1e30) for name in ("observations", "next_observations")}
    others = {"actions": np.zeros((100, 2)), "rewards": np.zeros(100), "dones": np.zeros(100)}
    assert read_data(rows | others, world).remarks == []


def test_an_npz_file_is_read(world, arrays, tmp_path):
    np.savez(tmp_path / "data.npz", **arrays)
    np.testing.assert_array_equal(read_data(tmp_path / "data.npz", world).rows, read_data(arrays, world).rows)


def broken(arrays, name, index=..., value=None):
    """The arrays with one that is changed, or left out."""
    changed = {key: array.copy() for key, array in arrays.items()}
    if value is None:
        del changed[name]
    else:
        changed[name][index] = value
    return changed


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda a: broken(a, "rewards"), "rewards is missing; it must have observations, next_obs"),
        (lambda a: broken(a, "actions"), "it needs actions in .*or env_actions"),
        (
            lambda a: broken(a, "observations", 17, np.nan),
            "observations has NaN or infinity in 1 rows, first in row 17",
        ),
        (lambda a: broken(a, "rewards", 3, 1e9), r"rewards go up to 1e\+09"),
        (lambda a: broken(a, "dones", 3, 0.5), "dones must be 0 or 1; it goes from 0 to 1"),
        (lambda a: broken(a, "actions", 3, 1.5), r"actions go from -.* to 1.5, beyond \[-1, 1\], as SB3 stores them"),
        (
            lambda a: a | {"observations": a["observations"][:, :2]},
            r"observations has the shape \(450, 2\).*\(450, 3\)",
        ),
        (lambda a: a | {"rewards": a["rewards"][:-1]}, r"rewards has the shape \(449,\); .* needs \(450,\)"),
        (lambda a: a | {"actions": a["actions"].astype(str)}, "actions must be numbers; it is of <U"),
        (lambda a: a | {"rewards": [[1.0], [1.0, 2.0]]}, "rewards is no array: its rows have different lengths"),
        (lambda a: {name: array[:50] for name, array in a.items()}, "it has 50 transitions; at least 100"),
    ],
)
def test_data_that_does_not_fit_is_refused_with_one_line(world, arrays, change, named):
    with pytest.raises(BadInput, match=f"^data: {named}"):
        read_data(change(arrays), world)


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 cut short"])
def test_a_file_that_is_no_npz_is_refused(world, tmp_path, content):
    (tmp_path / "data.npz").write_bytes(content)
    with pytest.raises(BadInput, match=r"not an .npz file of plain arrays"):
        read_data(tmp_path / "data.npz", world)


def test_an_npz_file_with_objects_in_it_runs_no_code(world, arrays, tmp_path):
    np.savez(tmp_path / "data.npz", **arrays | {"rewards": np.array([print] * 450, object)})
    with pytest.raises(BadInput, match=r"not an .npz file of plain arrays"):
        read_data(tmp_path / "data.npz", world)


def test_a_path_that_is_nothing_we_know_is_refused(world, tmp_path):
    with pytest.raises(BadInput, match="there is no such file or directory"):
        read_data(tmp_path / "nothing.npz", world)
    with pytest.raises(BadInput, match="neither a run directory with checkpoints nor a Minari dataset"):
        read_data(tmp_path, world)


@pytest.fixture(scope="module")
def data() -> dict[str, np.ndarray]:
    return gathered(POINT_MASS)


def test_the_model_is_fitted_and_the_policy_improved_before_the_first_env_step(data):
    agent = MBDP(POINT_MASS, **SETTINGS)
    before = agent.learner.agent
    agent.warm_start(data)
    seen = []
    for progress in agent.iterate(10):
        seen.append((progress.metrics.get("data/step"), progress.step, "model/bias" in progress.metrics))
        if len(seen) == 40:
            assert not eqx.tree_equal(agent.learner.agent.actor, before.actor)
            assert (len(agent.learner.d_env), agent.world.steps) == (150, 0)
    assert [number for number, step, fitted in seen if number and fitted] == [1, 21]
    assert [step for number, step, _ in seen if number is None][-1] == 10
    assert len(agent.learner.d_env) == 160


def test_no_random_steps_follow_data(data):
    agent = MBDP(POINT_MASS, **SETTINGS | {"data_steps": 0})
    assert agent.config.warm_up == 40
    agent.warm_start(data)
    assert (agent.config.warm_up, agent.config.data_steps) == (0, 150)


def test_steps_of_learning_from_data_are_refused_without_data():
    with pytest.raises(BadInput, match="data_steps is of use with data only"):
        MBDP(POINT_MASS, **SETTINGS).learn(10)


def test_a_run_that_started_from_data_goes_on_bit_for_bit(data, tmp_path):
    def agent():
        new = MBDP(POINT_MASS, seed=2, **SETTINGS)
        new.warm_start(data)
        return new

    whole, cut = agent(), agent()
    for _ in whole.iterate(30):
        pass
    for pieces in (25, 30):  # once within what is learned from data, once after
        for piece, _ in enumerate(cut.iterate(30), 1):
            if piece == pieces:
                break
        cut.save(tmp_path / "agent.mbdp")
        cut = MBDP.load(tmp_path / "agent.mbdp")
        assert cut.continued_exactly
    for _ in cut.iterate(30):
        pass
    assert eqx.tree_equal(whole.learner.agent, cut.learner.agent)
    np.testing.assert_array_equal(whole.learner.d_env.rows, cut.learner.d_env.rows)


def test_no_steps_at_all_are_offline_learning_and_a_saved_agent_is_data_itself(data, tmp_path):
    agent = MBDP(POINT_MASS, **SETTINGS).learn(0, data=data)
    assert (agent.learner.step, agent.world.steps, agent.learner.data_left) == (0, 0, 0)
    agent.save(tmp_path / "agent.mbdp")
    again = read_data(tmp_path / "agent.mbdp", agent.world)
    np.testing.assert_array_equal(again.rows, read_data(data, agent.world).rows)
    with pytest.raises(BadInput, match="data must be given once, before the first env step"):
        agent.learn(10, data=data)


def test_a_checkpoint_of_another_environment_is_refused(tmp_path, world):
    MBDP(POINT_MASS, **SETTINGS | {"data_steps": 0}).save(tmp_path / "agent.mbdp")
    with pytest.raises(BadInput, match=r"its steps have Spec\(.*2, .*but Pendulum-v1 has Spec\(.*3"):
        read_data(tmp_path / "agent.mbdp", world)


def test_systems_with_loops_of_their_own_refuse_data(data):
    with pytest.raises(BadInput, match="slbo cannot start from data"):
        MBDP(POINT_MASS, algo="slbo").warm_start(data)
