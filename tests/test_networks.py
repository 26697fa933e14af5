import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdp.networks import MLP, fan_in_uniform, on_host


@pytest.mark.parametrize("shape", [(3,), (1, 3), (9, 3)])
@pytest.mark.parametrize("outputs", [1, 4, 7])
@pytest.mark.parametrize("activation", [jax.nn.relu, jnp.tanh])
def test_numpy_says_what_the_network_says(activation, outputs, shape):
    network = MLP([3, 600, 500, outputs], activation, fan_in_uniform, key=jax.random.key(0))
    rows = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    said = on_host(network, rows)
    assert said.shape == (*shape[:-1], outputs)
    np.testing.assert_allclose(said, network(jnp.asarray(rows)), atol=1e-6, rtol=1e-5)
