"""The axes along which a world can differ from the simulator: their names, neutral values and limits."""

import difflib
from collections.abc import Mapping
from numbers import Real
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from mbdp.types import BadInput

MAX_SCALE = 1000.0


class Axis(NamedTuple):
    """One way to perturb a world; the neutral value changes nothing at all."""

    neutral: float
    minimum: float
    meaning: str
    exclusive: bool = False  # the minimum itself is not allowed
    whole: bool = False
    maximum: float = MAX_SCALE


AXES = {
    "mass": Axis(1, 0, "mass and inertia of the torso, or of any body as mass:BODY, times this", exclusive=True),
    "friction": Axis(1, 0, "friction of every geom, times this", exclusive=True),
    "damping": Axis(1, 0, "damping of every joint, times this"),
    "gear": Axis(1, 0, "strength of every actuator, times this"),
    "gravity": Axis(1, 0, "gravity, times this"),
    "push": Axis(0, -1e6, "a constant force on the torso along the world's x axis, in newtons", maximum=1e6),
    "observation_noise": Axis(0, 0, "standard deviation of noise added to every observation"),
    "action_noise": Axis(0, 0, "standard deviation of noise added to every action, in halves of the action's range"),
    "action_delay": Axis(0, 0, "environment steps by which every action comes late", whole=True),
}
DISTURBANCES = ("observation_noise", "action_noise", "action_delay")  # around the simulator; all others are inside it

OwnAxes = Mapping[str, Axis]  # those of an environment of one's own: `parameters.own_axes`
NO_AXES: OwnAxes = MappingProxyType({})


def axis_of(name: str, own: OwnAxes = NO_AXES) -> Axis:
    """The axis called `name`, an environment's own first, or BadInput with a suggestion."""
    if name in own:
        return own[name]
    kind, colon, body = name.partition(":")
    if kind not in AXES or (colon and (kind != "mass" or not body)):
        near = difflib.get_close_matches(kind, [*own, *AXES], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the axes are {', '.join([*own, *AXES])} and mass:BODY"
        raise BadInput(f"there is no axis {name!r}: {hint}")
    return AXES[kind]


def check_coefficients(coefficients: Mapping[str, float], own: OwnAxes = NO_AXES) -> dict[str, float]:
    """The coefficients as floats, each within the limits of its axis, or BadInput."""
    return {name: check_value(name, value, own) for name, value in coefficients.items()}


def check_value(name: str, value: float, own: OwnAxes = NO_AXES) -> float:
    """`value` as a float if axis `name` allows it, or BadInput that says what it allows."""
    axis = axis_of(name, own)
    finite(name, value)
    below = value <= axis.minimum if axis.exclusive else value < axis.minimum
    if below or value > axis.maximum:
        least = f"{'more than' if axis.exclusive else 'at least'} {axis.minimum:g}"
        raise BadInput(f"{name} must be {least} and at most {axis.maximum:g}; it is {value}")
    if axis.whole and value != int(value):
        raise BadInput(f"{name} must be a whole number; it is {value}")
    return float(value)


def finite(name: str, value: object) -> float:
    """`value` as a float if it is a finite number, whatever the axis; BadInput otherwise."""
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)) or not np.isfinite(float(value)):
        raise BadInput(f"{name} must be a finite number; it is {value!r}")
    return float(value)
