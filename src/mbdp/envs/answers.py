"""What an environment answered to `reset` and `step`, or one line on how that differs from Gymnasium's interface."""

import numbers
import re
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Space

STEP = "Gymnasium's step returns (observation, reward, terminated, truncated, info)"
RESET = "Gymnasium's reset takes seed= and options= and returns (observation, info)"
SHOWN = 80  # characters of what was returned instead
SPACES = ("observation space", "action space")


class Answer(NamedTuple):
    """One step."""

    observation: np.ndarray
    reward: np.float32
    terminated: bool
    truncated: bool


class Unexpected(Exception):
    """An answer that is not of Gymnasium's interface."""


def read_reset(result: Any, space: Box) -> np.ndarray:
    """The first observation of an episode."""
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
        raise Unexpected(f"reset returned {_shown(result)}: {RESET}")
    return _observation("reset", result[0], space)


def read_step(result: Any, space: Box) -> Answer:
    """An observation, a reward and two flags."""
    if not isinstance(result, tuple) or len(result) != 5:
        count = f"{len(result)} values" if isinstance(result, tuple | list) else _shown(result)
        raise Unexpected(f"step returned {count}: {STEP}")
    observation, reward, terminated, truncated, _ = result
    if not _is_one_number(reward):
        raise Unexpected(f"step returned the reward {_shown(reward)}: it must be one number")
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if not _is_one_number(flag):
            raise Unexpected(f"step returned {name} = {_shown(flag)}: it must be True or False")
    with np.errstate(over="ignore"):
        return Answer(_observation("step", observation, space), np.float32(reward), bool(terminated), bool(truncated))


def own_spaces(env: gymnasium.Env) -> tuple[Space, Space]:
    """The spaces as the environment itself, under all wrappers, declares them now."""
    return env.unwrapped.observation_space, env.unwrapped.action_space


def change_of(env: gymnasium.Env, spaces: tuple[Space, Space]) -> str:
    """How the environment's own spaces differ from what they were: a sentence, or nothing."""
    for what, before, now in zip(SPACES, spaces, own_spaces(env), strict=True):
        if before != now:
            return f"the {what} changed from {before} to {now}, which no policy can follow"
    return ""


def complaint(error: Exception, call: str, change: str) -> str:
    """What to say after an environment's name: a change of its spaces, if there is one, explains all the rest."""
    if change:
        return f": {change}"
    return f": {error}" if isinstance(error, Unexpected) else f" {explain(error, call)}"


def explain(error: Exception, call: str) -> str:
    """What an environment, or a wrapper around an old one, raised."""
    said = " ".join(str(error).split())
    if call == "step" and (found := re.search(r"values to unpack \(expected 5(, got \d)?\)", said)):
        return f"step returned {found[1][-1] if found[1] else 'more than 5'} values: {STEP}"
    if call == "reset" and re.search(
        r"values to unpack \(expected 2|unexpected keyword argument '(seed|options)'", said
    ):
        return f"reset is of an old interface ({said}): {RESET}"
    return f"raised {type(error).__name__}{' in reset' if call == 'reset' else ''}: {said}"


def _observation(call: str, returned: Any, space: Box) -> np.ndarray:
    found = returned if isinstance(returned, np.ndarray) else np.asarray(returned)
    if found.shape != space.shape or not np.can_cast(found.dtype, space.dtype, "same_kind"):
        what = f"{call} returned an observation of {found.dtype} and shape {found.shape}"
        raise Unexpected(f"{what}: the observation space is {space}")
    with np.errstate(over="ignore"):
        return np.array(found, np.float32)


def _is_one_number(value: Any) -> bool:
    """A number or flag of Python or NumPy, or an array of any package without an axis."""
    return isinstance(value, numbers.Real | np.bool_) or getattr(value, "shape", None) == ()


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
