"""The keys that a run of a sweep can have, and the type of each."""

from dataclasses import fields
from typing import Any, Literal, get_args, get_origin

from mbdp.experiments.training_world import TERMINATIONS, world_of_words
from mbdp.methods import METHODS
from mbdp.presets import PREFERENCES, PresetName
from mbdp.types import BadInput

SCHEDULE = {"evaluate_every": 1000, "episodes": 10, "checkpoint_minutes": 5.0}  # as `mbdp train` has them
DEFAULTS: dict[str, Any] = {
    "env": "",
    "algo": "mbdp",
    "seed": 0,
    "preset": "default",
    "prefer": "",
    "termination": "",
    "perturb": {},
    "randomise": {},
} | SCHEDULE
OF_METHODS = {one.name: one.type for method in METHODS.values() for one in fields(method.config)}
KEYS: dict[str, Any] = OF_METHODS | {key: type(value) for key, value in DEFAULTS.items()}

CHOICES = {
    "algo": tuple(METHODS),
    "preset": get_args(PresetName),
    "prefer": tuple(PREFERENCES),
    "termination": TERMINATIONS,
}
RANGES = {"seed": (0, 2**31 - 1), "evaluate_every": (1, 2**63), "episodes": (1, 10_000), "checkpoint_minutes": (0, 1e9)}
WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}


def typed(key: str, value: Any, kind: Any) -> Any:
    """The value, if it is what its key asks for; a whole number can stand for a float."""
    if key in ("prefer", "termination") and value == "":  # no preference, the default
        return value
    if kind is dict:
        if not isinstance(value, dict):
            right = "coefficients, as {mass = 0.8}" if key == "perturb" else "ranges, as {mass = [0.8, 1.2]}"
            raise BadInput(f"{key} must be a table of {right}; it is {value!r}")
        return world_of_words({key: value}).words().get(key, {})
    if kind is float and type(value) is int:
        return float(value)
    if kind in WORDS and type(value) is not kind:
        raise BadInput(f"{key} must be {WORDS[kind]}; it is {value!r}")
    if get_origin(kind) is tuple and (not isinstance(value, list) or tuple(map(type, value)) != get_args(kind)):
        raise BadInput(f"{key} must be a list of {len(get_args(kind))} whole numbers; it is {value!r}")
    choices = get_args(kind) if get_origin(kind) is Literal else CHOICES.get(key)
    if choices and value not in choices:
        raise BadInput(f"{key} must be one of {', '.join(map(str, choices))}; it is {value!r}")
    low, high = RANGES.get(key, (None, None))
    if low is not None and not low <= value <= high:
        raise BadInput(f"{key} must be from {low} to {high}; it is {value!r}")
    return value


def keywords(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as the methods take them: TOML and JSON have lists where they have tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
