import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from mbdp import MBDP, Callback
from mbdp.envs.toy import POINT_MASS, PointMass
from mbdp.types import BadInput
from tests.conftest import TINY

SETTINGS = {name: value for name, value in TINY.items() if name != "steps"}


class MyOwn(PointMass):
    """An environment that nobody registered."""


def my_own() -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(MyOwn(), 50)


def same(first: MBDP, second: MBDP) -> bool:
    parts = ("agent", "model", "model_optimiser")
    learned = all(eqx.tree_equal(getattr(first.learner, part), getattr(second.learner, part)) for part in parts)
    gathered = all(
        np.array_equal(getattr(first.learner, name).newest(10**6), getattr(second.learner, name).newest(10**6))
        for name in ("d_env", "d_model")
    )
    return bool(learned) and gathered and first.world.bookmark() == second.world.bookmark()


def test_learn_takes_so_many_env_steps():
    agent = MBDP(POINT_MASS, **SETTINGS).learn(50)
    assert agent.learner.step == len(agent.learner.d_env) == 50
    assert agent.learn(20).learner.step == 70


def test_a_callback_sees_every_step_and_can_end_the_learning():
    seen = []
    agent = MBDP(POINT_MASS, **SETTINGS)
    agent.learn(50, callback=lambda agent, progress: seen.append(progress.step) or len(seen) < 7)
    assert seen == [1, 2, 3, 4, 5, 6, 7]


def test_a_callback_has_the_hooks_of_stable_baselines3():
    class Told(Callback):
        def __init__(self):
            self.calls, self.episodes = [], 0

        def on_training_start(self):
            self.calls.append(f"start at {self.model.learner.step}")

        def on_step(self):
            self.episodes += self.progress.outcome.episode_return is not None
            return self.num_timesteps < 53

        def on_rollout_start(self):
            self.calls.append(f"rollout from {self.num_timesteps}")

        def on_rollout_end(self):
            self.calls.append(f"rollout to {self.num_timesteps}")

        def on_training_end(self):
            self.calls.append(f"end after {self.n_calls}")

    told = Told()
    agent = MBDP(POINT_MASS, **SETTINGS).learn(100, callback=told)
    assert agent.learner.step == 53
    rollouts = ["rollout from 0", "rollout to 41", "rollout from 41", "rollout to 51", "rollout from 51"]
    assert told.calls == ["start at 0", *rollouts, "end after 53"]
    assert told.episodes == agent.world.episode


class AsInStableBaselines3(Callback):
    """What a user of Stable-Baselines3 overrides: names that begin with an underscore."""

    def __init__(self, until, verbose=0):
        super().__init__(verbose)
        self.until, self.calls = until, []

    def _on_training_start(self):
        self.calls.append("training start")

    def _on_rollout_start(self):
        self.calls.append("rollout start")

    def _on_step(self):
        return np.bool_(self.num_timesteps < self.until)

    def _on_rollout_end(self):
        self.calls.append("rollout end")

    def _on_training_end(self):
        self.calls.append(f"training end after {self.n_calls}")


def test_the_underscored_hooks_of_stable_baselines3_are_called():
    told = AsInStableBaselines3(until=43, verbose=1)
    assert MBDP(POINT_MASS, **SETTINGS).learn(100, callback=told).learner.step == 43
    calls = ["training start", "rollout start", "rollout end", "rollout start", "training end after 43"]
    assert told.calls == calls


def test_no_rollout_starts_after_the_last_step():
    told = AsInStableBaselines3(until=100)
    MBDP(POINT_MASS, **SETTINGS).learn(41, callback=told)
    assert told.calls == ["training start", "rollout start", "rollout end", "training end after 41"]


def test_each_of_several_callbacks_sees_every_step_and_can_end_the_learning():
    first, last, seen = AsInStableBaselines3(until=5), AsInStableBaselines3(until=9), []
    functions = [lambda agent, progress: seen.append(progress.step)]
    agent = MBDP(POINT_MASS, **SETTINGS).learn(50, callback=[last, first, *functions])
    assert agent.learner.step == first.n_calls == last.n_calls == len(seen) == 5
    assert last.model is agent


class Foreign:
    """As a callback of Stable-Baselines3 itself: with its hooks, but not of our class."""

    def on_step(self):
        return True


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "it is 3$"),
        ("early stopping", "it is 'early stopping'$"),
        ([AsInStableBaselines3(5), None, 3], "it is 3$"),
        (Callback, "it is the class Callback, not an object of it"),
        (Foreign(), "Foreign: derive it from mbdp.Callback, whose hooks have the same names"),
        (lambda agent: True, "<lambda> does not take two arguments"),
    ],
)
def test_what_is_no_callback_is_refused_with_a_sentence_before_any_step(given, said):
    agent = MBDP(POINT_MASS, **SETTINGS)
    with pytest.raises(BadInput, match=f"^callback must be an mbdp.Callback, a function of .*{said}"):
        agent.learn(5, callback=given)
    assert agent.learner.step == 0


def test_predict_takes_one_observation_or_a_batch_of_them():
    agent = MBDP("InvertedPendulum-v5", **SETTINGS)
    one, state = agent.predict(np.zeros(4))
    many, _ = agent.predict(np.zeros((3, 4)))
    assert (one.shape, many.shape, state) == ((1,), (3, 1), None)
    np.testing.assert_array_equal(many[1], one)


