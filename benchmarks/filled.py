"""An agent whose buffers hold as much as after so many env steps, without the hours that it would take to get there."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mbdp import MBDP
from mbdp.algorithm import Progress
from mbdp.replay import Replay


def filled_agent(env: str, preset: str, samples: int, **settings: Any) -> tuple[MBDP, int]:
    """The agent after so many env steps, a few less perhaps, and that number of steps.

    Its next env step is one with a fit.
    """
    agent = MBDP(env, preset_name=preset, **settings)
    config, learner, spec = agent.config, agent.learner, agent.world.spec
    samples -= (samples - config.random_steps) % config.model_every
    rng = np.random.default_rng(0)
    rows = np.concatenate([agent.world.step(rng.uniform(-1, 1, spec.action_size)).rows for _ in range(samples)])
    learner.d_env.add(rows)
    # The cost of an update does not depend on what imagined rows say.
    learner.d_model = Replay(config.d_model_capacity(config.horizon_at(samples)), spec)
    while len(learner.d_model) < learner.d_model.capacity:
        learner.d_model.add(rows)
    learner.step = samples
    return agent, samples


def take(run: Iterator[Progress], env_steps: int) -> None:
    """So many whole env steps; one with a fit comes in pieces."""
    for _ in range(env_steps):
        while not next(run).settled:
            pass
