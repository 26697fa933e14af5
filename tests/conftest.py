"""Settings that the tests share: one tiny shape, so that XLA compiles each function once for all of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from mbdp.config import Config
from mbdp.envs.toy import POINT_MASS
from mbdp.presets import WITHOUT_EXPANSION, preset
from mbdp.replay import Replay, pack
from mbdp.types import Spec, Transition

MAPPINGS, MOST_MAPPINGS = Path("/proc/self/maps"), 30_000  # of 65,530 that Linux allows; each program takes some

TINY = {
    "steps": 100,
    "random_steps": 40,
    "members": 4,
    "model_width": 16,
    "model_depth": 2,
    "model_every": 20,
    "fit_steps": 10,
    "first_fit_steps": 20,
    "fit_batch": 16,
    "rollouts": 60,
    "samples_per_state": 5,
    "updates_per_step": 2,
    "actor_every": 1,
    "batch": 16,
    "width": 16,
}
_OF_ALL = {name: TINY[name] for name in ("model_width", "model_depth", "fit_batch", "width")}
_OF_STEVE = ("random_steps", "model_every", "fit_steps", "first_fit_steps", "updates_per_step", "batch")
TINY_STEVE = _OF_ALL | {name: TINY[name] for name in _OF_STEVE} | {"target_every": 10}
TINY_SLBO = _OF_ALL | {
    "members": 2,
    "stage": 20,
    "rounds": 2,
    "model_steps": 10,
    "policy_steps": 2,
    "lanes": 2,
    "imagined_steps": 20,
    "value_epochs": 1,
}


def tiny(algo: str = "mbdp", env_id: str = POINT_MASS, **settings: object) -> Config:
    own = {} if algo == "mbpo" or algo == "sac" else WITHOUT_EXPANSION
    return replace(preset(algo, env_id), **(own | TINY | settings))


def tiny_expanding(algo: str = "mbdp", **settings: object) -> Config:
    """The default preset, with its training rollouts, in the same size."""
    own = TINY | {"samples_per_state": 4, "expansion": 2, "horizon": (3, 3, 0, 0), "update_every": 5}
    return replace(preset(algo, POINT_MASS), **(own | settings))  # type: ignore[arg-type]


def linear_system(count: int, *, noise: float = 0.0, seed: int = 0, capacity: int = 600) -> Replay:
    """Transitions of s' = s + 0.1 (s1, a) + noise, r = s0 + a, in a buffer."""
    rng = np.random.default_rng(seed)
    observation, action = rng.normal(size=(count, 2)), rng.uniform(-1, 1, (count, 1))
    change = 0.1 * np.concatenate([observation[:, 1:], action], axis=1) + noise * rng.normal(size=(count, 2))
    buffer = Replay(capacity, Spec(2, 1))
    rows = Transition(observation, action, observation[:, 0] + action[:, 0], observation + change, np.zeros(count))
    buffer.add(pack(rows))
    return buffer


@pytest.fixture(autouse=True, scope="module")
def _room_for_compiled_programs() -> None:
    """Forget compiled programs before the process runs out of memory mappings, which would be a crash within XLA."""
    if MAPPINGS.exists() and MAPPINGS.read_bytes().count(b"\n") > MOST_MAPPINGS:
        jax.clear_caches()


@pytest.fixture(autouse=True)
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands under test share compilations with each other, not with the user's real runs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The events of compiling, while the context lasts."""
    seen: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seen
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
