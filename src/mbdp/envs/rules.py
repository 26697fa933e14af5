"""What a step of Gymnasium's MuJoCo tasks gives, as a function of the simulation, for many simulations at once.

Weights and limits are read from the environment. Sums are taken in Gymnasium's order and precision, because a number
must be the same to the last bit; `stepping.repeats_gymnasium` makes sure of that before any of this is used.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

Fields = dict[str, np.ndarray]  # of MjData, each with the simulations as its first axis


class Judgement(NamedTuple):
    """Rewards (n,) and whether each episode ends."""

    rewards: np.ndarray
    terminated: np.ndarray


class Rules(NamedTuple):
    """One task: which fields of MjData count, and what follows from them; `core` is the unwrapped environment."""

    observe: Callable[[Any, Fields], np.ndarray]
    judge: Callable[[Any, Fields, np.ndarray, np.ndarray], Judgement]  # core, fields, velocity, actions
    fields: tuple[str, ...] = ("qpos", "qvel")
    position: Callable[[Any, Fields], np.ndarray] = lambda core, now: now["qpos"][:, 0]  # its change is the velocity
    contact_forces: bool = False  # cfrc_ext is computed only on demand


def rules_of(env: gymnasium.Env) -> Rules | None:
    """The rules of an environment exactly as Gymnasium makes it; None for a subclass, a foreign wrapper, a viewer."""
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        if type(inner) not in (OrderEnforcing, PassiveEnvChecker, TimeLimit):
            return None
        inner = inner.env
    package, _, module = type(inner).__module__.rpartition(".")
    plain = package == "gymnasium.envs.mujoco" and getattr(inner, "render_mode", None) is None
    return RULES.get(module) if plain else None


def _observe_runner(core: Any, now: Fields, hidden: int, limit: float = np.inf) -> np.ndarray:
    """Positions without the first few, which say where in the world it is, and velocities within a limit."""
    first = hidden if core._exclude_current_positions_from_observation else 0
    return np.concatenate([now["qpos"][:, first:], now["qvel"].clip(-limit, limit)], axis=1)


def _judge_runner(
    core: Any,
    velocity: np.ndarray,
    actions: np.ndarray,
    bonus: np.ndarray | float = 0.0,
    further_cost: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Velocity, and a bonus for being alive, less the cost of acting."""
    cost = core._ctrl_cost_weight * np.square(actions).sum(axis=1) + further_cost
    return (getattr(core, "_forward_reward_weight", 1.0) * velocity + bonus) - cost


def _never_ends(core: Any, now: Fields, velocity: np.ndarray, actions: np.ndarray) -> Judgement:
    return Judgement(_judge_runner(core, velocity, actions), np.zeros(len(actions), bool))


def _hopper_ends(core: Any, now: Fields) -> np.ndarray:
    state = np.concatenate([now["qpos"][:, 2:], now["qvel"]], axis=1)
    return _walker_ends(core, now) | ~_within(state, core._healthy_state_range).all(axis=1)


def _walker_ends(core: Any, now: Fields) -> np.ndarray:
    height, angle = now["qpos"][:, 1], now["qpos"][:, 2]
    return ~(_within(height, core._healthy_z_range) & _within(angle, core._healthy_angle_range))


def _ant_ends(core: Any, now: Fields) -> np.ndarray:
    low, high = core._healthy_z_range
    height = now["qpos"][:, 2]
    finite = np.isfinite(now["qpos"]).all(axis=1) & np.isfinite(now["qvel"]).all(axis=1)
    return ~(finite & (low <= height) & (height <= high))


