import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdp import MBDP
from mbdp.agents import trpo
from mbdp.algorithm import Progress
from mbdp.baselines import slbo
from mbdp.envs.toy import POINT_MASS
from mbdp.models import ensemble, multi_step_fit
from mbdp.models.fit import Score, create_optimiser, scaled_targets, scaling_of
from mbdp.replay import pack, unpack
from mbdp.types import Spec, Transition
from tests.conftest import TINY_SLBO, linear_system

SPEC = Spec(2, 1)


def rows_of(episodes: list[int], *, terminated: bool = False) -> np.ndarray:
    """Episodes of these lengths, in which the first number of an observation counts the steps of all of them."""
    rows, count = [], 0
    for length in episodes:
        for step in range(length):
            ended = float(terminated and step == length - 1)
            here, there = np.array([count + step, 1.0]), np.array([count + step + 1, 1.0])
            rows.append(pack(Transition(here, np.zeros(1), np.float64(0), there, np.float64(ended))))
        count += length + 10
    return np.stack(rows)


def test_a_sequence_never_spans_two_episodes():
    assert multi_step_fit.sequences(rows_of([3, 1, 4]), SPEC, 2, np.array([], int)).tolist() == [0, 1, 4, 5, 6]


def test_a_sequence_never_goes_on_after_a_termination():
    rows = rows_of([2, 2], terminated=True)
    rows[2:, :2] -= [10, 0]  # as if the second episode began where the first ended
    rows[2:, -3:-1] -= [10, 0]
    assert multi_step_fit.sequences(rows, SPEC, 2, np.array([], int)).tolist() == [0, 2]


def test_a_sequence_has_no_row_that_is_held_out():
    assert multi_step_fit.sequences(rows_of([6]), SPEC, 2, np.array([3])).tolist() == [0, 1, 4]


def test_episodes_start_where_nothing_led_to():
    assert slbo.episode_starts(rows_of([3, 1, 4]), SPEC)[:, 0].tolist() == [0, 13, 24]


def deterministic(members: int = 2) -> ensemble.Ensemble:
    model = ensemble.create(SPEC, members=members, width=16, depth=1, deterministic=True, key=jax.random.key(0))
    return ensemble.Ensemble(model.members, scaling_of(linear_system(400).rows[:400], SPEC))


def test_the_loss_is_the_mean_norm_of_the_errors_along_the_models_own_path():
    model = deterministic(1)
    member = jax.tree.map(lambda x: x[0], model.members)
    rows = linear_system(400).rows[:2]
    real = Transition(*(jnp.asarray(x)[None] for x in unpack(rows, SPEC)))
    observation, norms = real.observation[:, 0], []
    for ahead in range(2):
        normal = ensemble.predict(member, model.scaling, observation, real.action[:, ahead])
        now = Transition(*(x[:, ahead] for x in real))
        norms.append(np.sqrt(np.mean((normal.mean - scaled_targets(model.scaling, now)) ** 2)))
        observation, *_ = ensemble.sample(normal, model.scaling, observation, noise=jnp.zeros(3))
    decay = multi_step_fit.WEIGHT_DECAY * sum(float(jnp.sum(w**2)) for w in member.network.weights)
    got = multi_step_fit.loss_over_several_steps(member, model.scaling, real, False)
    assert float(got) == pytest.approx(np.mean(norms) + decay, rel=1e-4)


def test_the_model_learns_a_linear_system_over_two_steps():
    d_env = linear_system(400)
    model = deterministic()
    optimiser = create_optimiser(model, 3e-3)
    places = np.random.default_rng(0).integers(0, 400, (300, 2, 32, 1))
    _, _, first = multi_step_fit.fit_over_several_steps(
        model, optimiser, d_env.rows[places[:1]], spec=SPEC, learning_rate=3e-3, learn_termination=False
    )
    members, _, _ = multi_step_fit.fit_over_several_steps(
        model, optimiser, d_env.rows[places], spec=SPEC, learning_rate=3e-3, learn_termination=False
    )
    _, _, last = multi_step_fit.fit_over_several_steps(
        ensemble.Ensemble(members, model.scaling),
        optimiser,
        d_env.rows[places[:1]],
        spec=SPEC,
        learning_rate=3e-3,
        learn_termination=False,
    )
    assert float(last) < 0.2 * float(first)


def imagined(starts: jax.Array, longest: int | None = None, threshold: float = 0.5) -> slbo.ImaginedPath:
    agent = trpo.create(SPEC, width=8, depth=1, value_width=8, value_learning_rate=1e-3, key=jax.random.key(0))
    ends_sometimes = lambda observation, action, following: action[..., 0] > threshold  # noqa: E731
    key = jax.random.key(1)
    return slbo.imagine(deterministic(), agent.actor, starts, termination=ends_sometimes, longest=longest, key=key)


