"""Nothing is compiled once every kind of step has been taken, however much the data has grown since."""

from dataclasses import replace

import jax
import pytest

from mbdp import algorithm
from mbdp.config import SMALLEST_BLOCK
from mbdp.envs.interact import World
from mbdp.envs.tasks import make, task_of
from mbdp.envs.toy import POINT_MASS
from tests.conftest import compilations, tiny, tiny_expanding


def test_a_compilation_is_noticed():
    with compilations() as seen:
        jax.jit(lambda x: x * 2 + 1)(3.0)
    assert seen


@pytest.mark.parametrize("group", ["members", "state"])
@pytest.mark.parametrize("fit_steps", [2, 0])
def test_nothing_is_compiled_after_the_second_fit(group, fit_steps):
    base = tiny("mbdp", group=group)
    assert_nothing_is_compiled_after_the_second_fit_of(replace(base, fit_steps=fit_steps))


@pytest.mark.parametrize("group", ["members", "state"])
def test_fewer_and_longer_rollouts_compile_nothing(group):
    base = tiny("mbdp", group=group)
    third_fit, fourth_fit = (base.random_steps + fits * base.model_every for fits in (2, 3))
    drawn = base.model_every * base.updates_per_step * base.batch * (1 - base.real_ratio)
    limit = {"rollouts": 4 * SMALLEST_BLOCK, "imagined_per_drawn": 4.1 * SMALLEST_BLOCK / drawn}
    config = replace(base, horizon=(1, 3, third_fit, fourth_fit), **limit)
    assert [config.rollouts_of(horizon) for horizon in (1, 2, 3)] == [4_000, 2_000, 2_000]
    assert_nothing_is_compiled_after_the_second_fit_of(config)


def test_training_rollouts_compile_nothing_after_the_second_fit():
    assert_nothing_is_compiled_after_the_second_fit_of(tiny_expanding())


def assert_nothing_is_compiled_after_the_second_fit_of(config):
    config = replace(config, steps=config.random_steps + 6 * config.model_every)
    world = World(make(POINT_MASS), seed=0)
    learner = algorithm.create(config, world.spec, seed=0)
    run = algorithm.mbdp(learner, world, config, termination=task_of(POINT_MASS).termination, seed=0)
    while learner.step < config.random_steps + 2 * config.model_every:
        next(run)
    with compilations() as seen:
        for _ in run:
            pass
    assert not seen
