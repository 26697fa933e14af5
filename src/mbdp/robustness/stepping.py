"""Two ways to take a step in many environments, with the same numbers: one after the other, or all together.

Together means that MuJoCo steps each simulation, and that what Gymnasium does in Python for each of them afterwards is
done once for all.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import gymnasium
import mujoco
import numpy as np
from gymnasium.wrappers import PassiveEnvChecker, TimeLimit

from mbdp.envs.rules import Fields, Rules
from mbdp.envs.simulator import UNSTABLE


class Step(NamedTuple):
    """What a step gave in each of n environments."""

    observations: np.ndarray  # (n, obs)
    rewards: np.ndarray  # (n,)
    over: np.ndarray  # (n,), terminated or truncated
    unstable: np.ndarray  # (n,), MuJoCo gave up and reset its simulation: over, without reward


class Stepper(Protocol):
    """Environments that are stepped at the same time, by their index."""

    def start(self, index: int, env: gymnasium.Env) -> None:
        """`env`, which has just been reset, is what `index` means from now on."""

    def step(self, indices: Sequence[int], actions: np.ndarray) -> Step:
        """One step in each of these environments."""


class OneByOne:
    """Any environments at all, each by its own `step`."""

    def __init__(self) -> None:
        self.envs: dict[int, gymnasium.Env] = {}

    def start(self, index: int, env: gymnasium.Env) -> None:
        self.envs[index] = env

    def step(self, indices: Sequence[int], actions: np.ndarray) -> Step:
        results = [self.envs[i].step(action) for i, action in zip(indices, actions, strict=True)]
        observations, rewards, terminated, truncated, infos = zip(*results, strict=True)
        over = np.array(terminated, bool) | np.array(truncated, bool)
        return Step(np.array(observations), np.array(rewards, float), over, np.array(["diverged" in i for i in infos]))


class AllTogether:
    """Environments of one task whose rules are known, stepped without their Python."""

    def __init__(self, rules: Rules, envs: Sequence[gymnasium.Env]) -> None:
        cores: list[Any] = [env.unwrapped for env in envs]
        self.rules, self.core, self.dt = rules, cores[0], cores[0].dt
        self.simulations = [(core.model, core.data) for core in cores]
        self.controls = [core.data.ctrl for core in cores]
        # Views into each simulation: MuJoCo keeps its arrays where they are as long as there is the environment.
        self.views = {name: [getattr(core.data, name).reshape(-1) for core in cores] for name in rules.fields}
        self.warnings = [core.data.warning.number[UNSTABLE] for core in cores]
        self.limit = _time_limit(envs[0])
        self.positions, self.elapsed = np.zeros(len(cores)), np.zeros(len(cores), int)

    def start(self, index: int, env: gymnasium.Env) -> None:
        self.positions[index] = self.rules.position(self.core, self._fields([index]))[0]
        self.elapsed[index] = 0

    def step(self, indices: Sequence[int], actions: np.ndarray) -> Step:
        substeps = self.core.frame_skip
        for i, action in zip(indices, actions, strict=True):
            self.controls[i][:] = action
            mujoco.mj_step(*self.simulations[i], substeps)
            if self.rules.contact_forces:
                mujoco.mj_rnePostConstraint(*self.simulations[i])
        now = self._fields(indices)
        rows = np.asarray(indices)
        positions = self.rules.position(self.core, now)
        velocities = (positions - self.positions[rows]) / self.dt
        self.positions[rows] = positions
        self.elapsed[rows] += 1
        rewards, terminated = self.rules.judge(self.core, now, velocities, actions)
        unstable = np.array([self.warnings[i] for i in indices]).sum(axis=1) > 0
        over = terminated | unstable | (self.elapsed[rows] >= self.limit)
        return Step(self.rules.observe(self.core, now), np.where(unstable, 0.0, rewards), over, unstable)

    def _fields(self, indices: Sequence[int]) -> Fields:
        return {
            name: np.concatenate([views[i] for i in indices]).reshape(len(indices), -1)
            for name, views in self.views.items()
        }


def repeats_gymnasium(rules: Rules, envs: Sequence[gymnasium.Env], steps: int = 50) -> bool:
    """Whether both ways agree to the last bit here and now: another Gymnasium or NumPy may compute otherwise."""
    space = envs[0].action_space
    assert isinstance(space, gymnasium.spaces.Box)
    actions = np.random.default_rng(0).uniform(space.low, space.high, (steps, len(envs), *space.shape))

    def record(stepper: Stepper) -> list[Step]:
        for seed, env in enumerate(envs):
            env.reset(seed=seed)
            stepper.start(seed, env)
        return [stepper.step(range(len(envs)), action) for action in actions.astype(space.dtype)]

    expected = record(OneByOne())
    try:
        found = record(AllTogether(rules, envs))
    except Exception:  # the rules read names that another Gymnasium may not have
        return False
    pairs = [pair for steps in zip(expected, found, strict=True) for pair in zip(*steps, strict=True)]
    return all(np.array_equal(one, other) for one, other in pairs)


def unchecked(env: gymnasium.Env) -> gymnasium.Env:
    """`env` without Gymnasium's passive checker, which costs time at every step and changes nothing."""
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner.env, PassiveEnvChecker):
            inner.env = inner.env.env
        inner = inner.env
    return env.env if isinstance(env, PassiveEnvChecker) else env


def _time_limit(env: gymnasium.Env) -> float:
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            return env._max_episode_steps
        env = env.env
    return np.inf
