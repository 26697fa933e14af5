"""Every source of chance in a run, one per purpose: no other module turns the run's seed into a generator or a key."""

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

# JAX is imported for its keys only: processes that run a simulator need none.
if TYPE_CHECKING:
    import jax

Purpose = Literal[
    "agent",  # initial weights of policy and values
    "model",  # initial weights of the ensemble
    "new member",  # weights of a member that replaces a diverged one
    "episode",  # what the environment is reset with
    "hold-out",  # which real rows no member trains on
    "bootstrap",  # which of the others each member trains on
    "action",  # exploration, random steps included
    "fit",  # minibatches of the ensemble
    "start",  # real states that rollouts start from
    "rollout",  # imagined steps
    "minibatch",  # rows that updates use
    "update",  # noise of the policy and the model within updates
    "predict",  # stochastic actions that a caller asks for
    "theory",  # states and imagined returns behind `theory/*`, which learning never sees
]
_NUMBER = {purpose: number for number, purpose in enumerate(get_args(Purpose))}


def generator(seed: int, purpose: Purpose, step: int = 0, part: int = 0) -> np.random.Generator:
    """A NumPy generator; `step` is an env step or episode, `part` a piece of it."""
    # Always four words: NumPy fills shorter sequences up with zeros, so that [1] and [1, 0] would be one stream.
    return np.random.default_rng([seed, _NUMBER[purpose], step, part])


def key(seed: int, purpose: Purpose, step: int = 0, part: int = 0) -> "jax.Array":
    """A JAX key from the same stream."""
    import jax

    bits = generator(seed, purpose, step, part).integers(2**32, size=2, dtype=np.uint32)
    return jax.random.wrap_key_data(jax.numpy.asarray(bits))
