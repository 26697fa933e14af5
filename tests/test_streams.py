"""Every purpose, step and part has a stream of its own, and nothing but the seed decides it."""

import itertools
from typing import get_args

import jax
import numpy as np
import pytest

from mbdp.streams import Purpose, generator, key

PLACES = list(itertools.product((0, 1, 2, 17), get_args(Purpose), (0, 1, 2, 500), (0, 1, 2)))


def test_no_two_streams_are_the_same():
    first = {tuple(generator(*place).integers(2**63, size=2)) for place in PLACES}
    assert len(first) == len(PLACES)


def test_no_two_keys_are_the_same():
    some = PLACES[::7]
    assert len({tuple(np.asarray(jax.random.key_data(key(*place)))) for place in some}) == len(some)


@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_a_stream_can_be_had_again(purpose):
    first, again = (generator(3, purpose, 5).random(4) for _ in range(2))
    np.testing.assert_array_equal(first, again)
