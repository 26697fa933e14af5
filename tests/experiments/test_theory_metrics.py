"""`theory/*` of a run: what it says follows from Section 3.3, and learning is the same without it."""

import equinox as eqx
import jax
import numpy as np
import pytest

from mbdp import theory
from mbdp.api import MBDP
from mbdp.envs.toy import POINT_MASS
from mbdp.experiments import run, theory_metrics
from mbdp.experiments.evaluate import Evaluation
from mbdp.experiments.theory_metrics import imagined_returns, lipschitz_constant
from mbdp.types import Transition
from tests.conftest import TINY
from tests.faults.runs import metrics, remains, train

TRAINING_ROLLOUTS = {"expansion": 2, "group": "returns", "horizon": (3, 3, 0, 0), "update_every": 5}
OPTIONS = ("--expansion", "2", "--group", "returns", "--horizon", "3", "3", "0", "0", "--update-every", "5")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run with training rollouts; not to be changed."""
    return train(tmp_path_factory.mktemp("whole"), *OPTIONS)


def logged(folder):
    return [line for line in metrics(folder) if "theory/bound" in line]


def test_a_run_learns_the_same_without_its_theory(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "theory_metrics", lambda *_: {})
    without, having = remains(train(tmp_path, *OPTIONS)), remains(whole)
    having["metrics"] = [
        {name: x for name, x in line.items() if not name.startswith("theory/")} for line in having["metrics"]
    ]
    assert without == having


def test_every_evaluation_after_the_first_fit_has_its_guarantees(whole):
    evaluations = [line["step"] for line in metrics(whole) if "eval/mean_reward" in line and line["step"] > 40]
    assert evaluations == [line["step"] for line in logged(whole)]


def test_bounds_are_those_of_the_theory(whole):
    for line in logged(whole):
        fit = [one for one in metrics(whole) if "model/bias_0" in one and one["step"] <= line["step"]][-1]
        bias = np.array([fit[f"model/bias_{i}"] for i in range(4)])
        assert line["theory/bias_all"] == pytest.approx(bias.mean())
        assert line["theory/bias_kept"] == pytest.approx(bias[fit["model/kept"]].mean())
        model_error = 0.995 * line["theory/lipschitz"] / 0.005
        corrected = model_error * line["theory/bias_kept"] + line["theory/eps_alpha"]
        assert line["theory/bound"] == pytest.approx(corrected)
        printed = 0.8 * (model_error * line["theory/bias_all"] + line["theory/eps_alpha_printed"])
        assert line["theory/bound_printed"] == pytest.approx(printed)


def test_the_residual_is_the_slack_of_the_bound(whole):
    for line in logged(whole):
        slack = line["theory/v_real"] - line["theory/v_alpha"] + line["theory/bound"]
        assert line["theory/residual"] == pytest.approx(slack)
        assert line["theory/improvement"] == pytest.approx(slack - 2 * line["theory/eps_alpha"])
        assert line["theory/v_real"] == line["eval/mean_discounted"]


UNDISCOUNTED = ("--discount", "1", "--expansion", "0", "--group", "state")


@pytest.mark.parametrize("options", [("--algo", "mbpo"), ("--algo", "steve"), UNDISCOUNTED], ids=lambda one: one[1])
def test_a_run_that_the_bounds_do_not_speak_about_has_no_theory(tmp_path, options):
    assert logged(train(tmp_path, *options)) == []


def test_k_of_a_linear_value_is_the_norm_of_its_gradient_in_units_of_the_bias():
    # V = 3 s0 + s1: a unit of s0 is 0.5 and one of s1 is 2, so the gradient per unit is (1.5, 2).
    states = np.random.default_rng(0).normal(size=(400, 2)) * [0.5, 2.0]
    successors = states + np.array([0.09, 0.48])  # along the gradient
    batch = Transition(states, None, None, successors, np.zeros(400))
    slope = np.array([3.0, 1.0])
    k = lipschitz_constant(batch, states @ slope, successors @ slope, np.array([0.5, 2.0]))
    assert k == pytest.approx(2.5, rel=1e-3)


def test_k_does_not_ask_for_the_value_where_an_episode_has_ended():
    states, successors = np.array([[0.0], [1.0]]), np.array([[1.0], [100.0]])
    batch = Transition(states, None, None, successors, np.array([0.0, 1.0]))
    assert lipschitz_constant(batch, np.array([0.0, 1.0]), np.array([1.0, 1e9]), np.array([0.5])) == pytest.approx(0.5)


def test_imagined_returns_repeat_and_drop_to_a_lower_mean():
    agent = MBDP(POINT_MASS, **{**TINY, **TRAINING_ROLLOUTS, "samples_per_state": 4}, seed=0)
    agent.learn(60)
    starts = np.zeros((3, agent.world.spec.observation_size), np.float32)
    returns = imagined_returns(agent, starts)
    assert returns.shape == (3, theory_metrics.RETURNS)
    assert np.array_equal(returns, imagined_returns(agent, starts))
    assert all(theory.v_alpha(own, 0.2) < own.mean() for own in returns)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_critics_that_have_exploded_make_no_bound_and_no_error(broken):
    agent = MBDP(POINT_MASS, **{**TINY, **TRAINING_ROLLOUTS, "samples_per_state": 4}, seed=0)
    agent.learn(60)
    critic = jax.tree.map(lambda x: x * broken, agent.learner.agent.critic)
    agent.learner.agent = eqx.tree_at(lambda own: own.critic, agent.learner.agent, critic)
    starts = np.zeros((2, agent.world.spec.observation_size), np.float32)
    result = Evaluation(np.ones(2), np.ones(2, int), starts, np.ones(2))
    said = theory_metrics.theory_metrics(agent, result, {f"model/bias_{i}": 0.1 for i in range(4)})
    assert not np.isfinite(said["theory/bound"])
