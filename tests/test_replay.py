import numpy as np

from mbdp.replay import Replay, mixed_minibatches, pack, unpack
from mbdp.types import Spec, Transition

SPEC = Spec(2, 1)


def rows(*values: float) -> np.ndarray:
    return np.repeat(np.array(values, np.float32)[:, None], SPEC.row_width, axis=1)


def test_a_full_buffer_forgets_the_oldest_row_first():
    buffer = Replay(3, SPEC)
    buffer.add(rows(1, 2))
    buffer.add(rows(3, 4))
    assert buffer.newest(3)[:, 0].tolist() == [2, 3, 4]


def test_more_rows_than_fit_leave_the_last_ones():
    buffer = Replay(3, SPEC)
    buffer.add(rows(1, 2, 3, 4, 5))
    assert sorted(buffer.rows[:, 0].tolist()) == [3, 4, 5]


def test_adding_nothing_changes_nothing():
    buffer = Replay(3, SPEC)
    buffer.add(rows(1))
    buffer.add(rows())
    assert len(buffer) == 1
    assert buffer.newest(5)[:, 0].tolist() == [1]


def test_a_resized_buffer_keeps_the_newest_rows_in_order():
    buffer = Replay(4, SPEC)
    buffer.add(rows(1, 2, 3, 4, 5, 6))
    assert buffer.resized(2).newest(2)[:, 0].tolist() == [5, 6]
    assert buffer.resized(9).newest(9)[:, 0].tolist() == [3, 4, 5, 6]


def test_unpack_undoes_pack():
    rng = np.random.default_rng(0)
    shapes = ((5, 2), (5, 1), (5,), (5, 2), (5,))
    transition = Transition(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))
    for before, after in zip(transition, unpack(pack(transition), SPEC), strict=True):
        np.testing.assert_array_equal(before, after)


def test_minibatches_hold_the_asked_share_of_real_rows():
    d_env, d_model = Replay(5, SPEC), Replay(5, SPEC)
    d_env.add(rows(1, 1))
    d_model.add(rows(2, 2))
    drawn = mixed_minibatches(d_env, d_model, real_ratio=0.25, batch=8, count=3, rng=np.random.default_rng(0))
    assert drawn.shape == (3, 8, SPEC.row_width)
    assert (drawn[:, :, 0] == 1).sum(axis=1).tolist() == [2, 2, 2]


def test_minibatches_are_real_while_nothing_is_imagined():
    d_env = Replay(5, SPEC)
    d_env.add(rows(1))
    drawn = mixed_minibatches(d_env, Replay(5, SPEC), real_ratio=0.0, batch=4, count=1, rng=np.random.default_rng(0))
    assert (drawn == 1).all()


def test_recent_rows_are_of_the_newest_tenth():
    buffer = Replay(100, SPEC)
    buffer.add(rows(*range(130)))
    drawn = buffer.sample(4_000, np.random.default_rng(0), recent=0.5)[:, 0]
    assert sorted({*drawn[:2_000]}) == list(range(120, 130))
    assert sorted({*drawn[2_000:]}) == list(range(30, 130))
