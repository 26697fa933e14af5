"""What the kernels for a processor compute, beside NumPy's and JAX's answer to the same question."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from mbdp import parallel
from mbdp.agents import sac, sac_on_cpu
from mbdp.kernels import denormals, elementary, layout, products, threads
from mbdp.kernels.compiling import inlined, keep_apart
from mbdp.kernels.denormals import flush_denormals, restore
from mbdp.types import Spec

SPEC = Spec(5, 2)
SETTINGS: dict[str, Any] = {
    "learning_rate": 1e-3,
    "discount": 0.9,
    "tau": 0.1,
    "target_entropy": -1.0,
    "new_share": 0.25,
}


@inlined
def products_of_all_kinds(a, b, c, bias, work, out):
    rows, depth, columns = a.shape[0], a.shape[1], b.shape[1]
    packed, strips = products.address(work[0]), products.address(work[1])
    products.pack(products.address(b), columns, depth, columns, packed)
    at = products.address(out[0])
    tile, step = products.TILE * depth, products.NEXT
    added = products.address(bias)
    products.multiply(products.address(a), tile, depth, step, rows, depth, packed, added, columns, at, columns)
    products.pack_transposed(products.address(c), depth, depth, columns, packed)
    at = products.address(out[1])
    products.multiply(products.address(a), tile, depth, step, rows, depth, packed, 0 * added, columns, at, columns)
    products.pack(products.address(out[0]), columns, rows, columns, packed)
    at = products.address(out[2])
    products.copy_strips(products.address(a), depth, depth, rows, strips)
    tile, step = products.TILE * rows, products.ACROSS
    for begin in (0 * added, products.ADD):
        products.multiply(strips, tile, products.NEXT, step, depth, rows, packed, begin, columns, at, columns)


@pytest.mark.parametrize("columns", [16, 32, 48, 64, 208])
def test_products_are_numpys(columns):
    rng = np.random.default_rng(0)
    a, b, c, bias = (
        rng.normal(size=s).astype(np.float32) for s in ((24, 32), (32, columns), (columns, 32), (columns,))
    )
    out = np.full((3, 32, columns), np.nan, np.float32)
    products_of_all_kinds(a, b, c, bias, np.zeros((2, 300 * 300), np.float32), out)
    first = a @ b + bias
    np.testing.assert_allclose(out[0, :24], first, atol=2e-5)
    np.testing.assert_allclose(out[1, :24], a @ c.T, atol=2e-5)
    np.testing.assert_allclose(out[2], 2 * a.T @ first, rtol=1e-4, atol=2e-3)


@inlined
def learn(a, slope, begin, numbers, work):
    rows, columns = slope.shape
    packed, strips, place = products.address(work[0]), products.address(work[1]), products.address(numbers)
    products.pack(products.address(slope), columns, rows, columns, packed)
    size, rate, of_square, decay = 4 * a.shape[1] * columns, np.float32(0.1), np.float32(50), np.float32(0.01)
    begins = products.address(begin) if len(begin) else 0
    products.copy_strips(products.address(a), a.shape[1], a.shape[1], rows, strips)
    products.learn_from_strips(
        strips, a.shape[1], rows, packed, columns, begins, place, columns, size, 2 * size, rate, of_square, decay
    )


@pytest.mark.parametrize("columns", [16, 32, 48, 64, 208])
@pytest.mark.parametrize("adds", [False, True])
def test_a_step_along_a_product_is_adams(adds, columns):
    rng = np.random.default_rng(0)
    a, slope, begin = (rng.normal(size=s).astype(np.float32) for s in ((20, 24), (20, columns), (24, columns)))
    numbers, mean, square = state = abs(rng.normal(size=(3, 24, columns))).astype(np.float32)
    gradient = a.T @ slope + adds * begin + 0.01 * numbers
    mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
    wanted = np.stack([numbers - 0.1 * mean / (np.sqrt(50 * square) + 1e-8), mean, square])
    learn(a, slope, begin if adds else begin[:0], state, np.zeros((2, 300 * 300), np.float32))
    np.testing.assert_allclose(state, wanted, rtol=1e-4, atol=2e-5)


NARROWER = """
import numba
from llvmlite import binding
numba.njit(lambda x: x)(1)  # now Numba knows the real processor
real, binding.get_host_cpu_features = binding.get_host_cpu_features, lambda: {features}
from mbdp.kernels import products
binding.get_host_cpu_features = real
from tests import test_kernels
for columns in (16, 64, 208):
    test_kernels.test_products_are_numpys(columns)
    test_kernels.test_a_step_along_a_product_is_adams(True, columns)
