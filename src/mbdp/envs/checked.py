"""An environment in which a policy is judged or shown, where no `World` reads what it answers."""

from typing import Any, NamedTuple

import gymnasium
from gymnasium.spaces import Box, Space

from mbdp.envs.answers import change_of, complaint, own_spaces, read_reset, read_step
from mbdp.types import BadInput, Broken


class Promise(NamedTuple):
    """What an environment said of itself when it was made: its flat observations, and its own spaces."""

    observation: Box
    own: tuple[Space, Space]


def promise_of(env: gymnasium.Env) -> Promise:
    """What the environment says of itself now."""
    assert isinstance(env.observation_space, Box)
    return Promise(env.observation_space, own_spaces(env))


class Checked(gymnasium.Wrapper):
    """The environment as it is, but an answer that it did not promise is one line, as in training."""

    def __init__(self, env: gymnasium.Env, promise: Promise | None = None) -> None:
        super().__init__(env)
        self.promise = promise or promise_of(env)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode, in the spaces that were promised."""
        try:
            answer = self.env.reset(seed=seed, options=options)
            read_reset(answer, self.promise.observation)
        except Exception as error:
            raise self._broken(error, "reset", f"reset with seed {seed}") from error
        if change := change_of(self.env, self.promise.own):
            raise Broken(f"{self._name()} at reset with seed {seed}: {change}")
        self.steps = 0
        return answer

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step, whose numbers are passed on as they are."""
        self.steps += 1
        try:
            answer = self.env.step(action)
            read_step(answer, self.promise.observation)
        except Exception as error:
            raise self._broken(error, "step", f"step {self.steps} of an episode") from error
        return answer

    def _broken(self, error: Exception, call: str, where: str) -> BadInput:
        if isinstance(error, BadInput):  # a wrapper of ours has said it
            return error
        return Broken(f"{self._name()} at {where}{complaint(error, call, change_of(self.env, self.promise.own))}")

    def _name(self) -> str:
        return self.env.spec.id if self.env.spec else type(self.env.unwrapped).__name__
