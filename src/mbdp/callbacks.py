"""Hooks into learning under the names that Stable-Baselines3 gives them."""

from typing import Any

from mbdp.algorithm import Progress


class Callback:
    """Subclass it, override what you need, and pass it to `learn`; `on_step` that returns False ends the learning.

    As in Stable-Baselines3, `model` is the agent, `num_timesteps` its env steps so far and `n_calls` the calls of
    `on_step`. `progress` is what the newest env step brought: its outcome and metrics.
    """

    model: Any = None
    progress: Progress | None = None
    num_timesteps = 0
    n_calls = 0

    def on_training_start(self) -> None:
        """Before the first env step of this call of `learn`."""

    def on_step(self) -> bool | None:
        """After every env step and all work that belongs to it."""
        return True

    def on_rollout_end(self) -> None:
        """After each env step that brought updates: those since the last one are what SB3 calls a rollout."""

    def on_training_end(self) -> None:
        """At the end, however it came, but not after an error."""


class FunctionCallback(Callback):
    """A plain function of the agent and the progress of every env step, as a callback."""

    def __init__(self, function: Any):
        self.function = function

    def on_step(self) -> bool | None:
        return self.function(self.model, self.progress)


def as_callback(given: Any) -> Callback:
    """What `learn` was passed: a callback, a function, or nothing."""
    if given is None:
        return Callback()
    return given if isinstance(given, Callback) else FunctionCallback(given)


def wants_more(callback: Callback, progress: Progress) -> bool:
    """Tell a callback of an env step; False if it wants the learning to end."""
    callback.progress, callback.num_timesteps = progress, progress.step
    callback.n_calls += 1
    if any(name.startswith("train/") for name in progress.metrics):
        callback.on_rollout_end()
    return callback.on_step() is not False
