"""What should be equal is equal bit for bit: the neutral value of a dropout is the absence of that dropout."""

from dataclasses import replace

import equinox as eqx
import numpy as np
import pytest

from mbdp import algorithm
from mbdp.agents import sac
from mbdp.config import Config
from mbdp.envs.interact import World
from mbdp.envs.tasks import make, task_of
from mbdp.envs.toy import POINT_MASS
from mbdp.models.fit import fit
from mbdp.replay import mixed_minibatches, unpack
from mbdp.rollout import rollout
from mbdp.streams import generator, key
from tests.conftest import compilations, tiny, tiny_expanding

TERMINATION = task_of(POINT_MASS).termination


def learned_by_mbdp(config: Config, seed: int = 0) -> sac.Agent:
    world = World(make(POINT_MASS), seed)
    learner = algorithm.create(config, world.spec, seed=seed)
    for _ in algorithm.mbdp(learner, world, config, termination=TERMINATION, seed=seed):
        pass
    return learner.agent


def learned_without_any_dropout(config: Config, seed: int = 0) -> sac.Agent:
    """Dyna as MBPO does it, written out without the two dropout functions, on the same parts."""
    world = World(make(POINT_MASS), seed)
    spec, plan = world.spec, config.plan(TERMINATION)
    learner = algorithm.create(config, spec, seed=seed)
    d_env, d_model = learner.d_env, learner.d_model
    agent, model, optimiser = learner.agent, learner.model, learner.model_optimiser
    for step in range(config.steps):
        rng = generator(seed, "action", step)
        if step < config.random_steps:
            d_env.add(world.step(rng.uniform(-1, 1, spec.action_size)).rows)
            continue
        d_env.add(world.step(sac.explore(agent.actor, world.observation, rng=rng)).rows)
        if config.real_ratio < 1 and (step - config.random_steps) % config.model_every == 0:
            rng = generator(seed, "fit", step)
            model, optimiser, score = fit(model, optimiser, d_env, config.budget(TERMINATION), seed=seed, rng=rng)
            best_first = np.argsort(np.asarray(score.distance), kind="stable")
            sampled = d_env.sample(config.starts(len(model), 1), generator(seed, "start", step))
            starts, key_rollout = unpack(sampled, spec).observation, key(seed, "rollout", step)
            imagined = rollout(model[best_first], agent.actor, starts, horizon=1, plan=plan, key=key_rollout)
            d_model.add(imagined.rows[imagined.valid])
        rows = mixed_minibatches(d_env, d_model, **config.minibatches, rng=generator(seed, "minibatch", step))
        settings = config.sac_settings(spec) | {"discount": config.discount}
        agent, _ = sac.update(agent, rows, spec=spec, **settings, key=key(seed, "update", step))
    return agent


@pytest.mark.parametrize("group", ["state", "members"])
def test_no_dropout_is_dyna_without_the_dropout_functions(group):
    config = tiny("no-dropout", group=group)
    assert eqx.tree_equal(learned_by_mbdp(config), learned_without_any_dropout(config))


def test_sac_is_mbdp_with_real_data_only():
    config = tiny("sac")
    assert eqx.tree_equal(learned_by_mbdp(config), learned_without_any_dropout(config))


def test_sac_never_looks_at_a_model():
    first, second = (learned_by_mbdp(replace(tiny("sac"), members=members)) for members in (2, 4))
    assert eqx.tree_equal(first, second)


@pytest.mark.parametrize("group", ["batch", "trajectory"])
def test_without_alpha_the_grouping_does_not_matter(group):
    config = tiny("beta-only", group="state")
    assert eqx.tree_equal(learned_by_mbdp(config), learned_by_mbdp(replace(config, group=group)))


@pytest.mark.parametrize("arm", ["mbdp", "alpha-only", "beta-only"])
def test_each_dropout_changes_what_is_learned(arm):
    plain, dropped = (learned_by_mbdp(tiny(algo, group="state")) for algo in ("no-dropout", arm))
    assert not eqx.tree_equal(plain, dropped)


def test_mbpo_is_mbdp_with_its_settings():
    settings = {
        "alpha": 0.0,
        "beta": 2 / 7,
        "group": "state",
        "samples_per_state": 1,
        "bias": "mse",
        "member_per": "row",
    }
    assert tiny("mbpo", members=7, samples_per_state=1) == tiny("mbdp", members=7, **settings)


def test_a_fully_grown_discount_is_that_discount():
    grown = tiny("mbdp", discount=0.5, last_discount=0.75, horizon=(1, 1, 0, 0))
    assert eqx.tree_equal(learned_by_mbdp(grown), learned_by_mbdp(tiny("mbdp", discount=0.75)))
    assert not eqx.tree_equal(learned_by_mbdp(grown), learned_by_mbdp(tiny("mbdp", discount=0.5)))


@pytest.mark.parametrize("config", [tiny("mbdp"), tiny_expanding()])
def test_a_learner_is_a_function_of_its_seed(config):
    first, again, other = (learned_by_mbdp(config, seed) for seed in (0, 0, 1))
    assert eqx.tree_equal(first, again)
    assert not eqx.tree_equal(first, other)


def test_nothing_is_compiled_for_a_second_seed():
    config = tiny("mbdp")
    learned_by_mbdp(config)
    with compilations() as seen:
        learned_by_mbdp(config, seed=5)
    assert not seen


def test_without_alpha_one_sibling_is_as_good_as_none():
    config = tiny_expanding("beta-only", samples_per_state=1, member_per="step")
    other = replace(config, group="state")
    assert eqx.tree_equal(learned_by_mbdp(config), learned_by_mbdp(other))


@pytest.mark.parametrize("arm", ["mbdp", "alpha-only", "beta-only"])
def test_each_dropout_changes_what_training_rollouts_teach(arm):
    plain, dropped = (learned_by_mbdp(tiny_expanding(algo)) for algo in ("no-dropout", arm))
    assert not eqx.tree_equal(plain, dropped)
