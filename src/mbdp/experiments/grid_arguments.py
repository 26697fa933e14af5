"""The grid of worlds, as it is given on the command line."""

import argparse

import numpy as np

from mbdp.robustness.axes import AXES, check_value
from mbdp.types import BadInput

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


def axes_of(args: argparse.Namespace, env_id: str) -> dict[str, tuple[float, ...]]:
    """The axes with their values: those asked for with --axis, or else mass and friction."""
    given = {name: getattr(args, name) for name in ("mass", "friction") if getattr(args, name) is not None}
    for argument in args.axis:
        name, _, values = argument.partition("=")
        if name in given:
            raise BadInput(f"axis {name} is given twice")
        given[name] = values
    if not args.axis:
        given = {name: given.get(name, args.grid) for name in ("mass", _second_axis(env_id, args))}
    axes = {name: _values(name, text) for name, text in given.items()}
    if np.prod([len(values) for values in axes.values()]) > MAX_CELLS:
        raise BadInput(f"the grid has more than {MAX_CELLS} worlds")
    return axes


def _second_axis(env_id: str, args: argparse.Namespace) -> str:
    """Friction, unless it is not asked for by name and the environment has none: then the strength of the actuators."""
    if args.friction is not None:
        return "friction"
    from mbdp.envs.tasks import make
    from mbdp.robustness.perturb import perturb

    env = make(env_id)
    try:
        perturb(env, {"friction": 1.0})
    except BadInput as error:
        if "change nothing" not in str(error):
            raise
        print(f"{error}; the second axis is gear instead")
        return "gear"
    finally:
        env.close()
    return "friction"


def _values(name: str, text: str) -> tuple[float, ...]:
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
    values = tuple(check_value(name, number) for number in numbers)
    if len(set(values)) < len(values):
        raise BadInput(f"axis {name} has the same value twice: {text}")
    return values
