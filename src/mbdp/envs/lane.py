"""One of several environments of a run, as the process that it lives in sees it."""

import multiprocessing
import os
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from mbdp.envs.interact import NEVER, Outcome, World
from mbdp.envs.spaces import adapted
from mbdp.envs.tasks import EnvMaker
from mbdp.types import BadInput, Spec

EpisodePlace = tuple[dict[str, int], np.ndarray, np.ndarray | None]  # what `World.return_to` takes


class LaneReport(NamedTuple):
    """What a process tells of a reset or a step: an error is a sentence, so that it reads as with one environment."""

    bookmark: dict[str, int]
    outcome: Outcome | None = None
    exact: bool = True  # False if the environment did not repeat the episode that it was to return to
    broken: str = ""


class Lane(gymnasium.Env[np.ndarray, np.ndarray]):
    """A world as a Gymnasium environment that never ends: it begins its next episode by itself, from its own seeds.

    What a step brought is info["report"]; the observation is the one to act on next. The simulator is made by the first
    reset, so that nothing of it is in the process that only wants to know the spaces.
    """

    def __init__(self, maker: EnvMaker, seed: int, lane: int, spaces: tuple[gymnasium.Space, gymnasium.Space]):
        self.maker, self.seed, self.lane, self.spaces = maker, seed, lane, spaces
        spec = Spec(*(space.shape[0] for space in spaces if space.shape))
        self.observation_space: Box = Box(-np.inf, np.inf, (spec.observation_size,), np.float32)
        self.action_space = Box(-1.0, 1.0, (spec.action_size,), np.float32)
        self.world: World | None = None
        self.place: EpisodePlace | None = None  # where to begin, if not at the first episode
        self.cut = NEVER

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Begin, or return to `place`."""
        try:
            if self.world is None:
                self.world = self._made()
            exact = self.world.return_to(*self.place) if self.place else True
        except BadInput as error:
            return np.zeros_like(self.observation_space.low), {"report": LaneReport({}, broken=str(error))}
        return self.world.observation, {"report": LaneReport(self.world.bookmark(), exact=exact)}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Take an action in [-1, 1]."""
        assert self.world is not None
        try:
            report = LaneReport({}, self.world.step(action, cut=self.cut))
        except BadInput as error:
            report = LaneReport({}, broken=str(error))
        report = report._replace(bookmark=self.world.bookmark())
        return self.world.observation, 0.0, False, False, {"report": report}

    def close(self) -> None:
        if self.world is not None:
            with suppress(Exception):  # anybody's code, and there is nothing left to lose
                self.world.env.close()
        if isinstance(sys.exception(), OSError):
            os._exit(0)  # the run is gone, and nobody is there for a traceback

    def _made(self) -> World:
        threading.Thread(target=_end_with_the_parent, daemon=True).start()
        try:
            env = adapted(self.maker())
        except BadInput:
            raise
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadInput(f"env {self.lane} cannot be made in a process of its own: {said}") from error
        if (env.observation_space, env.action_space) != self.spaces:
            own, others = (env.observation_space, env.action_space), self.spaces
            raise BadInput(f"env {self.lane} has other spaces than it was first made with: {own}, not {others}")
        return World(env, self.seed, self.lane)


def _end_with_the_parent() -> None:
    """However the run ends, its simulators end with it, even in the middle of a step."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
