import gymnasium
import numpy as np
import pytest

from mbdp.envs.rules import RULES, rules_of
from mbdp.robustness.perturb import perturb
from mbdp.robustness.stepping import AllTogether, OneByOne, repeats_gymnasium

NAMES = ("Hopper", "Walker2d", "HalfCheetah", "Swimmer", "Ant", "InvertedPendulum", "InvertedDoublePendulum")
IDS = [f"{name}-v{version}" for name in NAMES for version in (4, 5)]
CELLS = [{"mass": 0.7, "gravity": 1.1}, {"mass": 1.0}, {"mass": 1.4, "push": 3.0}, {"mass": 1.1, "gear": 0.5}]


def record(stepper, envs, cells=CELLS, steps=200, dtype=np.float32):
    """The same actions in the same worlds, each started anew whenever its episode is over."""
    rng, worlds = np.random.default_rng(1), [perturb(env, cell) for env, cell in zip(envs, cells, strict=True)]
    low, high = envs[0].action_space.low, envs[0].action_space.high
    for i, world in enumerate(worlds):
        world.reset(seed=i)
        stepper.start(i, world)
    found = []
    for step in range(steps):
        found.append(stepper.step(range(len(worlds)), rng.uniform(low, high, (len(worlds), *low.shape)).astype(dtype)))
        for i in np.flatnonzero(found[-1].over):
            worlds[i].reset(seed=1000 * step + int(i))
            stepper.start(i, worlds[i])
    return found


def assert_same_both_ways(envs, **options):
    expected = record(OneByOne(), envs, **options)
    found = record(AllTogether(rules_of(envs[0]), envs), envs, **options)
    for one, other in zip(expected, found, strict=True):
        for name in one._fields:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    return expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("env_id", IDS)
def test_stepping_together_is_stepping_one_by_one_to_the_last_bit(env_id, dtype):
    envs = [gymnasium.make(env_id, max_episode_steps=60) for _ in CELLS]
    steps = assert_same_both_ways(envs, dtype=dtype)
    assert any(step.over.any() for step in steps)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Hopper", {"exclude_current_positions_from_observation": False, "forward_reward_weight": 0.3}),
        ("Walker2d", {"terminate_when_unhealthy": False, "healthy_reward": 2.0}),
        ("Swimmer", {"exclude_current_positions_from_observation": False, "ctrl_cost_weight": 0.2}),
        ("Ant", {"healthy_z_range": (0.6, 0.8), "contact_cost_weight": 0.1}),
    ],
)
def test_an_environments_options_are_its_own(name, options, version):
    envs = [gymnasium.make(f"{name}-v{version}", max_episode_steps=60, **options) for _ in CELLS]
    assert_same_both_ways(envs)


def test_an_unstable_simulation_is_seen_in_the_same_step():
    envs = [gymnasium.make("Ant-v5") for _ in range(2)]
    cells = [{"gear": 1.0}, {"gear": 1000.0}]
    steps = assert_same_both_ways(envs, cells=cells, steps=30)
    assert np.array([step.unstable for step in steps]).any(axis=0).tolist() == [False, True]


class Hopper(type(gymnasium.make("Hopper-v5").unwrapped)):  # type: ignore[misc]
    """A task of one's own, which may do anything in its step."""


@pytest.mark.parametrize(
    "env",
    [
        Hopper(),
        gymnasium.wrappers.ClipAction(gymnasium.make("Hopper-v5")),
        gymnasium.make("Hopper-v5", render_mode="rgb_array"),
        gymnasium.make("Humanoid-v5"),
        gymnasium.make("Pendulum-v1"),
    ],
)
def test_what_is_not_exactly_a_known_task_has_no_rules(env):
    assert rules_of(env) is None


@pytest.mark.parametrize(("module", "trusted"), [("hopper_v5", True), ("hopper_v4", False), ("ant_v5", False)])
def test_rules_are_trusted_only_if_they_repeat_the_environment(module, trusted):
    envs = [gymnasium.make("Hopper-v5") for _ in range(3)]
    assert repeats_gymnasium(RULES[module], envs) is trusted
