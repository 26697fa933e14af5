import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdp.models.ensemble import Ensemble, Normal, Scaling, create, sample
from mbdp.types import Spec

SPEC = Spec(2, 1)
MODEL = create(SPEC, members=4, width=16, depth=2, key=jax.random.key(0))
OBSERVATION = jnp.ones((7, 2))
ACTION = jnp.ones((7, 1))


def predictions(model: Ensemble) -> Normal:
    many = (jnp.broadcast_to(x, (len(model), *x.shape)) for x in (OBSERVATION, ACTION))
    return model(*many)


def test_one_member_is_an_ensemble_with_that_members_prediction():
    np.testing.assert_allclose(predictions(MODEL[2]).mean[0], predictions(MODEL).mean[2], rtol=1e-5)


def test_a_subset_is_an_ensemble_in_the_order_asked_for():
    kept = MODEL[np.array([3, 1])]
    assert len(kept) == 2
    np.testing.assert_allclose(predictions(kept).mean, predictions(MODEL).mean[jnp.array([3, 1])], rtol=1e-5)


def test_a_subset_of_a_subset_is_a_subset():
    twice = MODEL[np.array([3, 1, 0])][np.array([1])]
    assert eqx.tree_equal(twice, MODEL[1])


def test_members_start_out_different():
    assert np.unique(np.asarray(predictions(MODEL).mean[:, 0, 0])).size == 4


def test_log_variance_stays_between_its_bounds():
    far = Ensemble(jax.tree.map(lambda x: x * 1e3, MODEL.members), MODEL.scaling)
    bounds = MODEL.members.min_log_variance[0, 0] * 1e3, MODEL.members.max_log_variance[0, 0] * 1e3
    log_variance = predictions(far).log_variance
    assert (log_variance >= bounds[0] - 1).all()
    assert (log_variance <= bounds[1] + 1).all()


def test_predictions_are_cut_to_the_range_of_the_data_and_say_so():
    one = jnp.ones(3)
    scaling = Scaling(one, one, jnp.zeros(3), one, low=-one, high=2 * one)
    normal = Normal(jnp.array([[5.0, -5.0, 0.5], [0.0, 0.0, 0.0]]), jnp.zeros((2, 3)), jnp.zeros(2))
    following, reward, cut = sample(normal, scaling, jnp.zeros((2, 2)), noise=jnp.zeros((2, 3)))
    np.testing.assert_array_equal(following, [[2, -1], [0, 0]])
    np.testing.assert_array_equal(reward, [0.5, 0])
    assert cut.tolist() == [True, False]
