import multiprocessing
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from mbdp.envs.tasks import make, spec_of
from mbdp.robustness import evaluate_grid, evaluate_grids
from mbdp.robustness.perturb import perturb
from mbdp.types import BadInput
from tests.policies.test_policy import make_policy
from tests.robustness.test_stepping import IDS

AXES = {"mass": [0.8, 1.0, 1.3], "friction": [0.5, 1.0]}


def plain_loop(policy, env_id, cell, seed):
    """What anyone would write to check a number of the grid."""
    env = perturb(make(env_id), cell) if cell else make(env_id)
    observation, _ = env.reset(seed=seed)
    total, length, over = 0.0, 0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(policy(observation[None])[0])
        total, length, over = total + float(reward), length + 1, terminated or truncated
    return total, length


def linear(observations):
    """A foreign policy: its last bits depend on the number of rows."""
    return np.tanh(observations @ np.linspace(-1, 1, observations.shape[1] * 6).reshape(-1, 6))


class Constant:
    def __init__(self, size, value=0.0):
        self.size, self.value, self.shapes = size, value, set()

    def __call__(self, observations):
        self.shapes.add(observations.shape)
        return np.full((len(observations), self.size), self.value, np.float32)


@pytest.mark.parametrize("env_id", IDS)
def test_a_plain_gymnasium_loop_repeats_every_number_to_the_last_bit(env_id):
    spec = spec_of(make(env_id))
    policy = make_policy((spec.observation_size, 64, spec.action_size))
    grid = evaluate_grid(policy, env_id, {"mass": [0.8, 1.2], "gravity": [0.9, 1.0]}, episodes=2, seed=7)
    for (i, mass), (j, gravity), e in [((0, 0.8), (1, 1.0), 0), ((1, 1.2), (0, 0.9), 1)]:
        total, length = plain_loop(policy, env_id, {"mass": mass, "gravity": gravity}, 7 + e)
        assert (grid.returns[i, j, e], grid.lengths[i, j, e]) == (total, length)


def test_a_plain_gymnasium_loop_repeats_a_large_network_to_the_last_bit():
    policy, cell = make_policy((17, 256, 256, 6)), {"mass": 1.2, "friction": 0.5}
    grid = evaluate_grid(policy, "HalfCheetah-v5", {name: [value] for name, value in cell.items()}, episodes=2, seed=7)
    assert grid.returns[0, 0, 1] == plain_loop(policy, "HalfCheetah-v5", cell, 8)[0]


def test_an_environment_whose_rules_are_not_known_is_repeated_to_the_last_bit():
    policy, cell = make_policy((23, 64, 7)), {"mass": 1.2}
    grid = evaluate_grid(policy, lambda: gymnasium.make("Pusher-v5"), {"mass": [1.2]}, episodes=2, seed=7)
    assert grid.returns[0, 1] == plain_loop(policy, "Pusher-v5", cell, 8)[0]


def test_chunks_do_not_change_the_order_of_episodes():
    policy, masses = make_policy((4, 16, 1)), np.linspace(0.5, 1.5, 90)
    grid = evaluate_grid(policy, "InvertedPendulum-v5", {"mass": masses}, episodes=3, seed=7)
    for i in (0, 41, 89):
        alone = evaluate_grid(policy, "InvertedPendulum-v5", {"mass": [masses[i]]}, episodes=3, seed=7)
        np.testing.assert_array_equal(grid.lengths[i], alone.lengths[0])


def test_the_neutral_cell_is_the_nominal_environment():
    policy = make_policy((17, 64, 6))
    grid = evaluate_grid(policy, "HalfCheetah-v5", {"mass": [1.0], "friction": [1.0]}, episodes=1, seed=3)
    assert (grid.returns.item(), grid.lengths.item()) == plain_loop(policy, "HalfCheetah-v5", {}, 3)


def test_a_foreign_policy_is_repeated_to_the_last_bit_with_a_batch_of_one():
    grid = evaluate_grid(linear, "HalfCheetah-v5", {"mass": [1.1]}, episodes=2, seed=0, batch=1)
    assert grid.returns[0, 1] == plain_loop(linear, "HalfCheetah-v5", {"mass": 1.1}, 1)[0]


def test_the_numbers_do_not_depend_on_the_number_of_workers():
    policies = [make_policy((17, 64, 6)), linear]
    arguments = (policies, "HalfCheetah-v5", {"mass": [0.9, 1.1]}, 2, 4)
    calls = []
    here = evaluate_grids(*arguments, workers=1)
    there = evaluate_grids(*arguments, workers=2, progress=lambda done, total: calls.append((done, total)))
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one.returns, other.returns)
        np.testing.assert_array_equal(one.lengths, other.lengths)
    assert calls == sorted(calls)
    assert calls[-1] == (8, 8)


def test_a_worker_that_is_killed_is_replaced_and_no_episode_is_missing():
    policy, axes = make_policy((17, 64, 6)), {"mass": [0.9, 1.0, 1.1, 1.2]}
    killed = []

    def kill_one(done, total):
        if done and not killed:
            killed.append(multiprocessing.active_children()[0])
            killed[0].kill()

    with pytest.warns(UserWarning, match="a worker process was killed"):
        grid = evaluate_grid(policy, "HalfCheetah-v5", axes, episodes=6, seed=4, workers=2, progress=kill_one)
    np.testing.assert_array_equal(grid.returns, evaluate_grid(policy, "HalfCheetah-v5", axes, 6, 4).returns)


