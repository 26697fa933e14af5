"""The guarantees of Section 3.3 while a run learns: `theory/*` of every evaluation, for MBDP and its ablation arms.

Everything here is an estimate from a few hundred states, with chance of its own: learning is the same without it.
Distances between states are in the units of the bias: each dimension divided by the deviation of its change.
"""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdp import algorithm, theory
from mbdp.agents import sac
from mbdp.api import MBDP
from mbdp.experiments.evaluate import Evaluation
from mbdp.models.ensemble import Ensemble, sample
from mbdp.presets import FAMILY
from mbdp.replay import unpack
from mbdp.rollout import ends, predict_with_a_member_per_row
from mbdp.streams import generator, key
from mbdp.types import Reward, Termination, Transition

STATES = 512  # observed states that the Lipschitz constant is estimated from
RETURNS = 8  # imagined returns of each start of an evaluation
HORIZON = 200  # imagined steps, after which the critics say the rest
Three = tuple[jax.Array, jax.Array, jax.Array]


@np.errstate(invalid="ignore", over="ignore")  # critics that have exploded make NaN, which is logged as null
def theory_metrics(agent: MBDP, result: Evaluation, latest: Mapping[str, Any]) -> dict[str, float]:
    """Both discrepancy bounds and what they are made of; nothing where no member's bias is a distance of states.

    `latest` has the bias of each member at the last fit, as the fit logged it.
    """
    bias = np.array([latest.get(f"model/bias_{i}", np.nan) for i in range(agent.config.members)], float)
    kept = agent.learner.kept
    if not _applies(agent) or not len(kept) or np.isnan(bias[kept]).any():
        return {}
    began = time.perf_counter()
    config, gamma, rewards = agent.config, agent.discount, np.asarray(_all(agent).reward, float)
    constants = {"alpha": config.alpha, "gamma": gamma, "r_max": float(rewards.max())}
    printed = constants | {"r_max": float(np.abs(rewards).max())}  # the proof takes R_max for a bound of |r|
    constants["r_min"] = float(rewards.min())
    batch, unit = observed(agent), np.asarray(agent.learner.model.scaling.target_std)[:-1]
    value, value_after = (
        np.asarray(_values(agent.learner.agent, x)) for x in (batch.observation, batch.next_observation)
    )
    lipschitz = lipschitz_constant(batch, value, value_after, unit)
    all_of_them = bias[np.isfinite(bias)]
    bound = theory.discrepancy_bound(bias, beta=config.beta, lipschitz=lipschitz, **constants)
    bound_printed = theory.printed_discrepancy_bound(all_of_them, beta=config.beta, lipschitz=lipschitz, **printed)
    eps, eps_printed = theory.eps_alpha(**constants), theory.printed_eps_alpha(**printed)
    returns = imagined_returns(agent, result.starts)
    v_alpha = float(np.mean([theory.v_alpha(own, config.alpha) for own in returns]))
    v_real = float(result.discounted.mean())
    residual = theory.update_residual(v_real, v_alpha, bound)
    residual_printed = theory.update_residual(v_real, v_alpha, bound_printed)
    return {
        "theory/bias_all": float(all_of_them.mean()),
        "theory/bias_kept": float(bias[kept].mean()),
        "theory/lipschitz": lipschitz,
        "theory/eps_alpha": eps,
        "theory/eps_alpha_printed": eps_printed,
        "theory/bound": bound,
        "theory/bound_printed": bound_printed,
        "theory/v_alpha": v_alpha,
        "theory/v_real": v_real,
        "theory/residual": residual,
        "theory/residual_printed": residual_printed,
        "theory/improvement": theory.improvement(residual, eps),
        "theory/improvement_printed": theory.printed_improvement(residual_printed, eps_printed),
        "time/theory": time.perf_counter() - began,
    }


def _applies(agent: MBDP) -> bool:
    """Whether the bounds speak about this system: its members imagine, their bias is a distance, values are finite."""
    return agent.algo in FAMILY and agent.config.bias == "distance" and agent.discount < 1


