"""The grid of worlds, as it is given on the command line."""

import argparse
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mbdp.robustness.axes import AXES, OwnAxes, axis_of, check_value
from mbdp.types import BadInput

if TYPE_CHECKING:
    import gymnasium

DEFAULT_VALUES = "0.5:1.5:11"  # the paper's
MAX_CELLS = 100_000


def add_grid_arguments(parser: argparse.ArgumentParser) -> None:
    """Options for the axes of a grid, and in the help a list of what there is."""
    values = "LO:HI:N, or values as 0.8,1,1.2"
    parser.add_argument(
        "--grid",
        default=DEFAULT_VALUES,
        metavar="VALUES",
        help=f"both default axes, mass and friction: {values} (default: {DEFAULT_VALUES})",
    )
    parser.add_argument("--mass", metavar="VALUES", help="of the torso, times nominal")
    parser.add_argument("--friction", metavar="VALUES", help="of every contact, times nominal")
    parser.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="an axis of choice instead of the default ones, can be repeated; see below",
    )
    parser.epilog = "axes:\n" + "\n".join(f"  {name:18} {axis.meaning}" for name, axis in AXES.items())
    parser.epilog += "\n  NAME               a parameter that the environment itself declares in `perturbations`"


class GridAxes(NamedTuple):
    """The values on each axis, and the value that changes nothing."""

    values: dict[str, tuple[float, ...]]
    neutral: dict[str, float]


def axes_of(args: argparse.Namespace, env_id: str) -> GridAxes:
    """The axes asked for with --axis; else the first two that the environment declares; else mass and friction."""
    from mbdp.envs.tasks import make
    from mbdp.robustness.parameters import own_axes

    env = make(env_id)
    own = own_axes(env)
    given = {name: getattr(args, name) for name in ("mass", "friction") if getattr(args, name) is not None}
    for argument in args.axis:
        name, _, values = argument.partition("=")
        if name in given:
            raise BadInput(f"axis {name} is given twice")
        given[name] = values
    if not args.axis and not (own and not given):
        given = {name: given.get(name, args.grid) for name in ("mass", _second_axis(env, args))}
    elif not given:
        given = dict.fromkeys(list(own)[:2], args.grid)
    env.close()
    axes = {name: _values(name, text, own) for name, text in given.items()}
    if np.prod([len(values) for values in axes.values()]) > MAX_CELLS:
        raise BadInput(f"the grid has more than {MAX_CELLS} worlds")
    return GridAxes(axes, {name: float(axis_of(name, own).neutral) for name in axes})


def _second_axis(env: "gymnasium.Env", args: argparse.Namespace) -> str:
    """Friction, unless it is not asked for by name and the environment has none: then the strength of the actuators."""
    if args.friction is not None:
        return "friction"
    from mbdp.robustness.perturb import perturb

    try:
        perturb(env, {"friction": 1.0})
    except BadInput as error:
        if "change nothing" not in str(error):
            raise
        print(f"{error}; the second axis is gear instead")
        return "gear"
    return "friction"


def _values(name: str, text: str, own: OwnAxes) -> tuple[float, ...]:
    if "=" in text:
        raise BadInput(f"{text!r} names an axis where only its values belong: write --axis {text}")
    try:
        if ":" in text:
            low, high, count = text.split(":")
            if not 1 <= int(count) <= MAX_CELLS:
                raise ValueError(count)
            # Rounded, so that 1 is 1 and a cell can be named as it is written.
            numbers = np.linspace(float(low), float(high), int(count)).round(12).tolist()
        else:
            numbers = [float(value) for value in text.split(",")]
    except ValueError as error:
        raise BadInput(f"axis {name} takes LO:HI:N, as 0.5:1.5:11, or values, as 0.8,1,1.2; not {text!r}") from error
    values = tuple(check_value(name, number, own) for number in numbers)
    if len(set(values)) < len(values):
        raise BadInput(f"axis {name} has the same value twice: {text}")
    return values
