import jax
import numpy as np
import pytest

from mbdp.models import ensemble
from mbdp.models.ensemble import Ensemble
from mbdp.models.fit import Score, _drawn, create_optimiser, fit, scaling_of, score, split
from mbdp.plans import Budget
from mbdp.replay import Replay
from tests.conftest import compilations, linear_system

FIXED = Budget(steps=100, first_steps=400, batch=64, learning_rate=3e-3, learn_termination=False)
EARLY = FIXED._replace(steps=0)


def fitted(data: Replay, budget: Budget, seed: int = 0) -> tuple[Ensemble, Score]:
    model = ensemble.create(data.spec, members=3, width=32, depth=2, key=jax.random.key(seed))
    optimiser = create_optimiser(model, budget.learning_rate)
    model, _, scores = fit(model, optimiser, data, budget, seed=seed, rng=np.random.default_rng(seed))
    return model, scores


def test_a_fixed_budget_learns_a_linear_system():
    _, scores = fitted(linear_system(500), FIXED)
    assert (np.asarray(scores.mse) < 0.02).all()


def test_a_share_of_each_minibatch_is_of_the_newest_rows():
    own, budget = np.arange(1_000), FIXED._replace(recent=0.25)
    drawn = _drawn(own, 1_000, budget, np.random.default_rng(0)).reshape(budget.steps, budget.batch)
    newest = (drawn >= 900).mean(axis=1)
    assert newest.min() >= 0.25
    assert newest.mean() == pytest.approx(0.25 + 0.75 * 0.1, abs=0.01)


def test_a_member_without_any_of_the_newest_rows_draws_from_its_own():
    drawn = _drawn(np.arange(5), 1_000, FIXED._replace(recent=0.5), np.random.default_rng(0))
    assert set(drawn) == set(range(5))


def test_early_stopping_learns_a_linear_system():
    _, scores = fitted(linear_system(500), EARLY)
    assert (np.asarray(scores.mse) < 0.02).all()


def test_with_a_longest_epoch_early_stopping_looks_that_often():
    data = linear_system(500)  # whole epochs have seven steps
    model = ensemble.create(data.spec, members=3, width=32, depth=2, key=jax.random.key(0))
    taken = []
    for longest in (0, 5, 1000):
        budget = EARLY._replace(longest_epoch=longest, learning_rate=0.0)  # nothing ever helps: five epochs
        _, optimiser, _ = fit(model, create_optimiser(model, 1e-3), data, budget, seed=0, rng=np.random.default_rng(0))
        taken.append(int(optimiser[0].count))
    assert taken == [35, 25, 35]


def test_a_later_fit_that_stops_early_takes_no_more_than_the_most_steps():
    data, rng = linear_system(500), np.random.default_rng(0)
    budget = EARLY._replace(longest_epoch=5, most_steps=12, learning_rate=1e-4)  # slow enough to help for long
    model = ensemble.create(data.spec, members=3, width=32, depth=2, key=jax.random.key(0))
    optimiser, taken = create_optimiser(model, 1e-4), [0]
    for _ in range(2):
        model, optimiser, _ = fit(model, optimiser, data, budget, seed=0, rng=rng)
        taken.append(int(optimiser[0].count))
    first, second = np.diff(taken)
    assert first > 12
    assert second == 10


def test_fewer_steps_than_an_epoch_has_are_taken_and_not_none():
    data, rng = linear_system(500), np.random.default_rng(0)  # whole epochs have seven steps
    model = ensemble.create(data.spec, members=3, width=32, depth=2, key=jax.random.key(0))
    model, optimiser, _ = fit(model, create_optimiser(model, 1e-4), data, EARLY, seed=0, rng=rng)
    before = int(optimiser[0].count)
    _, optimiser, _ = fit(model, optimiser, data, EARLY._replace(most_steps=3), seed=0, rng=rng)
    assert int(optimiser[0].count) - before == 3


def test_improvements_too_small_to_go_on_for_are_kept():
    data = linear_system(500)
    model = ensemble.create(data.spec, members=3, width=32, depth=2, key=jax.random.key(0))
    slow = EARLY._replace(learning_rate=1e-7)
    _, optimiser, after = fit(model, create_optimiser(model, 1e-7), data, slow, seed=0, rng=np.random.default_rng(0))
    before, after = fit_nothing(model, data), np.asarray(after.mse)
    assert int(optimiser[0].count) == 5 * 7
    assert (after < before).all()
    assert (after > 0.99 * before).all()


def test_early_stopping_never_returns_worse_weights_than_it_was_given():
    data = linear_system(500)
    model = ensemble.create(data.spec, members=3, width=32, depth=2, key=jax.random.key(0))
    harmful = EARLY._replace(learning_rate=10.0)
    before = fit_nothing(model, data)
    _, _, after = fit(model, create_optimiser(model, 10.0), data, harmful, seed=0, rng=np.random.default_rng(0))
    assert (np.asarray(after.mse) <= before * 1.001).all()


