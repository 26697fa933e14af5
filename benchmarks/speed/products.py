"""How fast this machine multiplies matrices, by whichever library does it best: the limit of every kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
from benchmarks.speed.measure import Way

SIZE, TIMES = 1024, 8
FLOPS = 2 * SIZE**3


def ways() -> dict[str, Way]:
    """Products of square matrices that fit into the cache, with all cores."""
    matrix = np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype(np.float32)
    of_torch, of_jax = torch.from_numpy(matrix), jnp.asarray(matrix)
    product = jax.jit(jnp.matmul)
    return {
        "products numpy": Way(lambda: [matrix @ matrix for _ in range(TIMES)], TIMES),
        "products torch": Way(lambda: [of_torch @ of_torch for _ in range(TIMES)], TIMES),
        "products jax": Way(lambda: [product(of_jax, of_jax).block_until_ready() for _ in range(TIMES)], TIMES),
    }


def gflops(seconds: dict[str, list[float]]) -> float:
    """Of the fastest library, at its median."""
    return FLOPS / min(float(np.median(seconds[name])) for name in ways()) / 1e9
