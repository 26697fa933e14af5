"""Branched rollouts of a policy inside an ensemble, and which of their samples survive rollout dropout."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mbdp.agents.sac import squash
from mbdp.dropout import rollout_dropout
from mbdp.models.ensemble import Ensemble, Normal, predict, sample
from mbdp.networks import MLP
from mbdp.parallel import side_by_side
from mbdp.plans import Plan
from mbdp.replay import pack, unpack
from mbdp.types import Array, Spec, Termination, Transition


class Imagined(NamedTuple):
    """Imagined transitions as rows (depth, state, sample, row); valid until the imagined episode has ended."""

    rows: Array
    valid: Array
    bounded: Array  # True where a prediction was cut to the data's range
    rounding: Array  # (depth, state), uniform in [0, 1): how many of a group rollout dropout keeps


StepArrays = tuple[jax.Array, jax.Array, jax.Array]  # rows, valid and bounded of one depth


class Noise(NamedTuple):
    """The chance in one step of a block of rollouts."""

    of_model: Array  # standard normal, (state, sample, ...)
    of_policy: Array  # the same, of one sample where all have one action
    order: Array  # of the rows, where each member takes an equal share of them
    rounding: Array  # of each state, see `rollout_dropout`


def rollout(model: Ensemble, actor: MLP, starts: np.ndarray, *, horizon: int, plan: Plan, key: jax.Array) -> Imagined:
    """`plan.samples` rollouts of `horizon` steps from each start, with a stochastic policy and the model's noise.

    Grouped by `members`, the samples of a state are instead all members' predictions for one action, and the rollout
    goes on from one that survives the dropout.
    """
    samples = {"members": len(model), "returns": 1}.get(plan.group, plan.samples)
    states = min(len(starts), -(-plan.block // samples))  # of a block, the same for any number of starts that fill one
    blocks = -(-len(starts) // states)
    filled = np.resize(starts, (blocks * states, starts.shape[-1]))  # the few beyond are computed and not used
    key_member, key_host, key_blocks = jax.random.split(key, 3)
    rngs = np.random.default_rng(np.asarray(jax.random.key_data(key_host))).spawn(blocks)
    shape, spec = (horizon, len(starts), samples), Spec(starts.shape[-1], len(actor.biases[-1]) // 2)
    imagined = Imagined(
        rows=np.empty((*shape, spec.row_width), np.float32),
        valid=np.empty(shape, bool),
        bounded=np.empty(shape, bool),
        rounding=np.empty(shape[:2], np.float32),
    )
    parts = np.split(filled, blocks)
    keys_member, keys = _several(key_member, horizon), _several(key_blocks, blocks)

    def imagine(number: int) -> None:
        own = slice(number * states, min((number + 1) * states, len(starts)))
        steps = _rollout_block(model, actor, parts[number], keys[number], rngs[number], samples, plan, keys_member)
        for depth, step in enumerate(steps):
            for whole, part in zip(imagined, step, strict=True):
                whole[depth, own] = part[: own.stop - own.start]

    side_by_side(imagine, range(blocks))
    return imagined


def surviving_rows(imagined: Imagined, spec: Spec, plan: Plan, *, discount: float) -> np.ndarray:
    """The rows that rollout dropout keeps, in the grouping of the plan: all that may enter `d_model`."""
    reward, rounding = np.asarray(unpack(imagined.rows, spec).reward), imagined.rounding
    valid = imagined.valid & np.isfinite(imagined.rows).all(axis=-1)
    if plan.group == "batch":
        mask = rollout_dropout(reward, plan.alpha, axis=(-2, -1), valid=valid, rounding=rounding[:, 0])
    elif plan.group == "trajectory":
        weight = discount ** np.arange(len(reward), dtype=np.float32)[:, None, None]
        returns = np.sum(np.where(valid, weight * reward, 0.0), axis=0)
        mask = rollout_dropout(returns, plan.alpha, rounding=rounding[0]) & valid
    else:
        alpha = 0.0 if plan.group == "returns" else plan.alpha
        mask = rollout_dropout(reward, alpha, valid=valid, rounding=rounding)
    return imagined.rows[mask]


def _rollout_block(
    model: Ensemble,
    actor: MLP,
    starts: np.ndarray,
    key: jax.Array,
    rng: np.random.Generator,
    samples: int,
    plan: Plan,
    keys_member: list[jax.Array],
) -> Iterator[Imagined]:
    """The rollouts from some of the starts, step by step; one member for all rows of a step is one for all blocks."""
    shape, actions = (len(starts), samples), 1 if plan.group == "members" else samples
    observation, alive = jnp.broadcast_to(starts[:, None], (*shape, starts.shape[-1])), jnp.ones(shape, bool)
    imagine = _imagine_members if plan.group == "members" else _imagine_rows
    for depth, keys in enumerate(zip(keys_member, _several(key, len(keys_member)), strict=True)):
        # At depth 0 all samples are in one state, of which the actor says the same.
        outputs = [_act(actor, observation, i) for i in range(actions if depth else 1)]
        output = np.broadcast_to(np.stack(outputs, axis=1), (*shape, outputs[0].shape[-1]))
        spec = Spec(observation.shape[-1], output.shape[-1] // 2)
        noise = drawn_noise(rng, shape, spec, actions=actions)
        observation, alive, step = imagine(model, output, observation, alive, noise, plan=plan, keys=keys)
        rows, valid, bounded = map(np.asarray, step)
        yield Imagined(rows, valid, bounded, noise.rounding)


def drawn_noise(rng: np.random.Generator, shape: tuple[int, int], spec: Spec, *, actions: int) -> Noise:
    """Of so many states and samples, of which so many have actions of their own; NumPy is faster at it than XLA."""
    return Noise(
        of_model=rng.standard_normal((*shape, spec.observation_size + 1), np.float32),
        of_policy=rng.standard_normal((shape[0], actions, spec.action_size), np.float32),
        order=rng.permutation(shape[0] * actions),
        rounding=rng.random(shape[0], np.float32),
    )


@jax.jit
def _act(actor: MLP, observation: jax.Array, sample: int) -> jax.Array:
    """The actor's output for one sample of every state: (state, ...)."""
    return actor(observation[:, sample])


