"""Many episodes side by side: one call of the policy for all of them, each in an environment of its own."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import gymnasium
import numpy as np

from mbdp.envs.checked import Checked, Promise, promise_of
from mbdp.envs.rules import Rules, rules_of
from mbdp.envs.tasks import EnvMaker, spec_of
from mbdp.robustness.axes import DISTURBANCES
from mbdp.robustness.parameters import own_axes
from mbdp.robustness.perturb import perturb
from mbdp.robustness.stepping import AllTogether, OneByOne, Stepper, repeats_gymnasium, unchecked
from mbdp.types import BadInput

BatchPolicy = Callable[[np.ndarray], np.ndarray]  # observations (n, obs) to actions (n, act)
MAX_STEPS = 100_000


class Job(NamedTuple):
    """One episode: the world, and the seed that it is reset with."""

    coefficients: Mapping[str, float]
    seed: int


class EpisodeResult(NamedTuple):
    """How an episode went; `diverged` if the simulation became unstable, and then the return is that until there."""

    total: float
    length: int
    diverged: bool


class Worlds:
    """Environments of one kind, made when they are first needed and kept for the next episodes."""

    def __init__(self, make: EnvMaker) -> None:
        self.make = make
        self.envs: list[gymnasium.Env] = []

    def take(self, count: int) -> list[gymnasium.Env]:
        """The first `count` environments."""
        self.envs += [unchecked(self.make()) for _ in range(count - len(self.envs))]
        return self.envs[:count]

    @cached_property
    def promise(self) -> Promise:
        """The spaces of the first of them, before any episode."""
        return promise_of(self.take(1)[0])

    @cached_property
    def rules(self) -> Rules | None:
        """How to step them all together, if that is known and gives what their own `step` gives."""
        few = self.take(3)
        rules = rules_of(few[0])
        return rules if rules and repeats_gymnasium(rules, few) else None


def run_episodes(
    policy: BatchPolicy,
    worlds: Worlds,
    jobs: Sequence[Job],
    batch: int,
    finished: Callable[[], None] = lambda: None,
) -> list[EpisodeResult]:
    """The result of every job, `batch` of them at a time; `finished` is called after each."""
    results: list[EpisodeResult | None] = [None] * len(jobs)
    waiting = deque(enumerate(jobs))
    lanes, promise = worlds.take(min(batch, len(jobs))), worlds.promise
    slow = {*DISTURBANCES, *own_axes(lanes[0])}  # not in the fields of MuJoCo that the rules read
    inside_only = not any(axis in slow for job in jobs for axis in job.coefficients)
    stepper: Stepper = AllTogether(worlds.rules, lanes) if inside_only and worlds.rules else OneByOne()
    spec = spec_of(lanes[0])
    # A policy that is not ours sees `batch` rows at every call, empty lanes included: numbers then do not depend on how
    # many episodes happen to be left, and a compiled policy is compiled once.
    observations = np.zeros((batch, spec.observation_size), lanes[0].observation_space.dtype)
    totals, lengths, running = np.zeros(len(lanes)), np.zeros(len(lanes), int), np.zeros(len(lanes), int)

    def start(lane: int) -> bool:
        """Start the next job that is waiting; False when none is left."""
        observations[lane], totals[lane], lengths[lane] = 0, 0.0, 0
        if not waiting:
            return False
        running[lane], job = waiting.popleft()
        env = Checked(perturb(lanes[lane], job.coefficients), promise)
        observations[lane], _ = env.reset(seed=job.seed)
        if not np.isfinite(observations[lane]).all():
            raise BadInput(f"the environment's first observation is not finite (seed {job.seed}, {job.coefficients})")
        stepper.start(lane, env)
        return True

    active = [lane for lane in range(len(lanes)) if start(lane)]
    while active:
        if getattr(policy, "rows_are_independent", False):
            actions = act(policy, observations[active], spec.action_size)
        else:
            actions = act(policy, observations, spec.action_size)[active]
        step = stepper.step(active, actions)
        # The sum of squares is the quickest way to see a number that is not finite, or far from any physics.
        diverged = step.unstable | ~np.isfinite(np.square(step.observations).sum(axis=1) + step.rewards)
        observations[active] = step.observations
        totals[active] += np.where(diverged, 0.0, step.rewards)
        lengths[active] += 1
        ended = step.over | diverged
        for lane, unstable in [(active[i], bool(diverged[i])) for i in np.flatnonzero(ended)]:
            results[running[lane]] = EpisodeResult(float(totals[lane]), int(lengths[lane]), unstable)
            finished()
            if not start(lane):
                active.remove(lane)
        if lengths.max() >= MAX_STEPS:
            raise BadInput(f"an episode was still going on after {MAX_STEPS} steps: give the environment a time limit")
    return [result for result in results if result is not None]


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
