"""Parameters of an environment of one's own: perturbed by name, from their nominal values, with an effect."""

import copy
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest

from mbdp.robustness import Parameter, Randomised, evaluate_grid
from mbdp.robustness.effect import check_effect
from mbdp.robustness.parameters import declare, parameters_of
from mbdp.robustness.perturb import perturb
from mbdp.types import BadInput
from tests.robustness.test_perturb import trajectory


class Arm:
    """A part of the environment, to be reached by a dotted name."""

    gain = 1.0


class Cart(gymnasium.Env):
    """A cart on a line, with a mass, a wind that does not blow, and a colour that changes nothing."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    perturbations: ClassVar = {"mass": "kilograms", "wind": Parameter("force", neutral=0), "gain": "arm.gain"}

    def __init__(self) -> None:
        self.kilograms, self.force, self.arm, self.drag = 2, 0.0, Arm(), np.array([0.1, 0.2])
        self.colour, self.state = 1.0, np.zeros(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.normal(size=2)
        return self.state.copy(), {}

    def step(self, action):
        place, speed = self.state
        speed += 0.1 * (self.arm.gain * float(action[0]) + self.force - self.drag.sum() * speed) / self.kilograms
        self.state = np.array([place + 0.1 * speed, speed])
        return self.state.copy(), -float(place**2), False, False, {}


class Forgetful(Cart):
    """Its reset puts the mass back."""

    def reset(self, *, seed=None, options=None):
        self.kilograms = 2
        return super().reset(seed=seed)


class Whim(Cart):
    """It does not repeat itself from a seed."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None)


def limited(env: gymnasium.Env | None = None) -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(env or Cart(), 50)


def forgetful() -> gymnasium.Env:
    return limited(Forgetful())


def set_mass(env: Any, factor: float) -> None:
    env.kilograms = 2 * factor


def multiply_mass(env: Any, factor: float) -> None:
    env.kilograms *= factor


def refuse(env: Any, factor: float) -> None:
    raise RuntimeError("no such\nfactor")


def push(observations: np.ndarray) -> np.ndarray:
    return np.full((len(observations), 1), 0.5, np.float32)


def test_an_attribute_is_multiplied_or_added_to_by_its_axis():
    env = perturb(limited(), {"mass": 1.5, "wind": 0.3, "gain": 0.5})
    assert (env.unwrapped.kilograms, env.unwrapped.force, env.unwrapped.arm.gain) == (3.0, 0.3, 0.5)


def test_coefficients_are_of_the_nominal_world_not_of_the_last_one():
    env = limited()
    for _ in range(3):
        env = perturb(env, {"mass": 2.0, "wind": 1.0})
    assert (env.unwrapped.kilograms, env.unwrapped.force) == (4.0, 1.0)
    env = perturb(env, {"wind": 0.5})
    assert (env.unwrapped.kilograms, env.unwrapped.force) == (2, 0.5)


def test_neutral_coefficients_change_no_bit_and_no_type():
    env = perturb(limited(), {"mass": 1, "wind": 0, "observation_noise": 0})
    np.testing.assert_array_equal(trajectory(env, 40), trajectory(limited(), 40))
    assert isinstance(env.unwrapped.kilograms, int)


def test_a_copy_carries_the_perturbation():
    env = perturb(limited(), {"mass": 1.5})
    np.testing.assert_array_equal(trajectory(copy.deepcopy(env), 40), trajectory(env, 40))


def test_an_array_is_scaled_as_a_whole_and_put_back():
    env = declare(limited(), {"drag": "drag"})
    assert perturb(env, {"drag": 2.0}).unwrapped.drag.tolist() == [0.2, 0.4]
    assert perturb(env, {}).unwrapped.drag.tolist() == [0.1, 0.2]


def test_a_cell_of_a_grid_is_what_a_plain_loop_gives():
    grid = evaluate_grid(push, limited, {"mass": [0.5, 1.0], "wind": [0.0, 1.0]}, episodes=2, seed=3)
    env = perturb(limited(), {"mass": 0.5, "wind": 1.0})
    env.reset(seed=4)
    total = sum(float(env.step(np.array([0.5], np.float32))[1]) for _ in range(50))
    assert grid.returns[0, 1, 1] == total
    assert grid.returns.shape == (2, 2, 2)


def test_parameters_can_be_passed_instead_of_declared_and_reach_other_processes():
    options: Any = {"episodes": 2, "perturb": {"load": set_mass}}
    one = evaluate_grid(push, limited, {"load": [0.5, 1.0, 2.0]}, **options)
    two = evaluate_grid(push, limited, {"load": [0.5, 1.0, 2.0]}, workers=2, **options)
    declared = evaluate_grid(push, limited, {"mass": [0.5, 1.0, 2.0]}, episodes=2)
    np.testing.assert_array_equal(one.returns, two.returns)
    np.testing.assert_array_equal(one.returns, declared.returns)


