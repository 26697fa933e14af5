"""An ensemble of probabilistic dynamics models; a subset of an ensemble is an ensemble."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from mbdp.networks import MLP, truncated_normal
from mbdp.plans import NoisePer
from mbdp.types import Spec

FIRST_LOG_VARIANCE = -2.0  # of a learned level of noise, in units of the targets' deviation


class Scaling(eqx.Module):
    """What is known of the data: mean and deviation of inputs and targets, and the range that predictions stay in."""

    input_mean: jax.Array
    input_std: jax.Array
    target_mean: jax.Array  # target: (change of observation, reward)
    target_std: jax.Array
    low: jax.Array  # of (next observation, reward)
    high: jax.Array

    def of_observation(self, spec: Spec) -> tuple[jax.Array, jax.Array]:
        """Mean and deviation of the observations."""
        return self.input_mean[: spec.observation_size], self.input_std[: spec.observation_size]


class Member(eqx.Module):
    """A network whose outputs are mean, log-variance and a logit of termination; the log-variance is softly bounded.

    With `log_variance` the noise has one learned level per output, and the network predicts none.
    A deterministic member has a variance of 1, so that its likelihood is the squared error, and draws no noise.
    """

    network: MLP
    min_log_variance: jax.Array
    max_log_variance: jax.Array
    log_variance: jax.Array | None = None
    deterministic: bool = eqx.field(static=True, default=False)


class Normal(NamedTuple):
    """What members predict, in units of the targets' scaling, and the logit of termination."""

    mean: jax.Array
    log_variance: jax.Array
    terminated_logit: jax.Array


class Ensemble(eqx.Module):
    """M_phi_1 ... M_phi_N with parameters stacked along the first axis, and the scaling they share."""

    members: Member
    scaling: Scaling

    def __len__(self) -> int:
        return len(self.members.min_log_variance)

    def __getitem__(self, kept: Any) -> "Ensemble":
        """The ensemble of the members `kept`: an index, a slice or an array of indices."""
        index = jnp.atleast_1d(jnp.asarray(kept)) if not isinstance(kept, slice) else kept
        return Ensemble(jax.tree.map(lambda x: x[index], self.members), self.scaling)

    def __call__(self, observation: jax.Array, action: jax.Array) -> Normal:
        """Each member on its own batch: (member, batch, ...) in, (member, batch, ...) out."""
        # One after the other: XLA's batched products on a CPU are slower than plain ones.
        return jax.lax.map(lambda own: predict(own[0], self.scaling, *own[1:]), (self.members, observation, action))


def create(
    spec: Spec,
    *,
    members: int,
    width: int,
    depth: int,
    noise: NoisePer = "input",
    layer_norm: bool = False,
    deterministic: bool = False,
    key: jax.Array,
) -> Ensemble:
    """A fresh ensemble; its scaling is neutral until it is fitted."""
    inputs, targets = spec.observation_size + spec.action_size, spec.observation_size + 1
    sizes = [inputs, *[width] * depth, (2 * targets if noise == "input" else targets) + 1]

    def member(key: jax.Array) -> Member:
        network = MLP(sizes, jax.nn.silu, truncated_normal, layer_norm=layer_norm, key=key)
        # Typed, because a weakly typed array would have everything compiled again after the first update.
        low, high, level = (jnp.full(targets, x, jnp.float32) for x in (-10.0, 0.5, FIRST_LOG_VARIANCE))
        return Member(network, low, high, level if noise == "output" else None, deterministic)

    scaling = Scaling(
        jnp.zeros(inputs),
        jnp.ones(inputs),
        jnp.zeros(targets),
        jnp.ones(targets),
        jnp.full(targets, -jnp.inf),
        jnp.full(targets, jnp.inf),
    )
    return Ensemble(eqx.filter_vmap(member)(jax.random.split(key, members)), scaling)


def predict(member: Member, scaling: Scaling, observation: jax.Array, action: jax.Array) -> Normal:
    """One member's normal distribution over the scaled (change of observation, reward)."""
    x = (jnp.concatenate([observation, action], axis=-1) - scaling.input_mean) / scaling.input_std
    out = member.network(x)
    targets = len(member.min_log_variance)
    mean, log_variance, logit = out[..., :targets], out[..., targets:-1], out[..., -1]
    if member.deterministic:
        return Normal(mean, jnp.zeros_like(mean), logit)
    if member.log_variance is not None:
        return Normal(mean, jnp.broadcast_to(member.log_variance, mean.shape), logit)
    log_variance = member.max_log_variance - jax.nn.softplus(member.max_log_variance - log_variance)
    log_variance = member.min_log_variance + jax.nn.softplus(log_variance - member.min_log_variance)
    return Normal(mean, log_variance, logit)


def sample(
    normal: Normal, scaling: Scaling, observation: jax.Array, *, noise: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Next observation and reward drawn from predictions and bounded by the data's range; third, True where bounded."""
    scaled = normal.mean + noise * jnp.exp(0.5 * normal.log_variance)
    target = scaled * scaling.target_std + scaling.target_mean
    free = jnp.concatenate([observation + target[..., :-1], target[..., -1:]], axis=-1)
    bounded = jnp.clip(free, scaling.low, scaling.high)
    return bounded[..., :-1], bounded[..., -1], jnp.any(free != bounded, axis=-1)
