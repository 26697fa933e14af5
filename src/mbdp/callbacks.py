"""Hooks into learning under the names that Stable-Baselines3 gives them."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from mbdp.algorithm import Progress
from mbdp.types import BadInput

WANTED = "callback must be an mbdp.Callback, a function of (agent, progress), or a list of them"


class Callback:
    """Subclass it, override what you need, and pass it to `learn`; `on_step` that returns False ends the learning.

    As in Stable-Baselines3, `model` is the agent, `num_timesteps` its env steps so far and `n_calls` the calls of
    `on_step`. `progress` is what the newest env step brought: its outcome and metrics. Each hook calls the one with an
    underscore before its name, which is the one that callbacks of Stable-Baselines3 override.
    """

    model: Any = None
    progress: Progress | None = None
    num_timesteps = 0
    n_calls = 0
    verbose = 0

    def __init__(self, verbose: int = 0) -> None:
        self.verbose = verbose

    def on_training_start(self) -> None:
        """Before the first env step of this call of `learn`."""
        self._on_training_start()

    def on_rollout_start(self) -> None:
        """Before the first env step, and before the next one after updates."""
        self._on_rollout_start()

    def on_step(self) -> bool | None:
        """After every env step and all work that belongs to it."""
        return self._on_step()

    def on_rollout_end(self) -> None:
        """After each env step that brought updates: those since the last one are what SB3 calls a rollout."""
        self._on_rollout_end()

    def on_training_end(self) -> None:
        """At the end, however it came, but not after an error."""
        self._on_training_end()

    def _on_training_start(self) -> None: ...

    def _on_rollout_start(self) -> None: ...

    def _on_step(self) -> bool | None:
        return True

    def _on_rollout_end(self) -> None: ...

    def _on_training_end(self) -> None: ...


class FunctionCallback(Callback):
    """A plain function of the agent and the progress of every env step, as a callback."""

    def __init__(self, function: Any):
        super().__init__()
        self.function = function

    def on_step(self) -> bool | None:
        return self.function(self.model, self.progress)


class CallbackList(Callback):
    """Several callbacks, told one after the other; each of them can end the learning."""

    def __init__(self, callbacks: Sequence[Callback]):
        super().__init__()
        self.callbacks = callbacks

    def on_training_start(self) -> None:
        for each in self.callbacks:
            each.model, each.num_timesteps = self.model, self.num_timesteps
            each.on_training_start()

    def on_rollout_start(self) -> None:
        for each in self.callbacks:
            each.on_rollout_start()

    def on_step(self) -> bool | None:
        assert self.progress is not None
        answers = [_goes_on(each, self.progress) for each in self.callbacks]  # all are told, whoever wants to end it
        return all(answers)

    def on_rollout_end(self) -> None:
        for each in self.callbacks:
            each.on_rollout_end()

    def on_training_end(self) -> None:
        for each in self.callbacks:
            each.on_training_end()


def as_callback(given: Any) -> Callback:
    """What `learn` was passed: a callback, a function, a list of them, or nothing."""
    if given is None:
        return Callback()
    if isinstance(given, list | tuple):
        return CallbackList([as_callback(each) for each in given])
    if isinstance(given, Callback):
        return given
    _check_function(given)
    return FunctionCallback(given)


def wants_more(callback: Callback, progress: Progress, until: int) -> bool:
    """Tell a callback of an env step; False if it wants the learning to end."""
    if not _goes_on(callback, progress):
        return False
    if any(name.startswith("train/") for name in progress.metrics):
        callback.on_rollout_end()
        if progress.step < until:
            callback.on_rollout_start()
    return True


def _goes_on(callback: Callback, progress: Progress) -> bool:
    callback.progress, callback.num_timesteps = progress, progress.step
    callback.n_calls += 1
    answer = callback.on_step()
    return not isinstance(answer, bool | np.bool_) or bool(answer)  # None, of a hook that returns nothing, goes on


def _check_function(given: Any) -> None:
    """Refuse what cannot be called with the agent and the progress."""
    if isinstance(given, type):
        raise BadInput(f"{WANTED}; it is the class {given.__name__}, not an object of it")
    kind = f"{type(given).__module__}.{type(given).__name__}"
    if hasattr(given, "on_step"):
        raise BadInput(f"{WANTED}; it is a {kind}: derive it from mbdp.Callback, whose hooks have the same names")
    if not callable(given):
        raise BadInput(f"{WANTED}; it is {given!r:.60}")
    try:
        inspect.signature(given).bind(None, None)
    except TypeError:
        raise BadInput(f"{WANTED}; {getattr(given, '__name__', kind)} does not take two arguments") from None
    except ValueError:  # written in C, perhaps: it does not say what it takes
        return
