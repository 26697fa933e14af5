"""Several environments that step at once, for slow simulators: each in a process, run by Gymnasium's vector env."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv

from mbdp.envs.interact import BOOKMARK, NEVER, Cut, Outcome, World
from mbdp.envs.lane import EpisodePlace, Lane, LaneReport
from mbdp.envs.simulator_processes import end, kill, start
from mbdp.envs.spaces import adapted
from mbdp.envs.tasks import EnvMaker, make
from mbdp.interruption import stop_if_asked
from mbdp.types import BadInput, Broken, Spec

MOST_ENVS = 256


def made_of(env: str | gymnasium.Env | EnvMaker) -> tuple[gymnasium.Env, EnvMaker | None]:
    """An environment with flat spaces, and what makes another one; nothing does if it was there already."""
    if isinstance(env, str):
        return make(env), partial(make, env)
    if isinstance(env, gymnasium.Env) or not callable(env):
        return adapted(env), None
    return adapted(env()), env


def new_world(env: gymnasium.Env, maker: EnvMaker | None, seed: int, envs: int) -> World:
    """The world of a run: `env` itself, or so many that `maker` makes, and `env` for its spaces only."""
    if not isinstance(envs, int) or isinstance(envs, bool) or not 1 <= envs <= MOST_ENVS:
        raise BadInput(f"envs must be a whole number from 1 to {MOST_ENVS}; it is {envs!r}")
    if envs == 1:
        return World(env, seed)
    if maker is None:
        raise BadInput(f"envs={envs} needs an env that can be made {envs} times: pass its id, its class or a function")
    return VectorWorld(env, maker, seed, envs)


class VectorWorld(World):
    """Environments that all take a step at once; `take` hands out what that brought, one env step at a time.

    Env j is a `World` whose episode k starts from a seed derived from (seed, j, k). Where all of them are is kept here,
    so processes that are gone are started anew and return there, as after a checkpoint.
    """

    def __init__(self, env: gymnasium.Env, maker: EnvMaker, seed: int, envs: int):
        self.maker, self.envs = maker, envs
        self.vector: AsyncVectorEnv | None = None
        self.told = NEVER  # when its environments cut an episode
        self.bookmarks: list[dict[str, int]] = []  # of every env, at the end of the newest common step
        self.actions: list[list[np.ndarray]] = [[] for _ in range(envs)]  # of their current episodes
        self.waiting: list[Outcome] = []  # of that step, not yet handed out
        super().__init__(env, seed)

    def take(self, choose: Callable[[np.ndarray], np.ndarray], *, cut: Cut = NEVER) -> Outcome:
        """The next outcome; with none left, all environments take the actions chosen for their observations."""
        return self.waiting.pop(0) if self.waiting else self.step(choose(self.observation), cut=cut)

    def step(self, action: np.ndarray, *, cut: Cut = NEVER) -> Outcome:
        """Take an action (env, number) in every environment; `take` hands out the outcomes after the first."""
        if self.vector is None:
            self._return()
        taken = np.asarray(action, np.float32)

        def go(vector: AsyncVectorEnv) -> tuple[Any, ...]:
            if cut != self.told:
                vector.set_attr("cut", [cut] * self.envs)
                self.told = cut
            return vector.step(taken)

        reports = self._ask(go)
        for own, one in zip(self.actions, taken, strict=True):
            own.append(one)
        self._note(reports)
        self.waiting = [report.outcome for report in reports if report.outcome is not None]
        return self.waiting.pop(0)

    def bookmark(self) -> dict[str, int]:
        """Sums over all environments, and how many there are; `arrays` has the place of each."""
        return super().bookmark() | {"envs": self.envs}

    def arrays(self) -> dict[str, np.ndarray]:
        """The place of every environment, and the outcomes that wait."""
        none = np.zeros((1, self.spec.row_width), np.float32)
        rows = [outcome.rows if len(outcome.rows) else none for outcome in self.waiting]
        endings = [(len(rows), length or 0, 0.0 if total is None else total) for rows, total, length in self.waiting]
        actions = [np.reshape(own, (-1, self.spec.action_size)) for own in self.actions]
        return {
            "world.bookmarks": np.array([[one[name] for name in BOOKMARK] for one in self.bookmarks], np.int64),
            "world.actions": np.concatenate(actions, dtype=np.float32),
            "world.observations": self.observation,
            "world.rows": np.concatenate([none[:0], *rows]),
            "world.endings": np.array(endings, np.float64).reshape(-1, 3),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> bool:
        """Go to where `arrays` was called; False if an environment did not repeat its episode and began another."""
        bookmarks, actions, observation, rows, endings = _checked(arrays, self.envs, self.spec)
        self.bookmarks = [dict(zip(BOOKMARK, map(int, one), strict=True)) for one in bookmarks]
        ends = np.cumsum([one["episode_length"] for one in self.bookmarks])
        self.actions = [list(own) for own in np.split(actions, ends[:-1])]
        self.observation = observation
        self.waiting = [
            Outcome(row[None], float(total), int(length)) if length else Outcome(row[None][: int(stored)])
            for row, (stored, length, total) in zip(rows, endings, strict=True)
        ]
        return self._return()

    def close(self) -> None:
        """End all processes; a further step would start them again."""
        vector, self.vector = self.vector, None
        if vector is not None:
            end(vector)

    def _begin(self) -> np.ndarray:
        self._return()
        return self.observation

    def _return(self) -> bool:
        """Bring every environment to its place, in new processes if there are none."""
        spaces = self.env.observation_space, self.env.action_space
        if self.vector is None:
            lanes = [partial(Lane, self.maker, self.seed, lane, spaces) for lane in range(self.envs)]
            self.vector, self.told = start(lanes, self.name), NEVER
        places: list[EpisodePlace | None] = [None] * self.envs  # their first episodes
        for lane, (one, own) in enumerate(zip(self.bookmarks, self.actions, strict=False)):
            actions = np.reshape(np.asarray(own, np.float32), (-1, self.spec.action_size))
            places[lane] = one, actions, self.observation[lane] if own else None

        def go(vector: AsyncVectorEnv) -> tuple[Any, ...]:
            vector.set_attr("place", places)
            return vector.reset()

        reports = self._ask(go)
        self._note(reports)
        return all(report.exact for report in reports)

    def _ask(self, question: Callable[[AsyncVectorEnv], tuple[Any, ...]]) -> list[LaneReport]:
        """What all environments report; if one cannot go on, all processes end and nothing has happened."""
        assert self.vector is not None
        try:
            observation, *_, info = question(self.vector)
        except BaseException as error:
            how = kill(self.vector)
            self.vector = None
            if not isinstance(error, EOFError | OSError):
                raise
            stop_if_asked()  # whoever asked for it may have ended all processes of the run
            raise Broken(f"{self.name}: the process {how}; the simulator crashed, or memory ran out") from error
        reports: list[LaneReport] = list(info["report"])
        if broken := [report.broken for report in reports if report.broken]:
            self.close()
            raise Broken(broken[0])
        self.observation = np.array(observation, np.float32)
        return reports

    def _note(self, reports: list[LaneReport]) -> None:
        """Where the environments are now: those in a new episode have taken no action in it yet."""
        self.bookmarks = [report.bookmark for report in reports]
        for own, one in zip(self.actions, self.bookmarks, strict=True):
            if not one["episode_length"]:
                own.clear()
        for name in BOOKMARK:
            setattr(self, name, sum(one[name] for one in self.bookmarks))


def _checked(arrays: Mapping[str, np.ndarray], envs: int, spec: Spec) -> list[np.ndarray]:
    """The arrays of a checkpoint, or BadInput: anybody may have written them."""
    shapes = {
        "bookmarks": (np.int64, len(BOOKMARK)),
        "actions": (np.float32, spec.action_size),
        "observations": (np.float32, spec.observation_size),
        "rows": (np.float32, spec.row_width),
        "endings": (np.float64, 3),
    }
    found = []
    for name, (kind, width) in shapes.items():
        array = arrays.get(f"world.{name}", np.zeros(0))
        if array.dtype != kind or array.ndim != 2 or array.shape[1] != width or not np.isfinite(array).all():
            raise BadInput(f"world.{name} must be finite numbers of {np.dtype(kind)} and shape (n, {width})")
        found.append(array)
    bookmarks, actions, observations, rows, endings = found
    counts = np.concatenate([bookmarks.ravel(), endings[:, :2].ravel()])
    if counts.min(initial=0) < 0 or counts.max(initial=0) >= 2**31:
        raise BadInput("world.bookmarks and world.endings must count from 0 to 2147483647")
    lengths = int(bookmarks[:, BOOKMARK.index("episode_length")].sum())
    if not (len(bookmarks) == len(observations) == envs > len(rows) == len(endings) and lengths == len(actions)):
        raise BadInput(f"the arrays of its world are not those of {envs} envs")
    return found
