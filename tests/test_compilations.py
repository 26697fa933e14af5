"""Nothing is compiled once every kind of step has been taken, however much the data has grown since."""

from dataclasses import replace

import jax
import pytest

from mbdp import algorithm
from mbdp.envs.interact import World
from mbdp.envs.tasks import make, task_of
from mbdp.envs.toy import POINT_MASS
from tests.conftest import compilations, tiny


def test_a_compilation_is_noticed():
    with compilations() as seen:
        jax.jit(lambda x: x * 2 + 1)(3.0)
    assert seen


@pytest.mark.parametrize("group", ["members", "state"])
@pytest.mark.parametrize("fit_steps", [2, 0])
def test_nothing_is_compiled_after_the_second_fit(group, fit_steps):
    base = tiny("mbdp", group=group)
    config = replace(base, fit_steps=fit_steps, steps=base.random_steps + 6 * base.model_every)
    world = World(make(POINT_MASS), seed=0)
    learner = algorithm.create(config, world.spec, seed=0)
    run = algorithm.mbdp(learner, world, config, termination=task_of(POINT_MASS).termination, seed=0)
    while learner.step < config.random_steps + 2 * config.model_every:
        next(run)
    with compilations() as seen:
        for _ in run:
            pass
    assert not seen