print(products.LANES)
"""


@pytest.mark.parametrize(("features", "lanes"), [({"avx2": True}, 8), ({}, 4)])
def test_products_in_narrower_registers_are_numpys_too(features, lanes, tmp_path):
    code, root = NARROWER.replace("{features}", repr(features)), str(Path(__file__).parent.parent)
    surroundings = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": root}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
    assert found.stdout == f"{lanes}\n"


@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_elementary_functions_are_exact_to_a_few_bits(name):
    function = getattr(elementary, name)
    x = np.linspace(-80, 80, 4001).astype(np.float32)
    np.testing.assert_allclose(
        [function(one) for one in x], getattr(np, name)(x.astype(np.float64)), rtol=5e-7, atol=1e-7
    )
    assert np.isnan(function(np.float32(np.nan)))


def agent(*, layer_norm: bool, depth: int = 2) -> sac.Agent:
    settings = {"learning_rate": 1e-3, "temperature": 0.3, "key": jax.random.key(0)}
    fresh = sac.create(SPEC, width=20, depth=depth, layer_norm=layer_norm, **settings)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)  # biases and scales that are not what they begin with
    networks = fresh.actor, fresh.critic, fresh.target_critic
    moved = jax.tree.map(lambda x: x + 0.1 * rng.normal(size=x.shape).astype(x.dtype), networks)
    return eqx.tree_at(lambda a: (a.actor, a.critic, a.target_critic), fresh, moved)


def minibatches(updates: int, batch: int) -> np.ndarray:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(updates, batch, SPEC.row_width)).astype(np.float32)
    rows[..., -1] = rng.random((updates, batch)) < 0.2
    return rows


def close(one: sac.Agent, other: sac.Agent) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize(("batch", "depth"), [(16, 2), (50, 1), (256, 3)])
@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("actor_every", [1, 2])
def test_updates_are_those_of_jax(actor_every, layer_norm, batch, depth):
    before, rows = agent(layer_norm=layer_norm, depth=depth), minibatches(4, batch)
    noise = sac.noise_of(jax.random.key(3), rows, actor_every, SPEC)
    settings = SETTINGS | {"spec": SPEC, "actor_every": actor_every}
    wanted, told = sac.update_in_jax(before, rows, noise, **settings)
    got, own = sac_on_cpu.update(before, rows, noise, **settings)
    close(got, wanted)
    assert own.keys() == told.keys()
    for name in told:
        np.testing.assert_allclose(own[name], told[name], rtol=1e-3, atol=1e-5)


def with_critics(first: float, second: float | None) -> sac.Agent:
    """Critics that say so much more than usual, or, without a second, twice the first one."""
    one = agent(layer_norm=True)
    critic, other = one.critic[0], one.critic[0 if second is None else 1]
    raised = (
        eqx.tree_at(lambda network: network.biases[-1], network, network.biases[-1] + by)
        for network, by in ((critic, first), (other, first if second is None else second))
    )
    return eqx.tree_at(lambda a: a.critic, one, tuple(raised))


@pytest.mark.parametrize("actor_every", [1, 2])
@pytest.mark.parametrize("critics", [(0.0, 100.0), (100.0, 0.0), (0.0, None)], ids=["first", "second", "both"])
def test_the_actor_learns_from_the_lower_critic_of_each_row_or_from_both(critics, actor_every):
    before, rows = with_critics(*critics), minibatches(2, 50)
    noise = sac.noise_of(jax.random.key(3), rows, actor_every, SPEC)
    settings = SETTINGS | {"spec": SPEC, "actor_every": actor_every}
    close(sac_on_cpu.update(before, rows, noise, **settings)[0], sac.update_in_jax(before, rows, noise, **settings)[0])


def test_nan_in_a_critic_reaches_the_actor():
    rows, settings = minibatches(1, 16), SETTINGS | {"spec": SPEC, "actor_every": 1}
    before = with_critics(np.nan, 0.0)
    after, _ = sac_on_cpu.update(before, rows, sac.noise_of(jax.random.key(4), rows, 1, SPEC), **settings)
    assert np.isnan(after.actor.biases[-1]).any()


@inlined
def wait_for(gate, parts):
    threads.wait(gate, parts)


def trained(cores: int, monkeypatch: pytest.MonkeyPatch) -> sac.Agent:
    monkeypatch.setattr("mbdp.kernels.threads.cores", lambda: cores)
    rows, settings = minibatches(8, 50), SETTINGS | {"spec": SPEC, "actor_every": 2}
    noise = sac.noise_of(jax.random.key(3), rows, 2, SPEC)
    return sac_on_cpu.update(agent(layer_norm=True), rows, noise, **settings)[0]


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    one, two = trained(1, monkeypatch), trained(2, monkeypatch)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("failing", [0, 1])
def test_a_part_that_fails_ends_the_other_one_and_is_told(failing, monkeypatch):
    monkeypatch.setattr("mbdp.kernels.threads.cores", lambda: 2)

    def function(first, last, parts, gate):
        if first == failing:
            raise ValueError("no")
        wait_for(gate, parts)

    with pytest.raises(ValueError, match="no"):
        threads.in_two_parts(function)


def test_an_agent_in_other_arrays_goes_on_to_the_same_bits(monkeypatch):
    views = trained(parallel.cores(), monkeypatch)
    copies = jax.tree.map(lambda x: jax.numpy.array(x, copy=True), views)
    rows, settings = minibatches(2, 50), SETTINGS | {"spec": SPEC, "actor_every": 1}
    noise = sac.noise_of(jax.random.key(4), rows, 1, SPEC)
    first, second = (sac_on_cpu.update(one, rows, noise, **settings)[0] for one in (views, copies))
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_update_leaves_the_agent_that_it_was_given_as_it_was(monkeypatch):
    before = trained(1, monkeypatch)
    copies = jax.tree.map(np.array, before)
    rows, settings = minibatches(2, 50), SETTINGS | {"spec": SPEC, "actor_every": 1}
    sac_on_cpu.update(before, rows, sac.noise_of(jax.random.key(4), rows, 1, SPEC), **settings)
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(copies), strict=True):
        np.testing.assert_array_equal(a, b)


def test_nan_reaches_the_weights():
    rows, settings = minibatches(1, 16), SETTINGS | {"spec": SPEC, "actor_every": 1}
    rows[0, 3, SPEC.observation_size + SPEC.action_size] = np.nan  # a reward
    after, told = sac_on_cpu.update(
        agent(layer_norm=False), rows, sac.noise_of(jax.random.key(4), rows, 1, SPEC), **settings
    )
    assert np.isnan(told["critic_loss"])
    assert np.isnan(after.critic[0].biases[-1]).all()


def test_a_network_comes_back_from_its_row_as_it_was():
    network = agent(layer_norm=True).critic[0]
    row = np.full(layout.row_size(layout.shape_of(network)), np.nan, np.float32)
    layout.fill(row, network)
    assert np.isfinite(row).all()
    for a, b in zip(jax.tree.leaves(layout.reader(network)(row)), jax.tree.leaves(network), strict=True):
        np.testing.assert_array_equal(a, b)


@inlined
def halve(numbers):
    keep_apart()
    numbers *= np.float32(0.5)


@inlined
def halve_twice(flushed, plain):
    mode = flush_denormals()
    halve(flushed)
    restore(mode)
    halve(plain)


def test_denormals_are_flushed_on_x86_while_asked_for_and_not_after():
    flushed, plain = (np.full(40, 1.2e-38, np.float32) for _ in range(2))
    halve_twice(flushed, plain)
    assert (flushed.max() == 0) == denormals._X86
    assert plain.min() > 0


def test_without_a_place_to_write_to_nothing_is_kept_and_all_works(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    code = "from mbdp.kernels import compiling as c; assert c._folder() is None; print(c.compiled(lambda x: x + 1)(2))"
    surroundings = {"XDG_CACHE_HOME": str(file), "PATH": ""}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
    assert found.stdout == "3\n"
