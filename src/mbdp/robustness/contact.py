"""Which geoms of a MuJoCo model can rub against each other, and with what friction."""

import itertools

import mujoco
import numpy as np

# A contact has five coefficients: two of sliding, one of spinning, two of rolling; a geom has one of each kind.
CONTACT_COLUMNS = [0, 0, 1, 2, 2]


def rubbing_pairs(model: mujoco.MjModel) -> np.ndarray:
    """Pairs of geoms (k, 2) whose contact would have friction, found from the same rules as MuJoCo's own filter."""
    excluded = {(int(s) >> 16, int(s) & 0xFFFF) for s in model.exclude_signature}
    pairs = [
        pair
        for pair in itertools.combinations(range(model.ngeom), 2)
        if _can_touch(model, *pair, excluded) and _dimension(model, *pair) > 1
    ]
    return np.array(pairs, int).reshape(-1, 2)


def effective_friction(model: mujoco.MjModel, pairs: np.ndarray) -> np.ndarray:
    """Friction (k, 3) of a contact between each pair: the larger of the two geoms', unless one has priority."""
    first, second = model.geom_friction[pairs[:, 0]], model.geom_friction[pairs[:, 1]]
    rank = model.geom_priority[pairs[:, 0]] - model.geom_priority[pairs[:, 1]]
    return np.where(rank[:, None] > 0, first, np.where(rank[:, None] < 0, second, np.maximum(first, second)))


def live_friction(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of geoms (n, 2) in contact now, and the friction (n, 5) that the solver uses for them."""
    geoms, friction = np.array(data.contact.geom), np.array(data.contact.friction)
    # A contact that the model declares as such has a friction of its own, and one with a flex has no second geom.
    declared = {frozenset(pair) for pair in zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True)}
    usual = [bool((pair >= 0).all()) and frozenset(pair.tolist()) not in declared for pair in geoms]
    return geoms[usual].reshape(-1, 2), friction[usual].reshape(-1, 5)


def _can_touch(model: mujoco.MjModel, i: int, j: int, excluded: set[tuple[int, int]]) -> bool:
    meant = (model.geom_contype[i] & model.geom_conaffinity[j]) | (model.geom_contype[j] & model.geom_conaffinity[i])
    bodies = int(model.geom_bodyid[i]), int(model.geom_bodyid[j])
    one, other = (int(model.body_weldid[body]) for body in bodies)
    parents = [int(model.body_weldid[model.body_parentid[body]]) for body in (one, other)]
    filtered = not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
    related = filtered and 0 not in (one, other) and (parents[0] == other or parents[1] == one)
    return bool(meant) and one != other and not related and bodies not in excluded and bodies[::-1] not in excluded


def _dimension(model: mujoco.MjModel, i: int, j: int) -> int:
    rank = int(model.geom_priority[i]) - int(model.geom_priority[j])
    both = int(model.geom_condim[i]), int(model.geom_condim[j])
    return both[0] if rank > 0 else both[1] if rank < 0 else max(both)
