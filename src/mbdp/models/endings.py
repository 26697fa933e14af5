"""Precision and recall of the learned termination, on real steps that no member was trained on."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from mbdp.models.ensemble import Ensemble
from mbdp.models.fit import HELD_OUT_ENOUGH, split
from mbdp.replay import Replay, unpack
from mbdp.types import Spec


def describe_endings(model: Ensemble, d_env: Replay, *, seed: int) -> dict[str, float]:
    """What to log of the mean probability that these members of an ensemble give to the end, counted from 1/2 on.

    Precision is the share of ends that were real among those said, recall that of ends that were said among the real
    ones; each is NaN where it has none to count.
    """
    chosen = split(len(d_env), 1, seed)[1][-HELD_OUT_ENOUGH:]
    rows = np.zeros((HELD_OUT_ENOUGH, d_env.spec.row_width), np.float32)  # of one size, so that nothing recompiles
    rows[: len(chosen)] = d_env.rows[chosen]
    said = np.asarray(_probability(model, rows, d_env.spec))[: len(chosen)] >= 0.5
    was = np.asarray(unpack(rows, d_env.spec).terminated)[: len(chosen)] > 0
    right = float((said & was).sum())
    return {
        "model/termination_precision": right / said.sum() if said.any() else np.nan,
        "model/termination_recall": right / was.sum() if was.any() else np.nan,
        "model/termination_held_out": float(was.sum()),
    }


@partial(jax.jit, static_argnames="spec")
def _probability(model: Ensemble, rows: jax.Array, spec: Spec) -> jax.Array:
    """Mean over the members, for each row."""
    steps = unpack(rows, spec)
    inputs = (jnp.broadcast_to(x, (len(model), *x.shape)) for x in (steps.observation, steps.action))
    return jnp.mean(jax.nn.sigmoid(model(*inputs).terminated_logit), axis=0)