def test_a_parameter_of_a_mujoco_task_is_an_axis_beside_mujocos():
    axes = {"weight": [1.0, 0.0], "mass": [1.0, 1.3]}
    policy = lambda rows: np.zeros((len(rows), 3), np.float32)  # noqa: E731
    grid = evaluate_grid(policy, "Hopper-v5", axes, episodes=1, perturb={"weight": "_forward_reward_weight"})
    plain = evaluate_grid(policy, "Hopper-v5", {"mass": [1.0, 1.3]}, episodes=1)
    np.testing.assert_array_equal(grid.returns[0], plain.returns)
    assert (grid.returns[1] != plain.returns).all()


def test_a_whole_grid_of_neutral_values_is_no_error():
    assert evaluate_grid(push, limited, {"colour": [1.0]}, episodes=1, perturb={"colour": "colour"}).returns.size == 1


@pytest.mark.parametrize(
    ("declared", "axis", "message"),
    [
        ({"colour": "colour"}, "colour", "colour would change nothing in this environment: 10 episodes"),
        ({"m": multiply_mass}, "m", "m cannot be undone"),
        ({"m": refuse}, "m", "m cannot be .*RuntimeError: no such factor"),
        ({"m": "weight"}, "m", "Cart has no attribute weight"),
        ({"m": "state.x.y"}, "m", "Cart has no attribute state.x.y"),
        ({"m": "arm"}, "m", "arm of Cart must be finite numbers"),
        ({"m": 3}, "m", "m must be an attribute's name or a function; it is 3"),
        ({"m": Parameter("kilograms", neutral=2)}, "m", "neutral must be 1"),
        ({"action_delay": "kilograms"}, "action_delay", "needs a name of letters and digits, not taken"),
        ({"m:x": "kilograms"}, "m:x", "needs a name"),
        ({"load": set_mass}, "laod", "no axis 'laod': did you mean 'load'"),
        (["mass"], "mass", "perturbations must be a dict"),
    ],
)
def test_what_cannot_be_perturbed_is_one_line(declared, axis, message):
    with pytest.raises(BadInput, match=message) as caught:
        evaluate_grid(push, limited, {axis: [1.0, 0.5]}, episodes=1, perturb=declared)
    assert "\n" not in str(caught.value)


def test_a_reset_that_puts_the_parameter_back_is_an_error():
    with pytest.raises(BadInput, match=r"mass: the environment's reset\(\) changes kilograms"):
        evaluate_grid(push, forgetful, {"mass": [0.5]}, episodes=1)


def test_an_environment_that_does_not_repeat_itself_is_said_to_be_unchecked():
    with pytest.warns(UserWarning, match="Whim does not repeat itself from a seed"):
        check_effect(limited(Whim()), {"mass": [2.0]})


def test_an_environment_without_parameters_has_none():
    assert parameters_of(gymnasium.make("Pendulum-v1")) == {}


def test_a_drawn_parameter_is_within_its_range_and_repeats_with_the_seed():
    env = Randomised(limited(), {"mass": (0.5, 2.0), "action_delay": (0, 3)})
    drawn = [env.reset(seed=seed)[1]["coefficients"] for seed in range(20)]
    masses, delays = zip(*(world.values() for world in drawn), strict=True)
    assert 0.5 <= min(masses) < 1 < max(masses) <= 2.0
    assert set(delays) == {0.0, 1.0, 2.0, 3.0}
    assert [env.reset(seed=seed)[1]["coefficients"] for seed in range(20)] == drawn
    assert env.unwrapped.kilograms == 2 * masses[-1]


def test_without_a_seed_the_next_world_is_another_one():
    env = Randomised(limited(), {"m": (0.5, 2.0)}, perturb={"m": set_mass})
    first, second, third = (env.reset(seed=seed)[1]["coefficients"] for seed in (0, None, None))
    assert len({first["m"], second["m"], third["m"]}) == 3


def test_drawing_leaves_the_environments_own_random_numbers_alone():
    drawn, plain = Randomised(limited(), {"wind": (-1.0, 1.0)}), limited()
    np.testing.assert_array_equal(drawn.reset(seed=5)[0], plain.reset(seed=5)[0])


def test_a_parameter_without_effect_cannot_be_drawn():
    with pytest.raises(BadInput, match="colour would change nothing"):
        Randomised(limited(), {"colour": (0.5, 2.0)}, perturb={"colour": "colour"})
