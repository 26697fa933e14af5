"""Ring buffers of transitions, kept as rows of one array, and minibatches mixed from two of them."""

from typing import Any

import numpy as np

from mbdp.types import Spec, Transition

NEWEST_PART = 10  # rows are recent in the newest tenth of a buffer


class Replay:
    """The newest `capacity` transitions, first in, first out: the one thing in this library that mutates."""

    def __init__(self, capacity: int, spec: Spec):
        self.spec = spec
        self.rows = np.zeros((capacity, spec.row_width), np.float32)
        self.size = 0
        self.cursor = 0

    def __len__(self) -> int:
        return self.size

    @property
    def capacity(self) -> int:
        return len(self.rows)

    def add(self, rows: np.ndarray) -> None:
        """Append rows, overwriting the oldest."""
        rows = rows[-self.capacity :]
        first = min(len(rows), self.capacity - self.cursor)
        self.rows[self.cursor : self.cursor + first] = rows[:first]
        self.rows[: len(rows) - first] = rows[first:]
        self.cursor = (self.cursor + len(rows)) % self.capacity
        self.size = min(self.size + len(rows), self.capacity)

    def sample(self, count: int, rng: np.random.Generator, *, recent: float = 0.0) -> np.ndarray:
        """Rows drawn uniformly with replacement; a share `recent` of them from the newest tenth only."""
        chosen = rng.integers(self.size, size=count)
        newer = round(recent * count)
        chosen[:newer] = (self.cursor - 1 - chosen[:newer] // NEWEST_PART) % self.capacity
        return self.rows[chosen]

    def newest(self, count: int) -> np.ndarray:
        """The last `count` rows, oldest of them first."""
        return self.rows[np.arange(self.cursor - min(count, self.size), self.cursor) % self.capacity]

    def resized(self, capacity: int) -> "Replay":
        """A buffer of another capacity with the newest rows that fit."""
        if capacity == self.capacity:
            return self
        other = Replay(capacity, self.spec)
        other.add(self.newest(capacity))
        return other


def pack(transition: Transition) -> Any:
    """A transition as rows: observation, action, reward, next observation, terminated."""
    xp: Any = np
    if not isinstance(transition.observation, np.ndarray):
        import jax.numpy as xp  # here, because processes that run a simulator need no JAX
    columns = [xp.asarray(x)[..., None] if i in (2, 4) else x for i, x in enumerate(transition)]
    return xp.concatenate(columns, axis=-1, dtype=np.float32)


def unpack(rows: Any, spec: Spec) -> Transition:
    """The transition that rows were packed from."""
    o, a = spec
    return Transition(
        observation=rows[..., :o],
        action=rows[..., o : o + a],
        reward=rows[..., o + a],
        next_observation=rows[..., o + a + 1 : -1],
        terminated=rows[..., -1],
    )


def mixed_minibatches(
    d_env: Replay, d_model: Replay, *, real_ratio: float, batch: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """`count` minibatches whose first `real_ratio` of rows is real and whose rest is imagined: (count, batch, row).

    With nothing imagined yet, all rows are real.
    """
    real = batch if not len(d_model) else round(real_ratio * batch)
    width = d_env.spec.row_width
    rows = np.empty((count, batch, width), np.float32)
    rows[:, :real] = d_env.sample(count * real, rng).reshape(count, real, width)
    if real < batch:
        rows[:, real:] = d_model.sample(count * (batch - real), rng).reshape(count, batch - real, width)
    return rows