def _within(values: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
    return (limits[0] < values) & (values < limits[1])


def _mortal(ends: Callable[[Any, Fields], np.ndarray], bonus_at_the_end: bool, contacts: bool = False) -> Any:
    """The judgement of a runner that may fall: version 4 pays its bonus in the last step too, version 5 does not."""

    def judge(core: Any, now: Fields, velocity: np.ndarray, actions: np.ndarray) -> Judgement:
        unhealthy, fatal = ends(core, now), core._terminate_when_unhealthy
        bonus = core._healthy_reward * (~unhealthy | (bonus_at_the_end and fatal))
        cost = core._contact_cost_weight * np.square(_contact_forces(core, now)).sum(axis=1) if contacts else 0.0
        return Judgement(_judge_runner(core, velocity, actions, bonus, cost), unhealthy & fatal)

    return judge


def _contact_forces(core: Any, now: Fields) -> np.ndarray:
    return now["cfrc_ext"].clip(*core._contact_force_range)


def _torso(core: Any, now: Fields) -> np.ndarray:
    # As of the last substep but one, unlike the joints' positions: MuJoCo computes it at the start of a substep.
    return now["xpos"].reshape(-1, core.model.nbody, 3)[:, core.model.body(getattr(core, "_main_body", "torso")).id, 0]


def _observe_ant(core: Any, now: Fields) -> np.ndarray:
    parts = [_observe_runner(core, now, 2)]
    if getattr(core, "_include_cfrc_ext_in_observation", False):
        parts.append(_contact_forces(core, now)[:, 6:])  # without those on the world
    return np.concatenate(parts, axis=1)


def _observe_pole(core: Any, now: Fields) -> np.ndarray:
    return np.concatenate([now["qpos"], now["qvel"]], axis=1)


def _judge_pole(bonus_at_the_end: bool) -> Any:
    def judge(core: Any, now: Fields, velocity: np.ndarray, actions: np.ndarray) -> Judgement:
        fallen = ~np.isfinite(_observe_pole(core, now)).all(axis=1) | (np.abs(now["qpos"][:, 1]) > 0.2)
        return Judgement((~fallen | bonus_at_the_end).astype(float), fallen)

    return judge


def _observe_two_poles(forces: int) -> Any:
    def observe(core: Any, now: Fields) -> np.ndarray:
        angles = np.ascontiguousarray(now["qpos"][:, 1:])
        parts = [now["qpos"][:, :1], np.sin(angles), np.cos(angles), now["qvel"].clip(-10, 10)]
        return np.concatenate([*parts, now["qfrc_constraint"].clip(-10, 10)[:, :forces]], axis=1)

    return observe


def _judge_two_poles(bonus_at_the_end: bool) -> Any:
    def judge(core: Any, now: Fields, velocity: np.ndarray, actions: np.ndarray) -> Judgement:
        x, height, first, second = (*now["site_xpos"][:, [0, 2]].T, *now["qvel"][:, 1:].T)
        fallen = height <= 1
        bonus = getattr(core, "_healthy_reward", 10.0) * (~fallen | bonus_at_the_end)
        distance = 0.01 * _squared(x) + _squared(height - 2)
        return Judgement(bonus - distance - (1e-3 * _squared(first) + 5e-3 * _squared(second)), fallen)

    return judge


def _squared(values: np.ndarray) -> np.ndarray:
    # C's pow, as for a single number in Gymnasium: now and then it differs from a product in the last bit.
    return np.array([value**2 for value in values.tolist()])


def _runner(hidden: int, judge: Any, limit: float = np.inf) -> Rules:
    return Rules(lambda core, now: _observe_runner(core, now, hidden, limit), judge)


def _ant(judge: Any, contact_forces: bool) -> Rules:
    fields = ("qpos", "qvel", "xpos", "cfrc_ext") if contact_forces else ("qpos", "qvel", "xpos")
    return Rules(_observe_ant, judge, fields, _torso, contact_forces)


_TWO_POLES = ("qpos", "qvel", "site_xpos", "qfrc_constraint")
RULES = {
    "hopper_v4": _runner(1, _mortal(_hopper_ends, bonus_at_the_end=True), limit=10.0),
    "hopper_v5": _runner(1, _mortal(_hopper_ends, bonus_at_the_end=False), limit=10.0),
    "walker2d_v4": _runner(1, _mortal(_walker_ends, bonus_at_the_end=True), limit=10.0),
    "walker2d_v5": _runner(1, _mortal(_walker_ends, bonus_at_the_end=False), limit=10.0),
    "half_cheetah_v4": _runner(1, _never_ends),
    "half_cheetah_v5": _runner(1, _never_ends),
    "swimmer_v4": _runner(2, _never_ends),
    "swimmer_v5": _runner(2, _never_ends),
    "ant_v4": _ant(_mortal(_ant_ends, bonus_at_the_end=True), contact_forces=False),
    "ant_v5": _ant(_mortal(_ant_ends, bonus_at_the_end=False, contacts=True), contact_forces=True),
    "inverted_pendulum_v4": Rules(_observe_pole, _judge_pole(bonus_at_the_end=True)),
    "inverted_pendulum_v5": Rules(_observe_pole, _judge_pole(bonus_at_the_end=False)),
    "inverted_double_pendulum_v4": Rules(_observe_two_poles(3), _judge_two_poles(bonus_at_the_end=True), _TWO_POLES),
    "inverted_double_pendulum_v5": Rules(_observe_two_poles(1), _judge_two_poles(bonus_at_the_end=False), _TWO_POLES),
}