def fit_nothing(model: Ensemble, data: Replay) -> np.ndarray:
    _, held_out = split(len(data), len(model), 0)
    scaled = Ensemble(model.members, scaling_of(data.rows[: len(data)], data.spec))
    rows = data.rows[held_out]
    return np.asarray(score(scaled, rows, np.ones(len(rows), np.float32), data.spec).mse)


def test_the_noise_of_the_world_becomes_the_spread_of_the_prediction():
    data = linear_system(600, noise=0.2)
    model, _ = fitted(data, FIXED)
    normal = model(np.zeros((3, 1, 2), np.float32), np.zeros((3, 1, 1), np.float32))
    spread = np.exp(0.5 * np.asarray(normal.log_variance)) * np.asarray(model.scaling.target_std)
    assert spread[..., :2] == pytest.approx(0.2, rel=0.35)


def test_a_spoilt_member_has_the_largest_bias_in_both_scores():
    data = linear_system(500)
    model, _ = fitted(data, FIXED)
    spoilt = jax.tree.map(lambda x: x.at[1].add(0.3), model.members)
    scores = score(Ensemble(spoilt, model.scaling), data.rows[:500], np.ones(500, np.float32), data.spec)
    assert int(np.argmax(scores.distance)) == 1
    assert int(np.argmax(scores.mse)) == 1


def test_distance_is_the_mean_length_of_the_scaled_error_of_the_next_state():
    data = linear_system(50)
    model, _ = fitted(data, FIXED)
    scores = score(model, data.rows[:50], np.ones(50, np.float32), data.spec)
    observation, action, following = data.rows[:50, :2], data.rows[:50, 2:3], data.rows[:50, 4:6]
    normal = model(np.stack([observation] * 3), np.stack([action] * 3))
    scaling = model.scaling
    predicted = observation + normal.mean[0, :, :2] * scaling.target_std[:2] + scaling.target_mean[:2]
    by_hand = np.linalg.norm((predicted - following) / scaling.target_std[:2], axis=-1).mean()
    assert float(scores.distance[0]) == pytest.approx(by_hand, rel=1e-3)


def test_a_row_is_held_out_for_ever_or_never():
    early, late = split(100, 3, seed=1)[1], split(400, 3, seed=1)[1]
    np.testing.assert_array_equal(early, late[late < 100])


def test_a_members_bootstrap_only_grows():
    for early, late in zip(split(100, 3, seed=1)[0], split(400, 3, seed=1)[0], strict=True):
        np.testing.assert_array_equal(early, late[late < 100])


def test_no_member_trains_on_a_held_out_row():
    bootstraps, held_out = split(1000, 3, seed=0)
    assert not any(np.isin(own, held_out).any() for own in bootstraps)
    assert 150 < len(held_out) < 250


def test_without_bootstraps_every_member_trains_on_every_row_that_is_not_held_out():
    rows, held_out = split(300, 3, seed=0, bootstrap=False)
    for own in rows:
        np.testing.assert_array_equal(own, np.setdiff1d(np.arange(300), held_out))


def test_members_have_bootstraps_of_their_own():
    first, second, _ = split(1000, 3, seed=0)[0]
    assert not np.array_equal(first, second)
    assert len(np.unique(first)) / 800 == pytest.approx(1 - np.exp(-1), abs=0.06)


def test_the_held_out_share_shrinks_once_there_is_enough():
    assert len(split(120_000, 1, seed=0)[1]) < 15_000


def test_every_member_has_data_even_at_the_first_rows():
    bootstraps, held_out = split(2, 5, seed=3)
    assert all(len(own) for own in bootstraps)
    assert len(held_out)


def test_nothing_is_compiled_again_as_data_grows():
    fitted(linear_system(100), FIXED)
    with compilations() as seen:
        fitted(linear_system(300), FIXED)
    assert not seen


def test_a_constant_reward_is_predicted_as_that_constant():
    data = linear_system(300)
    data.rows[:300, 3] = 1.0
    model, scores = fitted(data, FIXED)
    assert np.isfinite(np.asarray(scores.mse)).all()
    np.testing.assert_allclose(model.scaling.low[-1], 1.0)
    np.testing.assert_allclose(model.scaling.high[-1], 1.0)


def test_termination_is_learned_when_it_is_asked_for():
    data = linear_system(600)
    data.rows[:600, -1] = data.rows[:600, 0] > 0
    model, _ = fitted(data, FIXED._replace(learn_termination=True))
    observation = np.stack([np.array([[1.5, 0.0], [-1.5, 0.0]], np.float32)] * 3)
    logit = np.asarray(model(observation, np.zeros((3, 2, 1), np.float32)).terminated_logit)
    assert (logit[:, 0] > 0).all()
    assert (logit[:, 1] < 0).all()
