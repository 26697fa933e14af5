import jax
import pytest

from mbdp import compiling


@pytest.fixture
def unknown_option(monkeypatch):
    monkeypatch.setattr(compiling, "EIGEN", {"xla_cpu_no_such_option": ""})
    compiling._can_choose.cache_clear()
    yield
    compiling._can_choose.cache_clear()


def add_one(x):
    return x + 1


def test_eigen_can_be_chosen_with_the_pinned_version():
    assert compiling._can_choose()


@pytest.mark.usefixtures("unknown_option")
def test_an_option_that_xla_does_not_know_is_left_out():
    assert not compiling._can_choose()
    assert compiling.compiled_with_eigen()(add_one)(1.0) == 2.0


def test_eigen_is_asked_for(monkeypatch):
    compiled_with = []
    real = jax.jit

    def watched(function, *, compiler_options=None, **options):
        compiled_with.append(compiler_options)
        return real(function, **options)

    assert compiling._can_choose()
    monkeypatch.setattr(jax, "jit", watched)
    add = compiling.compiled_with_eigen()(add_one)
    assert [add(1.0), add(2.0)] == [2.0, 3.0]
    assert compiled_with == [compiling.EIGEN]
