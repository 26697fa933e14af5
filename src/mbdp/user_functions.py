"""Functions of (observation, action, next observation) by which a user knows the world: they are checked all along."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdp.replay import Replay, unpack
from mbdp.types import BadInput, Broken, Reward, Spec, Termination

MOST_ERROR = 0.1  # of a reward, in units of the real rewards' deviation, beyond which learning with it makes no sense
NOTED_ERROR = 0.01  # in the same units, beyond which it is told
FEW = 500  # steps; an error over fewer says little


def in_env_units(function: Any, low: np.ndarray, high: np.ndarray) -> Any:
    """The function of actions in [-1, 1] that a function of actions in the environment's units is."""
    if (low == -1).all() and (high == 1).all():
        return function
    return InEnvUnits(function, tuple(map(float, low)), tuple(map(float, high)))


@dataclass(frozen=True)
class InEnvUnits:
    """A value, so that one function with one pair of bounds is compiled once."""

    function: Any
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __call__(self, observation: Any, action: Any, following: Any) -> Any:
        low, high = jnp.array(self.low), jnp.array(self.high)
        return self.function(observation, low + (action + 1) / 2 * (high - low), following)


def check_function(name: str, function: Any, spec: Spec) -> None:
    """Raise BadInput unless it is a JAX function that gives one number for each row of a batch."""
    if not callable(function):
        raise BadInput(f"{name} must be a function of (observation, action, next observation); it is {function!r:.60}")
    rows = 3
    observation, action = (jax.ShapeDtypeStruct((rows, size), jnp.float32) for size in spec)
    try:
        shape = jax.eval_shape(function, observation, action, observation).shape
    except Exception as error:  # anyone's code
        said = str(error).strip().split("\n")[0]
        what = "on JAX arrays of many rows, observation[..., 0] being the first number of each"
        raise BadInput(f"{name} must be a function {what}; it raised {type(error).__name__}: {said:.120}") from error
    if shape not in ((rows,), ()):
        raise BadInput(f"{name} must give one number per row: for {rows} rows it gives the shape {shape}")


def reward_error(reward: Reward, d_env: Replay) -> float:
    """The mean error of a reward function on real steps, in units of their deviation; Broken if it is too large."""
    said, was = said_of(reward, d_env), np.asarray(unpack(d_env.rows[: len(d_env)], d_env.spec).reward)
    unit = max(float(was.std()), 1e-3 * float(np.abs(was).mean()), 1e-6)
    wrong = np.abs(said - was)
    error = float(wrong.mean()) / unit
    if not error <= MOST_ERROR and len(was) >= FEW:
        worst = int(np.argmax(np.nan_to_num(wrong, nan=np.inf)))
        raise Broken(
            f"the reward function is wrong by {error:.2f} deviations of the {len(was)} real rewards (at most "
            f"{MOST_ERROR:g} is accepted; at worst it says {said[worst]:.4g} where the environment gave "
            f"{was[worst]:.4g}): mend it, or leave reward= out"
        )
    return error


def said_of(function: Termination | Reward, d_env: Replay) -> np.ndarray:
    """What a function says of every real step."""
    # Always of all of the buffer's capacity, so that nothing recompiles as it fills.
    return np.asarray(_apply(d_env.rows, function=function, spec=d_env.spec))[: len(d_env)]


@partial(jax.jit, static_argnames=("function", "spec"))
def _apply(rows: jax.Array, *, function: Termination | Reward, spec: Any) -> jax.Array:
    steps = unpack(rows, spec)
    said = function(steps.observation, steps.action, steps.next_observation)
    return jnp.broadcast_to(said, rows.shape[:-1])
