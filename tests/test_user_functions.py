"""A reward that a user knows replaces the learned one, and a wrong one is found out."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from mbdp import MBDP
from mbdp.agents.expansion import imagine
from mbdp.envs.tasks import make
from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.alarms import Alarms
from mbdp.replay import unpack
from mbdp.streams import key
from mbdp.types import BadInput, Broken
from mbdp.user_functions import check_function, reward_error, said_of
from tests.conftest import TINY, linear_system

SETTINGS = {name: value for name, value in TINY.items() if name != "steps"}


def point_mass_reward(observation, action, following):
    place, speed = following[..., 0], following[..., 1]
    fell = jnp.abs(place) > 2
    return 1 - place**2 - 0.1 * speed**2 - 0.01 * action[..., 0] ** 2 - 10 * fell


def test_a_right_reward_has_no_error():
    assert reward_error(lambda s, a, t: s[..., 0] + a[..., 0], linear_system(600)) < 1e-6


def test_a_reward_that_is_a_little_wrong_is_told():
    buffer = linear_system(600)
    deviation = unpack(buffer.rows[:600], buffer.spec).reward.std()
    error = reward_error(lambda s, a, t: s[..., 0] + a[..., 0] + 0.05 * deviation, buffer)
    assert error == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize("wrong", [lambda s, a, t: s[..., 0], lambda s, a, t: s[..., 0] + jnp.nan])
def test_a_wrong_reward_is_an_error_that_names_its_size(wrong):
    with pytest.raises(Broken, match=r"wrong by .* deviations of the 600 real rewards \(at most 0.1 .*it says"):
        reward_error(wrong, linear_system(600))


def test_a_constant_reward_is_judged_by_its_size():
    buffer = linear_system(600)
    buffer.rows[:, 3] = 5
    assert reward_error(lambda s, a, t: 5.000001 + 0 * s[..., 0], buffer) < 1e-2
    with pytest.raises(Broken):
        reward_error(lambda s, a, t: 5.1 + 0 * s[..., 0], buffer)


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda s, a, t: s[..., :1], r"reward must give one number per row: for 3 rows it gives the shape \(3, 1\)"),
        (lambda s, a: 0.0, "reward must be a function on JAX arrays.*it raised TypeError"),
        (lambda s, a, t: 1.0 if s[0, 0] > 0 else 0.0, "it raised TracerBoolConversionError"),
        ("fast", "reward must be a function of"),
    ],
)
def test_a_function_that_cannot_be_used_is_refused_at_once(function, named):
    with pytest.raises(BadInput, match=named):
        check_function("reward", function, (2, 1))


def test_actions_come_in_the_environments_units():
    agent = MBDP("Pendulum-v1", reward=lambda s, a, t: a[..., 0], **SETTINGS)
    inner = agent.functions()["reward"]
    np.testing.assert_allclose(inner(None, jnp.array([[-1.0], [0.5]]), None), [-2.0, 1.0])
    assert agent.functions()["reward"] == inner  # so that nothing is compiled twice


@pytest.mark.parametrize("algo", ["steve", "slbo", "sac"])
def test_systems_that_have_no_use_for_a_reward_refuse_it(algo):
    with pytest.raises(BadInput, match="reward="):
        MBDP(POINT_MASS, algo=algo, reward=point_mass_reward)


def test_imagined_rewards_are_the_known_ones():
    agent = MBDP(POINT_MASS, reward=point_mass_reward, **SETTINGS).learn(45)
    imagined = unpack(agent.learner.d_model.newest(10**6), agent.world.spec)
    known = point_mass_reward(imagined.observation, imagined.action, imagined.next_observation)
    np.testing.assert_allclose(imagined.reward, known, rtol=1e-4, atol=1e-4)
    plan = agent.config.training_rollout(agent.world.spec, None, lambda s, a, t: 7.0 + 0 * s[..., 0])
    path = imagine(agent.learner.agent.actor, agent.learner.model, jnp.zeros((6, 2)), plan, key=key(0, "update"))
    assert (np.asarray(path.reward) == 7).all()
    assert Alarms(agent)._reward({"model/reward_mismatch": 0.05}).startswith("the reward function is wrong by 0.05")


def test_a_wrong_reward_ends_the_run():
    agent = MBDP(POINT_MASS, reward=lambda s, a, t: -s[..., 0], **SETTINGS | {"random_steps": 600})
    with pytest.raises(Broken, match="the reward function is wrong"):
        agent.learn(700)


def test_an_agent_with_a_reward_goes_on_bit_for_bit_if_it_is_passed_again(tmp_path):
    own = {"reward": point_mass_reward, "seed": 3, **SETTINGS}
    whole = MBDP(POINT_MASS, **own).learn(70)
    MBDP(POINT_MASS, **own).learn(55).save(tmp_path / "agent.mbdp")
    with pytest.raises(BadInput, match="trained with a reward function; pass it as reward="):
        MBDP.load(tmp_path / "agent.mbdp")
    loaded = MBDP.load(tmp_path / "agent.mbdp", reward=point_mass_reward).learn(15)
    assert eqx.tree_equal(loaded.learner.agent, whole.learner.agent)


def test_a_reward_that_was_not_there_in_training_is_refused(tmp_path):
    MBDP(POINT_MASS, **SETTINGS).save(tmp_path / "agent.mbdp")
    with pytest.raises(BadInput, match="trained without a reward function"):
        MBDP.load(tmp_path / "agent.mbdp", reward=point_mass_reward)


def test_a_learned_end_is_reported_with_precision_and_recall():
    agent, seen = MBDP(make(POINT_MASS), termination="learned", **SETTINGS), []
    agent.learn(45, callback=lambda agent, progress: seen.append(progress.metrics))
    fits = [metrics for metrics in seen if "model/bias" in metrics]
    assert len(fits) == 1
    assert {f"model/termination_{name}" for name in ("precision", "recall", "held_out")} <= set(fits[0])


def test_a_known_end_has_no_precision():
    seen = []
    MBDP(POINT_MASS, **SETTINGS).learn(45, callback=lambda agent, progress: seen.append(progress.metrics))
    assert not any("model/termination_precision" in metrics for metrics in seen)


def test_what_a_function_says_is_asked_of_real_steps_only():
    assert said_of(lambda s, a, t: s[..., 0], linear_system(20)).shape == (20,)