def test_a_stochastic_prediction_varies_within_the_bounds():
    agent = MBDP("InvertedPendulum-v5", **SETTINGS)
    actions, _ = agent.predict(np.zeros((100, 4)), deterministic=False)
    assert len(np.unique(actions)) > 50
    assert (np.abs(actions) <= 3).all()


def test_a_saved_agent_predicts_the_same_after_loading(tmp_path):
    agent = MBDP(POINT_MASS, **SETTINGS).learn(60)
    agent.save(tmp_path / "agent.mbdp")
    observations = np.random.default_rng(0).normal(size=(20, 2))
    loaded = MBDP.load(tmp_path / "agent.mbdp")
    np.testing.assert_array_equal(loaded.predict(observations)[0], agent.predict(observations)[0])


@pytest.mark.parametrize("env_id", [POINT_MASS, "InvertedPendulum-v5"])
@pytest.mark.parametrize("cut", [30, 61, 75])
def test_a_loaded_agent_goes_on_bit_for_bit_as_if_it_had_never_stopped(tmp_path, env_id, cut):
    whole = MBDP(env_id, seed=2, **SETTINGS).learn(100)
    MBDP(env_id, seed=2, **SETTINGS).learn(cut).save(tmp_path / "agent.mbdp")
    continued = MBDP.load(tmp_path / "agent.mbdp")
    assert continued.continued_exactly
    assert same(continued.learn(100 - cut), whole)


def test_an_environment_of_ones_own_learns_its_termination_and_continues_exactly(tmp_path):
    whole = MBDP(my_own(), **SETTINGS).learn(100)
    assert whole.termination is None
    MBDP(my_own(), **SETTINGS).learn(70).save(tmp_path / "agent.mbdp")
    with pytest.raises(BadInput, match="pass it as env="):
        MBDP.load(tmp_path / "agent.mbdp")
    assert same(MBDP.load(tmp_path / "agent.mbdp", env=my_own()).learn(30), whole)


def test_a_termination_rule_of_ones_own_is_asked_for_again(tmp_path):
    def rule(observation, action, following):
        return jnp.abs(following[..., 0]) > 2

    MBDP(my_own(), termination=rule, **SETTINGS).learn(50).save(tmp_path / "agent.mbdp")
    with pytest.raises(BadInput, match="pass it as termination="):
        MBDP.load(tmp_path / "agent.mbdp", env=my_own())
    assert MBDP.load(tmp_path / "agent.mbdp", env=my_own(), termination=rule).termination is rule


def test_an_agent_of_another_shape_is_refused(tmp_path):
    MBDP(POINT_MASS, **SETTINGS).learn(10).save(tmp_path / "agent.mbdp")
    with pytest.raises(BadInput, match="but the environment has"):
        MBDP.load(tmp_path / "agent.mbdp", env=gymnasium.make("InvertedPendulum-v5"))


def test_a_truncated_file_is_refused(tmp_path):
    file = tmp_path / "agent.mbdp"
    MBDP(POINT_MASS, **SETTINGS).learn(10).save(file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(BadInput, match="not a whole checkpoint of mbdp"):
        MBDP.load(file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadInput, match="there is no such file"):
        MBDP.load(tmp_path / "nothing.mbdp")


def test_a_discount_that_is_given_does_not_grow_unless_that_is_asked_for_too():
    assert MBDP("Hopper-v5", algo="mbpo").config.discount_at(10**6) == pytest.approx(0.998)
    assert MBDP("Hopper-v5", algo="mbpo", discount=0.95).config.discount_at(10**6) == 0.95
    both = {"discount": 0.95, "last_discount": 0.99}
    assert MBDP("Hopper-v5", algo="mbpo", **both).config.discount_at(10**6) == pytest.approx(0.99)


def test_preferences_set_alpha_and_beta_and_explicit_values_win():
    assert MBDP(POINT_MASS, prefer="efficient", **SETTINGS).config.beta == 0.4
    assert MBDP(POINT_MASS, prefer="robust", alpha=0.3, **SETTINGS).config.alpha == 0.3


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"algo": "dreamer"}, "algo must be one of mbdp, mbpo, sac"),
        ({"seed": -1}, r"seed .*-1"),
        ({"prefer": "fame"}, "prefer must be one of balanced, robust, efficient"),
        ({"colour": "red"}, "no setting 'colour'"),
        ({"alpha": 1.5}, r"alpha .*1\.5"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises(BadInput, match=named):
        MBDP(POINT_MASS, **arguments)


def test_zero_steps_are_refused():
    with pytest.raises(BadInput, match=r"total_timesteps.*0"):
        MBDP(POINT_MASS, **SETTINGS).learn(0)


def test_stochastic_predictions_repeat_with_the_seed_and_differ_from_call_to_call():
    observation = np.zeros((3, 2), np.float32)
    agents = [MBDP(POINT_MASS, seed=seed, **SETTINGS) for seed in (0, 0, 1)]
    first, again, other = ([agent.predict(observation, deterministic=False)[0] for _ in range(2)] for agent in agents)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first, other)


def test_predict_makes_a_policy_once_for_each_agent(monkeypatch):
    agent, made = MBDP(POINT_MASS, **SETTINGS), []
    original = MBDP.policy
    monkeypatch.setattr(MBDP, "policy", lambda self: made.append(1) or original(self))
    for _ in range(3):
        agent.predict(np.zeros(2, np.float32))
    assert len(made) == 1
    agent.learn(60)
    agent.predict(np.zeros(2, np.float32))
    assert len(made) == 2
