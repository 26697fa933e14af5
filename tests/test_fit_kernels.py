"""Fits by the kernels for a processor, beside those of JAX."""

import jax
import numpy as np
import pytest

from mbdp.models import ensemble, fit, fit_on_cpu
from mbdp.models.ensemble import Ensemble
from mbdp.models.fit import Budget, create_optimiser, scaling_of
from mbdp.types import Spec

SPEC, MEMBERS, STEPS = Spec(5, 2), 3, 6


def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    made = rng.normal(1, 3, (700, SPEC.row_width)).astype(np.float32)
    made[:, -1] = rng.random(700) < 0.2
    return made


def model(*, depth: int = 2, width: int = 20, deterministic: bool = False) -> Ensemble:
    shape = {"members": MEMBERS, "depth": depth, "width": width, "deterministic": deterministic}
    fresh = ensemble.create(SPEC, **shape, key=jax.random.key(0))  # type: ignore[arg-type]
    rng = np.random.default_rng(1)  # biases and bounds that differ from member to member
    moved = jax.tree.map(lambda x: x + 0.1 * rng.normal(size=x.shape).astype(np.float32), fresh.members)
    return Ensemble(moved, scaling_of(rows(), SPEC))


def by_both(one: Ensemble, budget: Budget, data: np.ndarray):
    """What the kernels and JAX make of it, each with a second fit after the first."""
    rng, optimiser = np.random.default_rng(2), create_optimiser(one, budget.learning_rate)
    indices = rng.integers(0, len(data), (2, MEMBERS, (STEPS + 1) * budget.batch))
    found = []
    for way in (fit.descend, fit.descend_in_jax):
        members, state = way(one, optimiser, data, indices[0], STEPS, SPEC, budget)  # type: ignore[arg-type]
        again = Ensemble(members, one.scaling)
        found.append(way(again, state, data, indices[1], STEPS, SPEC, budget))  # type: ignore[arg-type]
    return found


def close(got, wanted) -> None:
    """But for one number in ten thousand: where a gradient is almost zero, rounding decides on its sign, and Adam's
    first steps are as long as those of any other.
    """
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-3)
        assert np.mean(~np.isclose(a, b, rtol=1e-3, atol=2e-5)) < 1e-4


@pytest.mark.parametrize(("batch", "depth", "width"), [(16, 1, 20), (50, 2, 7), (300, 4, 200)])
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("learn_termination", [False, True])
def test_fits_are_those_of_jax(learn_termination, deterministic, batch, depth, width):
    one = model(depth=depth, width=width, deterministic=deterministic)
    got, wanted = by_both(one, Budget(STEPS, STEPS, batch, 1e-3, learn_termination), rows())
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    close(got, wanted)
    moved = jax.tree.map(lambda a, b: float(abs(a - b).max()), got[0].network, one.members.network)
    assert min(jax.tree.leaves(moved)) > 1e-3  # every layer has learned: what was compared is not where it began


def test_variances_far_beyond_their_bounds_are_those_of_jax():
    one = model()
    far = jax.tree.map(lambda x: x.at[:, 6:12].add(np.linspace(-300, 300, 6)), one.members.network.biases[-1])
    one.members.network.biases[-1] = far
    got, wanted = by_both(one, Budget(STEPS, STEPS, 16, 1e-3, learn_termination=True), rows())
    close(got, wanted)


def test_nan_reaches_the_members():
    data = rows()
    data[:, 0] = np.nan
    (members, _), _ = by_both(model(), Budget(STEPS, STEPS, 16, 1e-3, learn_termination=False), data)
    assert np.isnan(members.network.weights[0]).any()


def test_a_fit_leaves_what_it_was_given_as_it_was():
    one = model()
    optimiser = create_optimiser(one, 1e-3)
    copies = jax.tree.map(lambda x: np.array(x, copy=True), (one, optimiser))
    indices = np.zeros((MEMBERS, STEPS * 16), np.int32)
    budget = Budget(STEPS, STEPS, 16, 1e-3, learn_termination=True)
    fit_on_cpu.descend(one, optimiser, rows(), indices, STEPS, SPEC, budget)
    for a, b in zip(jax.tree.leaves((one, optimiser)), jax.tree.leaves(copies), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    found = []
    for cores in (1, 3):
        monkeypatch.setattr("mbdp.parallel.cores", lambda cores=cores: cores)
        found.append(by_both(model(), Budget(STEPS, STEPS, 16, 1e-3, learn_termination=True), rows())[0])
    for a, b in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_array_equal(a, b)
