"""The words that all parts share."""

from typing import NamedTuple, TypeVar

import jax
import numpy as np

T = TypeVar("T")


class BadInput(ValueError):
    """Something that the user can put right: the command line prints it as one line and exits with code 2."""


class Transition(NamedTuple):
    """One step, or arrays of steps, in Gymnasium's words; actions in [-1, 1], `terminated` as 0.0 or 1.0."""

    observation: np.ndarray | jax.Array
    action: np.ndarray | jax.Array
    reward: np.ndarray | jax.Array
    next_observation: np.ndarray | jax.Array
    terminated: np.ndarray | jax.Array


class Spec(NamedTuple):
    """The sizes that every part needs to know of an environment."""

    observation_size: int
    action_size: int

    @property
    def row_width(self) -> int:
        """Numbers in one transition when it is stored as a row."""
        return 2 * self.observation_size + self.action_size + 2