@partial(jax.jit, static_argnames="plan")
def _imagine_rows(
    model: Ensemble,
    output: jax.Array,
    observation: jax.Array,
    alive: jax.Array,
    noise: Noise,
    *,
    plan: Plan,
    keys: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array, StepArrays]:
    """One step of every rollout, each with a member of its own or all with one, as the plan says."""
    key_one, key_end = keys
    flat = observation.reshape(-1, observation.shape[-1])
    action = squash(output, noise.of_policy)[0].reshape(len(flat), -1)
    if plan.member_per == "step":
        normal = predict_with_one_member(model, flat, action, key=key_one)
    else:
        normal = predict_with_a_member_per_row(model, flat, action, noise.order)
    drawn = noise.of_model.reshape(normal.mean.shape)
    following, reward, bounded = sample(normal, model.scaling, flat, noise=drawn)
    reward = reward if plan.reward is None else plan.reward(flat, action, following)
    terminated = ends(plan.termination, flat, action, following, normal.terminated_logit, key=key_end)
    rows = pack(Transition(flat, action, reward, following, terminated))
    shape = observation.shape[:2]
    step = rows.reshape(*shape, -1), alive, bounded.reshape(shape) & alive
    return following.reshape(observation.shape), alive & ~terminated.reshape(shape), step


@partial(jax.jit, static_argnames="plan")
def _imagine_members(
    model: Ensemble,
    output: jax.Array,
    observation: jax.Array,
    alive: jax.Array,
    noise: Noise,
    *,
    plan: Plan,
    keys: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array, StepArrays]:
    """One step of every rollout in every member; all samples of a state go on from one survivor."""
    key_end, key_survivor = jax.random.split(keys[1])
    action, _ = squash(output[:, 0], noise.of_policy[:, 0])
    action = jnp.broadcast_to(action[:, None], (*observation.shape[:2], action.shape[-1]))
    normal = model(jnp.moveaxis(observation, 1, 0), jnp.moveaxis(action, 1, 0))
    normal = Normal(*(jnp.moveaxis(x, 0, 1) for x in normal))
    following, reward, bounded = sample(normal, model.scaling, observation, noise=noise.of_model)
    reward = reward if plan.reward is None else plan.reward(observation, action, following)
    terminated = ends(plan.termination, observation, action, following, normal.terminated_logit, key=key_end)
    step = pack(Transition(observation, action, reward, following, terminated)), alive, bounded & alive
    survives = rollout_dropout(reward, plan.alpha, rounding=noise.rounding)
    chosen = jnp.argmax(jax.random.uniform(key_survivor, survives.shape) + survives, axis=1)[:, None]
    following = jnp.take_along_axis(following, chosen[..., None], axis=1)
    alive = alive & ~jnp.take_along_axis(terminated, chosen, axis=1)
    return jnp.broadcast_to(following, observation.shape), alive, step


def predict_with_one_member(model: Ensemble, observation: jax.Array, action: jax.Array, *, key: jax.Array) -> Normal:
    """Algorithm 1's choice: one member, drawn at random, for all rows of this step."""
    chosen = jax.random.randint(key, (), 0, len(model))
    member = jax.tree.map(lambda x: x[chosen], model.members)
    return predict(member, model.scaling, observation, action)


def predict_with_a_member_per_row(
    model: Ensemble, observation: jax.Array, action: jax.Array, order: jax.Array
) -> Normal:
    """MBPO's choice: a member for each row; the rows come in a random order, and each member takes an equal share."""
    rows, members = len(observation), len(model)
    share = -(-rows // members)
    filled = jnp.resize(order, (share * members,))  # the few rows beyond are computed and not used
    place = jnp.zeros(rows, order.dtype).at[order].set(jnp.arange(rows))
    blocks = (x[filled].reshape(members, share, -1) for x in (observation, action))
    return Normal(*(x.reshape(share * members, *x.shape[2:])[place] for x in model(*blocks)))


def ends(
    termination: Termination | None,
    observation: jax.Array,
    action: jax.Array,
    following: jax.Array,
    logit: jax.Array,
    *,
    key: jax.Array,
) -> jax.Array:
    """Where imagined episodes end: by the known rule, or drawn with the learned probability."""
    if termination is None:
        return jax.random.bernoulli(key, jax.nn.sigmoid(logit))
    return jnp.broadcast_to(termination(observation, action, following), logit.shape)


def _several(key: jax.Array, count: int) -> list[jax.Array]:
    """As many keys; `jax.random.split` would be compiled anew for every count."""
    return [jax.random.fold_in(key, i) for i in range(count)]