def observed(agent: MBDP) -> Transition:
    """Real transitions, drawn from all that there are."""
    rng = generator(agent.seed, "theory", agent.learner.step)
    return unpack(agent.learner.d_env.sample(STATES, rng), agent.world.spec)


def lipschitz_constant(batch: Transition, value: np.ndarray, value_after: np.ndarray, unit: np.ndarray) -> float:
    """K: the largest |V(s) - V(s')| / |s - s'| of all pairs of the observed states, and of each and its successor.

    `unit` is the length of each dimension. The true constant can only be larger.
    """
    states, successors = (np.asarray(x, float) / unit for x in (batch.observation, batch.next_observation))
    squares = np.sum(states**2, axis=1)
    apart = np.sqrt(np.maximum(squares[:, None] + squares - 2 * states @ states.T, 0.0))
    pairs = _ratio(np.abs(value[:, None] - value), apart)
    steps = _ratio(np.abs(value_after - value), np.linalg.norm(successors - states, axis=1))
    going_on = np.asarray(batch.terminated) == 0  # where an episode has ended, critics were never asked
    return float(max(pairs.max(), steps[going_on].max(initial=0.0)))


def imagined_returns(agent: MBDP, starts: np.ndarray) -> np.ndarray:
    """Discounted returns (start, sample) of the evaluated policy in the kept members, each row in one drawn anew."""
    rng = generator(agent.seed, "theory", agent.learner.step, part=1)
    observation = np.repeat(starts, RETURNS, axis=0)
    rows, targets = len(observation), observation.shape[1] + 1
    chance = (
        np.stack([rng.permutation(rows) for _ in range(HORIZON)]),
        rng.standard_normal((HORIZON, rows, targets), np.float32),
        jax.random.split(key(agent.seed, "theory", agent.learner.step, part=2), HORIZON),
    )
    model, gamma = agent.learner.model[agent.learner.kept], agent.discount
    total = _imagine(agent.learner.agent, model, observation, chance, gamma, **agent.functions())
    return np.asarray(total, float).reshape(len(starts), RETURNS)


@jax.jit
def _values(agent: sac.Agent, observation: jax.Array) -> jax.Array:
    """What the critics expect of the evaluated policy."""
    return algorithm.value(agent, observation, _act(agent, observation))


@partial(jax.jit, static_argnames=("termination", "reward"))
def _imagine(
    agent: sac.Agent,
    model: Ensemble,
    starts: jax.Array,
    chance: Three,
    gamma: float,
    *,
    termination: Termination | None,
    reward: Reward | None = None,
) -> jax.Array:
    """The discounted return of every row; in each step, an order deals the rows to the members."""

    def step(carry: Three, drawn: Three) -> tuple[Three, None]:
        observation, total, weight = carry
        order, noise, key_end = drawn
        action = _act(agent, observation)
        normal = predict_with_a_member_per_row(model, observation, action, order)
        following, gained, _ = sample(normal, model.scaling, observation, noise=noise)
        gained = gained if reward is None else reward(observation, action, following)
        ended = ends(termination, observation, action, following, normal.terminated_logit, key=key_end)
        return (following, total + weight * gained, jnp.where(ended, 0.0, gamma * weight)), None

    rows = len(starts)
    (last, total, weight), _ = jax.lax.scan(step, (starts, jnp.zeros(rows), jnp.ones(rows)), chance)
    return total + weight * _values(agent, last)


def _act(agent: sac.Agent, observation: jax.Array) -> jax.Array:
    """The evaluated policy, in [-1, 1]."""
    mean, _ = jnp.split(agent.averaged_actor(observation), 2, axis=-1)
    return jnp.tanh(mean)


def _all(agent: MBDP) -> Transition:
    return unpack(agent.learner.d_env.newest(len(agent.learner.d_env)), agent.world.spec)


def _ratio(change: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Change per distance; states closer than rounding can tell apart do not count."""
    told_apart = distance > 1e-3
    return np.where(told_apart, change / np.where(told_apart, distance, 1.0), 0.0)
