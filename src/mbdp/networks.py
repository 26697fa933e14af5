"""A multi-layer perceptron on batches, as a value."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdp.policies import policy

NAMES: dict[Callable[..., jax.Array], str] = {jax.nn.relu: "relu", jnp.tanh: "tanh", jax.nn.silu: "silu"}


class MLP(eqx.Module):
    """Dense layers with an activation between them and, if asked for, layer normalisation before each activation.

    Inputs may be normalised by a mean and a deviation, which are data and never learned.
    """

    weights: list[jax.Array]
    biases: list[jax.Array]
    scales: list[jax.Array]
    offsets: list[jax.Array]
    input_mean: list[jax.Array]  # one array, or none
    input_std: list[jax.Array]
    activation: Callable[[jax.Array], jax.Array] = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Callable[[jax.Array], jax.Array],
        initialise: Callable[[jax.Array, tuple[int, int]], jax.Array],
        *,
        layer_norm: bool = False,
        normalised_inputs: bool = False,
        key: jax.Array,
    ):
        shapes = list(pairwise(sizes))
        keys = jax.random.split(key, len(shapes))
        self.weights = [initialise(k, shape) for k, shape in zip(keys, shapes, strict=True)]
        self.biases = [jnp.zeros(shape[1]) for shape in shapes]
        self.scales = [jnp.ones(size) for size in sizes[1:-1]] if layer_norm else []
        self.offsets = [jnp.zeros(size) for size in sizes[1:-1]] if layer_norm else []
        self.input_mean = [jnp.zeros(sizes[0])] if normalised_inputs else []
        self.input_std = [jnp.ones(sizes[0])] if normalised_inputs else []
        self.activation = activation

    def __call__(self, x: jax.Array) -> jax.Array:
        if self.input_mean:
            x = (x - jax.lax.stop_gradient(self.input_mean[0])) / jax.lax.stop_gradient(self.input_std[0])
        for i, (weight, bias) in enumerate(zip(self.weights[:-1], self.biases[:-1], strict=True)):
            x = x @ weight + bias
            if self.scales:
                x = _normalise(x) * self.scales[i] + self.offsets[i]
            x = self.activation(x)
        return x @ self.weights[-1] + self.biases[-1]


def with_input_scale(network: MLP, mean: jax.Array, std: jax.Array) -> MLP:
    """The network, if it normalises its inputs, with the statistics of the first of them: the rest is left as it is."""
    if not network.input_mean:
        return network
    size = len(mean)
    scale = [network.input_mean[0].at[:size].set(mean)], [network.input_std[0].at[:size].set(std)]
    return eqx.tree_at(lambda n: (n.input_mean, n.input_std), network, scale)


def plain_layers(network: MLP) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Weights and biases of a network without layer normalisation; that of its inputs is folded into the first."""
    weights, biases = ([np.asarray(x) for x in layers] for layers in (network.weights, network.biases))
    if network.input_mean:
        mean, std = (np.asarray(x[0], np.float64) for x in (network.input_mean, network.input_std))
        first = weights[0] / std[:, None]
        weights[0], biases[0] = first.astype(np.float32), (biases[0] - mean @ first).astype(np.float32)
    return weights, biases


def on_host(network: MLP, rows: np.ndarray) -> np.ndarray:
    """Output of a network without layer normalisation for a few rows, by NumPy: a compiled call costs more."""
    weights, biases = map(tuple, plain_layers(network))
    flat = np.atleast_2d(rows)
    said = policy.outputs(policy.layers(weights, biases), flat, NAMES[network.activation])[:, : len(biases[-1])]
    return said.reshape(*rows.shape[:-1], -1)


def each_on_its_share(networks: Sequence[MLP], x: jax.Array) -> jax.Array:
    """Outputs (rows,) of networks with one output, each network for its own share of the rows."""
    shares = jnp.array_split(x, len(networks))
    return jnp.concatenate([one(share)[..., 0] for one, share in zip(networks, shares, strict=True)])


def fan_in_uniform(key: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """Uniform in +-1/sqrt(fan_in), the usual start of an actor or critic."""
    bound = shape[0] ** -0.5
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)


def unit_columns(key: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """Normal, the weights of each unit scaled to a norm of 1, the start of TRPO's policies."""
    weights = jax.random.normal(key, shape)
    return weights / jnp.linalg.norm(weights, axis=0)


def truncated_normal(key: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """Truncated normal with standard deviation 1/(2 sqrt(fan_in)), the start of MBPO's dynamics models."""
    return jax.random.truncated_normal(key, -2.0, 2.0, shape) / (2 * shape[0] ** 0.5)


def _normalise(x: jax.Array) -> jax.Array:
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-6)
