"""Acting in the real environment, one step at a time, in a way that can be repeated."""

from typing import NamedTuple

import gymnasium
import numpy as np

from mbdp.envs.tasks import spec_of
from mbdp.replay import pack
from mbdp.types import BadInput, Transition

MOST_FAULTS = 10  # non-finite numbers in a row of episodes before the run gives up


class Outcome(NamedTuple):
    """What one step brought: rows for `d_env`, one or none, and, where the episode ended, its return and length."""

    rows: np.ndarray
    episode_return: float | None = None
    episode_length: int | None = None


class World:
    """One environment being acted in; episode k starts from a seed derived from (seed, k), so any can be repeated."""

    def __init__(self, env: gymnasium.Env, seed: int):
        self.env, self.seed = env, seed
        self.spec = spec_of(env)
        self.name = env.spec.id if env.spec else type(env.unwrapped).__name__
        assert isinstance(env.action_space, gymnasium.spaces.Box)
        self.low, self.high = env.action_space.low, env.action_space.high
        self.steps = self.faults = self.faults_in_a_row = 0
        self.episode = -1
        self.observation = self._begin()

    def step(self, action: np.ndarray) -> Outcome:
        """Take an action in [-1, 1]; a step with a number that is not finite ends the episode and brings no row."""
        self.steps += 1
        try:
            following, reward, terminated, truncated, _ = self.env.step(self.to_env(action))
        except Exception as error:
            raise BadInput(f"{self._where()} raised {type(error).__name__}: {error}") from error
        following, reward = np.array(following, np.float32), np.float32(reward)
        if not (np.isfinite(following).all() and np.isfinite(reward)):
            return self._fault()
        self.faults_in_a_row = 0
        before = self.observation
        self.observation = following
        self.episode_return += float(reward)
        self.episode_length += 1
        action = np.asarray(action, np.float32)
        row = pack(Transition(before, action, reward, following, np.float32(terminated)))
        if not (terminated or truncated):
            return Outcome(row[None])
        outcome = Outcome(row[None], self.episode_return, self.episode_length)
        self.observation = self._begin()
        return outcome

    def to_env(self, action: np.ndarray) -> np.ndarray:
        """Actions in [-1, 1], in the environment's units."""
        scaled = self.low + (np.asarray(action, np.float32) + 1) * 0.5 * (self.high - self.low)
        return np.asarray(np.clip(scaled, self.low, self.high), self.low.dtype)

    def bookmark(self) -> dict[str, int]:
        """The place in the world: with the actions of the current episode it is enough to come back to it."""
        names = ("steps", "faults", "faults_in_a_row", "episode", "episode_length")
        return {name: getattr(self, name) for name in names}

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

    def _begin(self) -> np.ndarray:
        self.episode += 1
        self.episode_return, self.episode_length = 0.0, 0
        seed = int(np.random.SeedSequence([self.seed, self.episode]).generate_state(1)[0])
        try:
            observation, _ = self.env.reset(seed=seed)
        except Exception as error:
            raise BadInput(f"{self._where()} raised {type(error).__name__} in reset: {error}") from error
        observation = np.array(observation, np.float32)
        if observation.shape != (self.spec.observation_size,) or not np.isfinite(observation).all():
            raise BadInput(
                f"{self._where()}: reset gave {observation}, not {self.spec.observation_size} finite numbers"
            )
        return observation

    def _fault(self) -> Outcome:
        self.faults += 1
        self.faults_in_a_row += 1
        if self.faults_in_a_row >= MOST_FAULTS:
            raise BadInput(
                f"{self._where()} gave NaN or infinity {MOST_FAULTS} times in a row; those steps were not stored"
            )
        self.observation = self._begin()
        return Outcome(np.empty((0, self.spec.row_width), np.float32))

    def _where(self) -> str:
        return f"{self.name} at step {self.steps} (seed {self.seed}, episode {self.episode})"
