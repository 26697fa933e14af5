"""The fields of a MuJoCo model that perturbations scale: reading them, writing them, and what they are nominally."""

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from mbdp.robustness.contact import effective_friction, rubbing_pairs

ModelFields = dict[str, np.ndarray]
SCALED = {
    "friction": ("geom_friction", "pair_friction"),
    "damping": ("dof_damping", "dof_dampingpoly"),
    "gear": ("actuator_gear",),
    "gravity": ("gravity",),
}
FIELDS = ("body_mass", "body_inertia", *(field for fields in SCALED.values() for field in fields))
NOMINAL = "_nominal_physics"  # where an environment keeps what it is nominally, so that perturbations never compound


@dataclass(frozen=True, eq=False)
class Nominal:
    """A model as it came, with what is derived from it once."""

    fields: ModelFields
    pairs: np.ndarray  # of geoms that can rub against each other, (k, 2)
    friction: np.ndarray  # between them, (k, 3)
    inertia: float  # mean over the degrees of freedom
    scratch: mujoco.MjData


def nominal_of(core: Any, fields: ModelFields | None = None) -> Nominal:
    """What the environment `core` is nominally: as first seen, or `fields` if they are known from elsewhere."""
    if not hasattr(core, NOMINAL):
        scratch = mujoco.MjData(core.model)
        fields = fields or read_fields(core.model)
        write_fields(core.model, fields, scratch)
        pairs = rubbing_pairs(core.model)
        friction, inertia = effective_friction(core.model, pairs), float(core.model.dof_M0.mean())
        setattr(core, NOMINAL, Nominal(fields, pairs, friction, inertia, scratch))
    return getattr(core, NOMINAL)


def read_fields(model: mujoco.MjModel) -> ModelFields:
    """Copies of all fields that perturbations change."""
    fields = {name: np.array(getattr(model, name, np.zeros(0))) for name in FIELDS if name != "gravity"}
    return fields | {"gravity": np.array(model.opt.gravity), "meaninertia": np.array(model.stat.meaninertia)}


def write_fields(model: mujoco.MjModel, fields: ModelFields, scratch: mujoco.MjData) -> None:
    """Give the model these fields, and the constants that follow from them."""
    for name in FIELDS:
        if fields[name].size:
            getattr(model.opt if name == "gravity" else model, name)[...] = fields[name]
    model.stat.meaninertia = float(fields["meaninertia"])
    # Inverse weights, subtree masses and the like; on scratch data, because this overwrites positions.
    mujoco.mj_setConst(model, scratch)
