"""A rule for the end of episodes is trusted where it is provably right, and watched everywhere."""

import gymnasium
import numpy as np
import pytest

from mbdp import MBDP
from mbdp.envs.tasks import make, task_of
from mbdp.envs.toy import POINT_MASS
from mbdp.replay import Replay
from mbdp.termination import MOST_DISAGREEMENT, disagreement, known_rule
from mbdp.types import Broken, Spec
from tests.conftest import TINY

SETTINGS = {name: value for name, value in TINY.items() if name != "steps"}


@pytest.mark.parametrize("env_id", ["Hopper-v5", "Ant-v5", "Pendulum-v1", "InvertedPendulum-v5", POINT_MASS])
def test_the_rule_of_an_unmodified_task_is_known(env_id):
    assert known_rule(make(env_id)) is task_of(env_id).termination
    assert known_rule(gymnasium.make(env_id)) is task_of(env_id).termination


@pytest.mark.parametrize(
    "env",
    [
        lambda: gymnasium.make("Hopper-v5", terminate_when_unhealthy=False),
        lambda: gymnasium.make("Hopper-v5", healthy_z_range=(0.5, 2.0)),
        lambda: gymnasium.make("Hopper-v5", exclude_current_positions_from_observation=False),
        lambda: gymnasium.wrappers.RescaleObservation(gymnasium.make("Pendulum-v1"), np.float32(-1), np.float32(1)),
        lambda: gymnasium.wrappers.FrameStackObservation(gymnasium.make("Hopper-v5"), 2),
        lambda: gymnasium.make("MountainCarContinuous-v0"),
    ],
)
def test_the_rule_of_any_other_environment_is_not(env):
    assert known_rule(env()) is None


def test_a_modified_task_learns_its_termination_and_says_so():
    with pytest.warns(UserWarning, match="Hopper-v5 is not as Gymnasium makes it, so its termination is learned"):
        agent = MBDP(gymnasium.make("Hopper-v5", terminate_when_unhealthy=False), **SETTINGS)
    assert agent.termination is None


def steps(ended: list[bool]) -> Replay:
    """Real steps whose next observation is 1 where the episode ended and 0 elsewhere."""
    buffer = Replay(len(ended) + 10, Spec(1, 1))
    flags = np.asarray(ended, np.float32)
    buffer.add(np.stack([0 * flags, 0 * flags, 0 * flags, flags, flags], axis=1))
    return buffer


def test_a_right_rule_disagrees_with_nothing():
    assert disagreement(lambda s, a, t: t[..., 0] > 0.5, steps([True, False] * 300)) == 0


def test_a_rule_that_is_seldom_wrong_is_told():
    assert disagreement(lambda s, a, t: t[..., 0] < -1, steps([True] * 3 + [False] * 597)) == pytest.approx(0.005)


def test_a_rule_that_is_often_wrong_is_an_error_that_names_the_rate():
    with pytest.raises(Broken, match=r"wrong in 5.0% of 600 real steps \(30 ends missed, 0 invented; at most 1%"):
        disagreement(lambda s, a, t: t[..., 0] < -1, steps([True] * 30 + [False] * 570))


def test_a_wrong_rule_of_the_users_ends_the_run():
    agent = MBDP(POINT_MASS, termination=lambda s, a, t: t[..., 0] > -np.inf, **SETTINGS | {"random_steps": 600})
    with pytest.raises(Broken, match="the termination rule is wrong"):
        agent.learn(700)
    assert MOST_DISAGREEMENT == 0.01
