"""What is measured of Stable-Baselines3 and of SBX, its version in JAX: both have the same interface."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from benchmarks.speed.settings import BATCH, DISCOUNT, ENV, LEARNING_RATE, TARGET_ENTROPY, TAU, Sizes
from stable_baselines3.common.logger import configure

from mbdp.envs.tasks import make
from mbdp.replay import Replay, unpack


def create(kind: Any, d_env: Replay) -> Any:
    """Their SAC with two hidden layers of 256 units, which is its default, and our rows in its buffer."""
    settings = {"gamma": DISCOUNT, "tau": TAU, "target_entropy": TARGET_ENTROPY, "learning_rate": LEARNING_RATE}
    model = kind("MlpPolicy", make(ENV), batch_size=BATCH, buffer_size=len(d_env), device="cpu", **settings)
    model.set_logger(configure(None, []))
    for row in d_env.rows[: len(d_env)]:
        one = unpack(row[None], d_env.spec)
        model.replay_buffer.add(one.observation, one.next_observation, one.action, one.reward, one.terminated, [{}])
    return model


def sac_update(model: Any, sizes: Sizes) -> Callable[[], object]:
    """Their training function, which draws the minibatches itself."""

    def way() -> object:
        model.train(gradient_steps=sizes.updates, batch_size=BATCH)
        state = getattr(model.policy, "actor_state", None)  # of SBX, which computes in the background
        return jax.block_until_ready(state.params) if state is not None else None

    return way


def acting(model: Any, sizes: Sizes) -> Callable[[], object]:
    """Env steps with the stochastic policy."""
    env = make(ENV)
    place = {"observation": env.reset(seed=0)[0]}

    def way() -> object:
        for _ in range(sizes.env_steps):
            action, _ = model.predict(place["observation"], deterministic=False)
            place["observation"], _, terminated, truncated, _ = env.step(np.asarray(action))
            if terminated or truncated:
                place["observation"], _ = env.reset()
        return None

    return way
