"""Types that all parts share."""

from collections.abc import Callable
from typing import Any, NamedTuple

Array = Any  # of NumPy on the host, of JAX in compiled functions
Termination = Callable[[Array, Array, Array], Array]  # (observation, action, next observation) -> True at the end
Reward = Callable[[Array, Array, Array], Array]  # the same -> the reward of each step


class BadInput(ValueError):
    """An error that the user can fix: the command line prints it as one line and exits with code 2."""


class Broken(BadInput):
    """A world or a policy that cannot go on; what was learned until here is sound enough to be kept."""


class Transition(NamedTuple):
    """One step, or arrays of steps, named as in Gymnasium; actions in [-1, 1], `terminated` as 0.0 or 1.0."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminated: Array


class Spec(NamedTuple):
    """The sizes that every part needs to know of an environment."""

    observation_size: int
    action_size: int

    @property
    def row_width(self) -> int:
        """Numbers in one transition when it is stored as a row."""
        return 2 * self.observation_size + self.action_size + 2
