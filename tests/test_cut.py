"""When training leaves an episode: derived from what real steps earned of late, so that a resumed run does the same."""

from dataclasses import replace

import numpy as np
import pytest

from mbdp.algorithm import LATE, LATE_EVERY, Learner, create, when_to_cut
from mbdp.config import Config
from mbdp.envs.interact import NEVER
from mbdp.presets import preset
from mbdp.replay import Replay
from mbdp.types import Spec

SPEC = Spec(2, 1)
CONFIG = replace(preset("mbdp", "mbdp/PointMass-v0"), steps=8_000, random_steps=1_000, width=4, model_width=4)


@pytest.fixture(scope="module")
def fresh() -> Learner:
    return create(CONFIG, SPEC, seed=0)


def learner(fresh: Learner, rewards: np.ndarray) -> Learner:
    """After so many env steps, each with its reward."""
    rows = np.zeros((len(rewards), SPEC.row_width), np.float32)
    rows[:, SPEC.observation_size + SPEC.action_size] = rewards
    d_env = Replay(CONFIG.steps, SPEC)
    d_env.add(rows)
    return replace(fresh, d_env=d_env, step=len(rewards))


def test_random_episodes_are_all_short(fresh):
    assert when_to_cut(learner(fresh, np.ones(999)), CONFIG) == (CONFIG.cut_episodes, np.inf)


@pytest.mark.parametrize(("earned", "least"), [(4.0, 2.0), (-4.0, -6.0), (0.0, 0.0)])
def test_later_ones_must_earn_half_of_what_is_usual_or_lose_no_more_than_that_more(fresh, earned, least):
    assert when_to_cut(learner(fresh, np.full(1_000, earned)), CONFIG).usual == least


def test_what_is_usual_is_of_late_and_looked_at_now_and_then(fresh):
    rewards = np.concatenate([np.full(2_000, -9.0), np.full(LATE, 2.0), np.full(LATE_EVERY - 1, 50.0)])
    assert when_to_cut(learner(fresh, rewards), CONFIG).usual == 1.0


def test_without_cut_episodes_none_is_cut(fresh):
    config: Config = replace(CONFIG, cut_episodes=0)
    assert when_to_cut(learner(fresh, np.ones(10)), config) == NEVER