def test_returns_are_shaped_like_the_axes_and_episodes():
    grid = evaluate_grid(make_policy((11, 16, 3)), "Hopper-v5", {**AXES, "gravity": [1.0]}, episodes=5, seed=0)
    assert grid.returns.shape == grid.lengths.shape == grid.diverged.shape == (3, 2, 1, 5)
    assert grid.axes == {"mass": (0.8, 1.0, 1.3), "friction": (0.5, 1.0), "gravity": (1.0,)}
    assert (grid.env_id, grid.seed, grid.protocol) == ("Hopper-v5", 0, "zero-shot")


def test_episodes_differ_by_seed_and_cells_share_their_seeds():
    policy = make_policy((11, 16, 3))
    grid = evaluate_grid(policy, "Hopper-v5", {"mass": [1.0, 1.0]}, episodes=3, seed=0)
    np.testing.assert_array_equal(grid.returns[0], grid.returns[1])
    assert len(set(grid.returns[0])) == 3
    later = evaluate_grid(policy, "Hopper-v5", {"mass": [1.0]}, episodes=2, seed=1)
    np.testing.assert_array_equal(later.returns[0], grid.returns[0, 1:])


def test_a_foreign_policy_sees_the_same_number_of_rows_at_every_call():
    policy = Constant(3)
    evaluate_grid(policy, "Hopper-v5", AXES, episodes=1, seed=0, batch=4)
    assert policy.shapes == {(4, 11)}


def test_an_agent_with_predict_is_a_policy():
    class Agent:
        def predict(self, observations, deterministic=False):
            assert deterministic
            return np.zeros((len(observations), 3), np.float32), None

    grid = evaluate_grid(Agent(), "Hopper-v5", {"mass": [1.0]}, episodes=1, seed=0)
    assert grid.returns[0, 0] == plain_loop(Constant(3), "Hopper-v5", {}, 0)[0]


def test_an_environment_of_ones_own_needs_no_registration():
    grid = evaluate_grid(
        Constant(1), lambda: gymnasium.make("Pendulum-v1"), {"action_delay": [0, 3]}, episodes=2, seed=0
    )
    assert grid.lengths.tolist() == [[200, 200], [200, 200]]


def test_a_simulation_that_becomes_unstable_is_marked_and_its_return_finite():
    violent = Constant(8, 1.0)
    grid = evaluate_grid(violent, "Ant-v4", {"mass": [1.0], "gear": [1.0, 1000.0]}, episodes=1, seed=0)
    assert grid.diverged[0, :, 0].tolist() == [False, True]
    assert np.isfinite(grid.returns).all()
    assert grid.lengths[0, 1, 0] < grid.lengths[0, 0, 0]


def test_an_observation_that_is_not_finite_ends_the_episode():
    class Breaking(gymnasium.Wrapper):
        def step(self, action):
            observation, *rest = super().step(action)
            return np.full_like(observation, np.nan), *rest

    grid = evaluate_grid(Constant(1), lambda: Breaking(gymnasium.make("Pendulum-v1")), {"action_noise": [0]}, 1, 0)
    assert grid.diverged.all()
    assert grid.lengths.item() == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"axes": {}}, "at least one axis"),
        ({"axes": {"mass": []}}, "no values"),
        ({"axes": {"mass": [1.0, 0.0]}}, "mass must be more than 0"),
        ({"axes": {"mass": [float("nan")]}}, "mass must be a finite number"),
        ({"axes": {"mass:tail": [1.0]}}, "there is no body 'tail'"),
        ({"axes": {"wind": [1.0]}}, "no axis 'wind'"),
        ({"env_id": "Pendulum-v1"}, "not a MuJoCo environment"),
        ({"env_id": "Hoper-v5"}, "Hopper"),
        ({"env_id": "CartPole-v1"}, "Box"),
        ({"env_id": "Walker2d-v5"}, "17 observations and 6 actions"),
        ({"env_id": "InvertedPendulum-v5"}, "friction would change nothing"),
        ({"episodes": 0}, "episodes"),
        ({"episodes": 1.5}, "episodes"),
        ({"seed": -1}, "seed"),
        ({"workers": 0}, "workers"),
        ({"batch": 0}, "batch"),
        ({"policy": Constant(2)}, r"gave actions \(64, 2\)"),
        ({"policy": Constant(3, np.nan)}, "not finite"),
        ({"policy": lambda observations: observations["x"]}, "does not fit Hopper-v5"),
        ({"policy": lambda observations: np.zeros((len(observations), 3)), "workers": 2}, "use one worker"),
    ],
)
def test_bad_input_is_one_clear_line(change, words):
    fine = {"policy": make_policy((11, 16, 3)), "env_id": "Hopper-v5", "axes": AXES, "episodes": 1, "seed": 0}
    with pytest.raises(BadInput, match=words) as caught:
        evaluate_grid(**(fine | change))
    assert "\n" not in str(caught.value)


def test_a_script_without_a_main_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from mbdp.robustness import evaluate_grid\n"
        "from tests.robustness.test_grid import linear\n"
        "evaluate_grid(linear, 'HalfCheetah-v5', {'mass': [1.0]}, episodes=1, workers=2)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
    result = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode != 0
    assert "BadInput: a worker process ended" in result.stderr