def test_an_imagined_episode_that_ends_is_followed_by_a_new_one():
    starts = jnp.full((30, 3, 2), 0.35)
    path = imagined(starts)
    assert 0 < int(path.terminated.sum()) < path.terminated.size
    after = np.asarray(path.observation[1:])[np.asarray(path.terminated[:-1])]
    np.testing.assert_allclose(after, 0.35, rtol=1e-6)
    going_on = ~np.asarray(path.terminated[:-1])
    np.testing.assert_array_equal(np.asarray(path.observation[1:])[going_on], np.asarray(path.following[:-1])[going_on])


def test_an_imagined_episode_is_no_longer_than_a_real_one():
    path = imagined(jnp.full((30, 3, 2), 0.35), longest=7, threshold=2.0)
    assert np.flatnonzero(path.cut.all(axis=1)).tolist() == [6, 13, 20, 27]
    assert int(path.cut.sum()) == 4 * 3
    np.testing.assert_allclose(path.observation[7], 0.35, rtol=1e-6)
    assert not np.allclose(path.following[6], 0.35)  # what would have followed still gives its value


def test_only_an_episode_that_did_not_end_by_itself_is_cut():
    path = imagined(jnp.full((60, 5, 2), 0.35), longest=3)
    assert path.terminated.any()
    assert path.cut.any()
    assert not (path.terminated & path.cut).any()


def test_a_bout_of_learning_comes_in_rounds_of_which_the_last_is_settled():
    seen: list[Progress] = []
    seen.extend(MBDP(POINT_MASS, algo="slbo", **TINY_SLBO).iterate(41))
    pieces = [(one.outcome is not None, one.settled) for one in seen if one.step == 40]
    assert pieces == [(True, False), (False, False), (False, True)]
    assert all(one.settled for one in seen if one.step not in (20, 40))


def test_nothing_is_learned_between_bouts():
    agent = MBDP(POINT_MASS, algo="slbo", **TINY_SLBO).learn(20)
    before = agent.policy().weights
    assert all(np.array_equal(a, b) for a, b in zip(before, agent.learn(19).policy().weights, strict=True))
    assert not np.array_equal(before[0], agent.learn(1).policy().weights[0])


def test_a_member_that_model_dropout_drops_never_imagines(monkeypatch):
    bias, used = jnp.array([2.0, 9.0, 1.0]), []
    improve = slbo.improve

    def watched(agent, model, starts, **settings):
        used.append(model.members.network.weights[0])
        return improve(agent, model, starts, **settings)

    monkeypatch.setattr(slbo, "score", lambda *_: Score(bias, bias))
    monkeypatch.setattr(slbo, "improve", watched)
    agent = MBDP(POINT_MASS, algo="slbo", beta=0.34, **(TINY_SLBO | {"members": 3})).learn(20)
    all_members = agent.learner.model.members.network.weights[0]
    np.testing.assert_array_equal(used[-1], all_members[jnp.array([2, 0])])


def test_without_dropout_a_run_is_that_of_a_loop_without_the_two_functions(monkeypatch):
    borrowed = MBDP(POINT_MASS, algo="slbo", **TINY_SLBO).learn(40).policy().weights
    monkeypatch.setattr(slbo, "model_dropout", lambda bias, beta: np.argsort(bias, kind="stable"))
    monkeypatch.setattr(slbo, "rollout_dropout", lambda reward, alpha: jnp.ones(reward.shape, bool))
    static = ("termination", "longest", "alpha", "value_epochs", "value_batch", "value_learning_rate")
    plain = slbo.improve.__wrapped__  # compiled anew: the other one has the functions in it
    monkeypatch.setattr(slbo, "improve", jax.jit(lambda *a, **k: plain(*a, **k), static_argnames=static))
    got = MBDP(POINT_MASS, algo="slbo", **TINY_SLBO).learn(40).policy().weights
    for a, b in zip(borrowed, got, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("alpha", "share"), [(0.0, 1.0), (0.25, 0.75)])
def test_rollout_dropout_decides_which_imagined_samples_count(alpha, share, monkeypatch):
    weights = []
    update = trpo.update

    def watched(agent, samples, **settings):
        jax.debug.callback(lambda weight: weights.append(float(weight)), jnp.mean(samples.weight))
        return update(agent, samples, **settings)

    monkeypatch.setattr(trpo, "update", watched)
    slbo.improve.clear_cache()
    MBDP(POINT_MASS, algo="slbo", alpha=alpha, **TINY_SLBO).learn(20)
    jax.effects_barrier()
    slbo.improve.clear_cache()
    assert weights
    np.testing.assert_allclose(weights, share, atol=0.02)
