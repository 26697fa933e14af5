"""A learning algorithm is tested by learning: every method must solve the point mass."""

import numpy as np
import pytest

from mbdp import MBDP
from mbdp.envs.tasks import make
from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.evaluate import evaluate
from mbdp.presets import WITHOUT_EXPANSION

SMALL = {
    "random_steps": 200,
    "members": 4,
    "model_width": 32,
    "model_depth": 2,
    "model_every": 100,
    "fit_steps": 100,
    "first_fit_steps": 300,
    "fit_batch": 64,
    "rollouts": 2_000,
    "samples_per_state": 5,
    "updates_per_step": 2,
    "update_every": 5,
    "batch": 64,
    "width": 32,
    "learning_rate": 1e-3,
    "temperature": 0.1,
}


PLAIN_SAC = {"updates_per_step": 8, "update_every": 1}


def mean_return(agent: MBDP) -> float:
    return float(evaluate(agent.policy(), [make(POINT_MASS) for _ in range(10)]).returns.mean())


STEVE = {"random_steps": 200, "model_width": 32, "model_depth": 2, "model_every": 100, "fit_steps": 100} | {
    "first_fit_steps": 300,
    "fit_batch": 64,
    "batch": 64,
    "width": 32,
    "depth": 2,
    "target_every": 100,
    "learning_rate": 1e-3,
}
SLBO = {"model_width": 32, "fit_batch": 64, "stage": 200, "rounds": 2, "model_steps": 200, "policy_steps": 20} | {
    "lanes": 10,
    "imagined_steps": 50,
}


@pytest.mark.parametrize(("algo", "settings"), [("steve", STEVE), ("slbo", SLBO)])
def test_the_baselines_solve_the_point_mass(algo, settings):
    agent = MBDP(POINT_MASS, algo=algo, **settings)
    before = mean_return(agent)
    after = mean_return(agent.learn(1_000))
    assert before < 43
    assert after > 45


@pytest.mark.parametrize("algo", ["mbdp", "mbpo", "sac", "no-dropout"])
def test_every_method_solves_the_point_mass(algo):
    settings = SMALL | (PLAIN_SAC if algo in ("mbpo", "sac") else {})
    settings |= {"samples_per_state": 1} if algo == "mbpo" else {}
    agent = MBDP(POINT_MASS, algo=algo, **settings)
    before = mean_return(agent)
    after = mean_return(agent.learn(1_000))
    assert before < 43
    assert after > 45  # 50 is out of reach: the mass starts away from the origin


@pytest.mark.parametrize("group", ["state", "members", "batch", "trajectory"])
def test_mbdp_without_training_rollouts_solves_the_point_mass_in_every_grouping(group):
    settings = WITHOUT_EXPANSION | SMALL | PLAIN_SAC | {"group": group, "alpha": 0.2, "horizon": (2, 2, 0, 0)}
    assert mean_return(MBDP(POINT_MASS, **settings).learn(1_500)) > 45


@pytest.mark.parametrize("group", ["members", "state"])
def test_training_rollouts_learn_with_algorithm_1s_dropout_too(group):
    assert mean_return(MBDP(POINT_MASS, group=group, **SMALL).learn(1_000)) > 45


def test_mbdp_solves_the_point_mass_with_learned_termination():
    agents = [MBDP(POINT_MASS, termination="learned", seed=seed, **SMALL) for seed in range(3)]
    assert np.median([mean_return(agent.learn(1_000)) for agent in agents]) > 45  # the first of them takes 2,000
