"""How fast this machine multiplies matrices, by whichever library does it best: the limit of every kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
from benchmarks.speed.measure import Way, in_turn, quartiles

SIZE, TIMES = 1024, 20  # a fifth of a second: what comes first after a rest is slower than what follows
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


def by_size(rounds: int) -> dict[str, dict[str, list[float]]]:
    """Quartiles of GFLOP per second of each library, for the products of a policy's update and for large ones."""
    return {f"{size} x {size} x {size}": _of_size(size, rounds) for size in (256, SIZE)}


def _of_size(size: int, rounds: int) -> dict[str, list[float]]:
    matrix = np.random.default_rng(0).normal(0, size**-0.5, (size, size)).astype(np.float32)
    of_torch, of_jax, times = torch.from_numpy(matrix), jnp.asarray(matrix), TIMES * (SIZE // size) ** 3
    chain = jax.jit(lambda x: jax.lax.fori_loop(0, times, lambda _, y: y @ x, x))  # as in a scan over updates
    ways = {
        "numpy": Way(lambda: [matrix @ matrix for _ in range(times)], times),
        "torch": Way(lambda: [of_torch @ of_torch for _ in range(times)], times),
        "XLA": Way(lambda: chain(of_jax).block_until_ready(), times),
    }
    return {name: quartiles(2e-9 * size**3 / np.array(found)) for name, found in in_turn(ways, rounds).items()}


def gflops(seconds: dict[str, list[float]]) -> float:
    """Of the fastest library, at its median."""
    return FLOPS / min(float(np.median(seconds[name])) for name in ways()) / 1e9
