"""Many episodes side by side: one call of the policy for all of them, each in an environment of its own."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.wrappers import PassiveEnvChecker

from mbdp.envs.perturb import perturb
from mbdp.envs.tasks import spec_of
from mbdp.types import BadInput

BatchPolicy = Callable[[np.ndarray], np.ndarray]  # observations (n, obs) to actions (n, act)
EnvMaker = Callable[[], gymnasium.Env]
MAX_STEPS = 100_000


class Job(NamedTuple):
    """One episode: the world, and the seed that it is reset with."""

    coefficients: Mapping[str, float]
    seed: int


class Outcome(NamedTuple):
    """How an episode went; `diverged` if the simulation became unstable, and then the return is that until there."""

    total: float
    length: int
    diverged: bool


@dataclass
class Lane:
    """An environment with the episode that runs in it."""

    base: gymnasium.Env
    env: gymnasium.Env
    index: int = -1  # of the job; negative when the lane is empty
    total: float = 0.0
    length: int = 0
    diverged: bool = False


def run_episodes(
    policy: BatchPolicy,
    make: EnvMaker,
    jobs: Sequence[Job],
    batch: int,
    envs: list[gymnasium.Env],
    finished: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """The outcome of every job, `batch` of them at a time; `finished` is called after each.

    Environments are taken from `envs`; those that are missing are made, and left there for the next call.
    """
    outcomes: list[Outcome | None] = [None] * len(jobs)
    waiting = deque(enumerate(jobs))
    envs += [_unchecked(make()) for _ in range(min(batch, len(jobs)) - len(envs))]
    lanes = [Lane(base, base) for base in envs[: min(batch, len(jobs))]]
    spec = spec_of(lanes[0].base)
    # A policy that is not ours sees `batch` rows at every call, empty lanes included: numbers then do not depend on how
    # many episodes happen to be left, and a compiled policy is compiled once.
    observations = np.zeros((batch, spec.observation_size), lanes[0].base.observation_space.dtype)
    active = [i for i, lane in enumerate(lanes) if _next_episode(lane, waiting, observations[i])]
    while active:
        if getattr(policy, "rows_are_independent", False):
            actions = act(policy, observations[active], spec.action_size)
        else:
            actions = act(policy, observations, spec.action_size)[active]
        for i, action in zip(tuple(active), actions, strict=True):
            lane = lanes[i]
            if _step(lane, action, observations[i]):
                outcomes[lane.index] = Outcome(lane.total, lane.length, lane.diverged)
                finished()
                if not _next_episode(lane, waiting, observations[i]):
                    active.remove(i)
    return [outcome for outcome in outcomes if outcome is not None]


def act(policy: BatchPolicy, observations: np.ndarray, action_size: int) -> np.ndarray:
    """The policy's actions (n, act), refused if they are of another shape or not finite."""
    # A copy, because a policy may keep or change what it is given.
    actions = np.asarray(policy(observations.copy()))
    if actions.shape != (len(observations), action_size):
        expected = (len(observations), action_size)
        raise BadInput(f"for observations {observations.shape} the policy gave actions {actions.shape}, not {expected}")
    if not np.isfinite(actions).all():
        raise BadInput("the policy gave an action that is not finite")
    return actions


def _next_episode(lane: Lane, waiting: deque[tuple[int, Job]], row: np.ndarray) -> bool:
    """Start the next job that is waiting, its first observation into `row`; False when none is left."""
    while waiting:
        lane.index, job = waiting.popleft()
        lane.env = perturb(lane.base, job.coefficients)
        lane.total, lane.length, lane.diverged = 0.0, 0, False
        row[:], _ = lane.env.reset(seed=job.seed)
        if not np.isfinite(row).all():
            raise BadInput(f"the environment's first observation is not finite (seed {job.seed}, {job.coefficients})")
        return True
    row[:] = 0
    return False


def _step(lane: Lane, action: np.ndarray, row: np.ndarray) -> bool:
    """One step, its observation into `row`; True if the episode is over."""
    observation, reward, terminated, truncated, info = lane.env.step(action)
    lane.length += 1
    row[:] = observation
    # The sum of squares is the quickest way to see a number that is not finite, or far from any physics.
    lane.diverged = "diverged" in info or not (math.isfinite(row @ row) and math.isfinite(reward))
    lane.total += 0.0 if lane.diverged else float(reward)
    if lane.length >= MAX_STEPS and not (terminated or truncated):
        raise BadInput(f"an episode was still going on after {MAX_STEPS} steps: give the environment a time limit")
    return bool(terminated or truncated or lane.diverged)


def _unchecked(env: gymnasium.Env) -> gymnasium.Env:
    """`env` without Gymnasium's passive checker, which costs time at every step and changes nothing."""
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner.env, PassiveEnvChecker):
            inner.env = inner.env.env
        inner = inner.env
    return env.env if isinstance(env, PassiveEnvChecker) else env
