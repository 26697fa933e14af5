"""The real environment, one step at a time; every episode can be repeated from its seed and actions."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import mujoco
import numpy as np

from mbdp.envs.answers import change_of, complaint, own_spaces, read_reset, read_step
from mbdp.envs.simulator import UNSTABLE
from mbdp.envs.tasks import spec_of
from mbdp.replay import pack
from mbdp.streams import generator
from mbdp.types import Broken, Transition

MOST_FAULTS = 10  # in a row of episodes, none of which got far, before the run gives up
FAR = 100  # steps
MOST_REWARD = 1e8  # a critic squares what 1 / (1 - discount) of these sum up to, in single precision
BOOKMARK = ("steps", "faults", "faults_in_a_row", "episode", "episode_length")


class Outcome(NamedTuple):
    """What one step brought: rows for `d_env`, one or none, and, where the episode ended, its return and length."""

    rows: np.ndarray
    episode_return: float | None = None
    episode_length: int | None = None


class Cut(NamedTuple):
    """When training leaves an episode, as at a time limit; `World.step` has the rule."""

    shortest: float  # steps
    usual: float  # reward per step


NEVER = Cut(math.inf, -math.inf)


class World:
    """One environment being acted in; episode k starts from a seed derived from (seed, k), so any can be repeated.

    `lane` is its place among several environments of one run.
    """

    envs = 1  # that are stepped at once

    def __init__(self, env: gymnasium.Env, seed: int, lane: int | None = None):
        self.env, self.seed, self.lane = env, seed, lane
        self.spec = spec_of(env)
        self.name = env.spec.id if env.spec else type(env.unwrapped).__name__
        assert isinstance(env.action_space, gymnasium.spaces.Box)
        assert isinstance(env.observation_space, gymnasium.spaces.Box)
        self.space, self.spaces = env.observation_space, own_spaces(env)
        self.low, self.high = env.action_space.low, env.action_space.high
        self.steps = self.faults = self.faults_in_a_row = 0
        self.episode = -1
        self.observation = self._begin()

    def take(self, choose: Callable[[np.ndarray], np.ndarray], *, cut: Cut = NEVER) -> Outcome:
        """One env step with the action that is chosen for the observation."""
        return self.step(choose(self.observation), cut=cut)

    def step(self, action: np.ndarray, *, cut: Cut = NEVER) -> Outcome:
        """Take an action in [-1, 1]; a step that went wrong ends the episode and brings no row.

        From `cut.shortest` steps on, an episode is left if its last so many steps earned less than usual.
        """
        self.steps += 1
        if not np.isfinite(action).all():
            return self._fault("was to take an action of NaN or infinity")
        time = self._time()
        try:
            answer = read_step(self.env.step(self.to_env(action)), self.space)
        except Exception as error:
            said = complaint(error, "step", change_of(self.env, self.spaces))
            raise Broken(f"{self._where()}{said}") from error
        following, reward, terminated, truncated = answer
        if fault := self._wrong_with(following, reward, time):
            return self._fault(fault)
        before = self.observation
        self.observation = following
        self.episode_return += float(reward)
        self.rewards.append(float(reward))
        self.episode_length += 1
        action = np.asarray(action, np.float32)
        row = pack(Transition(before, action, reward, following, np.float32(terminated)))
        truncated = truncated or self._is_cut(cut)
        if terminated or truncated or self.episode_length >= FAR:
            self.faults_in_a_row = 0
        if not (terminated or truncated):
            return Outcome(row[None])
        outcome = Outcome(row[None], self.episode_return, self.episode_length)
        self.observation = self._begin()
        return outcome

    def to_env(self, action: np.ndarray) -> np.ndarray:
        """Actions in [-1, 1], in the environment's units."""
        scaled = self.low + (np.asarray(action, np.float32) + 1) * 0.5 * (self.high - self.low)
        return np.asarray(np.clip(scaled, self.low, self.high), self.low.dtype)

    def from_env(self, action: np.ndarray) -> np.ndarray:
        """Actions in the environment's units, in [-1, 1]."""
        return 2 * (action - self.low) / (self.high - self.low) - 1

    @property
    def longest_episode(self) -> int | None:
        """Steps after which the environment cuts an episode, if it says so."""
        return self.env.spec.max_episode_steps if self.env.spec else None

    def bookmark(self) -> dict[str, int]:
        """The place in the world: with the actions of the current episode it is enough to come back to it."""
        return {name: getattr(self, name) for name in BOOKMARK}

    def return_to(self, bookmark: dict[str, int], actions: np.ndarray, observation: np.ndarray | None) -> bool:
        """Replay the bookmarked episode; False if the env did not repeat itself, and a new episode was begun instead.

        No simulator's inner state is needed, so this works for any environment that is determined by its seed.
        """
        self.episode = bookmark["episode"] - 1
        self.observation = self._begin()
        for action in actions:
            self.step(action)
        for name, value in bookmark.items():
            if name != "episode_length":
                setattr(self, name, value)
        same = self.episode_length == bookmark["episode_length"]
        if same and (observation is None or np.array_equal(self.observation, observation)):
            return True
        self.observation = self._begin()
        return False

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint must hold besides the bookmark: nothing, because `d_env` has the actions."""
        return {}

    def close(self) -> None:
        """End the processes that belong to this world: none."""

    def _begin(self) -> np.ndarray:
        self.episode += 1
        self.episode_return, self.episode_length = 0.0, 0
        self.rewards: list[float] = []
        seed = int(generator(self.seed, "episode", self.episode, self.lane or 0).integers(2**31))
        try:
            observation = read_reset(self.env.reset(seed=seed), self.space)
        except Exception as error:
            said = complaint(error, "reset", change_of(self.env, self.spaces))
            raise Broken(f"{self._where()}{said}") from error
        if change := change_of(self.env, self.spaces):
            raise Broken(f"{self._where()}: {change}")
        if not np.isfinite(observation).all():
            raise Broken(f"{self._where()}: reset gave {observation}, not {self.spec.observation_size} finite numbers")
        return observation

    def _is_cut(self, cut: Cut) -> bool:
        if self.episode_length < cut.shortest:
            return False
        late = self.rewards[-int(cut.shortest) :]
        return sum(late) < cut.usual * len(late)

    def _wrong_with(self, following: np.ndarray, reward: np.float32, time: float) -> str:
        """What is wrong with an answer of the environment, or nothing."""
        if not (np.isfinite(following).all() and np.isfinite(reward)):
            return "gave NaN or infinity"
        if abs(reward) > MOST_REWARD:
            return f"gave a reward of {reward:.3g}, beyond {MOST_REWARD:.0e}"
        # MuJoCo resets an unstable simulation to its first state by itself, and what follows looks healthy.
        if self.data is not None and self.data.warning.number[UNSTABLE].any():
            return "became unstable in the simulator"
        if self._time() < time:
            return "went back in time without a reset"
        return ""

    def _time(self) -> float:
        return self.data.time if self.data is not None else -math.inf

    @property
    def data(self) -> Any:
        """The state of MuJoCo, if that is what the environment runs in."""
        data = getattr(self.env.unwrapped, "data", None)
        return data if isinstance(data, mujoco.MjData) else None

    def _fault(self, what: str) -> Outcome:
        self.faults += 1
        self.faults_in_a_row += 1
        if self.faults_in_a_row >= MOST_FAULTS:
            raise Broken(
                f"{self._where()} {what}, the last of {MOST_FAULTS} faults in a row; those steps were not stored"
            )
        self.observation = self._begin()
        return Outcome(np.empty((0, self.spec.row_width), np.float32))

    def _where(self) -> str:
        step = f"step {self.steps}" if self.lane is None else f"step {self.steps} of env {self.lane}"
        return f"{self.name} at {step} (seed {self.seed}, episode {self.episode})"
