"""Parameters of an environment of one's own that can be perturbed by name, as mass and friction can in MuJoCo.

The environment declares them: `perturbations = {"cable": "length"}` says that the axis `cable` multiplies its attribute
`length`. Nominal values are kept when an axis is first used, so that perturbations never compound.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from numbers import Real
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from mbdp.robustness.axes import DISTURBANCES, Axis
from mbdp.types import BadInput

Setter = Callable[[Any, float], object]
DECLARED = "perturbations"  # the attribute in which an environment names its parameters
PASSED = "_perturbations_passed"  # the same, from a caller who cannot change the environment's class
NOMINAL_VALUES = "_nominal_values"
MOST_ADDED = 1e6


class Parameter(NamedTuple):
    """What an axis changes: an attribute (dots reach deeper, `arm.length`), or a function called as (env, coefficient).

    An attribute is multiplied by the coefficient, or, with `neutral=0`, the coefficient is added to it. A function must
    set the world anew from its nominal state at every call, and with the neutral value leave it nominal.
    """

    target: str | Setter
    neutral: float = 1.0


Perturbations = Mapping[str, str | Setter | Parameter]


def declare(env: gymnasium.Env, perturbations: Perturbations | None) -> gymnasium.Env:
    """`env` with named parameters besides those that it declares itself; with None it stays as it is."""
    if perturbations is not None:
        setattr(env.unwrapped, PASSED, perturbations)
        parameters_of(env)
    return env


def parameters_of(env: gymnasium.Env) -> dict[str, Parameter]:
    """The parameters that an environment declares, or was given by `declare`; BadInput if they cannot be understood."""
    core, found = env.unwrapped, {}
    for said in (getattr(core, DECLARED, {}), getattr(core, PASSED, {})):
        if not isinstance(said, Mapping):
            raise BadInput(f"perturbations must be a dict, as {{'cable': 'length'}}; it is {said!r:.60}")
        for name, what in said.items():
            parameter = what if isinstance(what, Parameter) else Parameter(what)
            _check_parameter(core, name, parameter)
            found[name] = parameter
    return found


def own_axes(env: gymnasium.Env) -> dict[str, Axis]:
    """The axes that the environment's own parameters are."""
    return {
        name: Axis(1, 0, "times nominal")
        if one.neutral == 1
        else Axis(one.neutral, -MOST_ADDED, "added", maximum=MOST_ADDED)
        for name, one in parameters_of(env).items()
    }


def back_to_nominal(env: gymnasium.Env) -> None:
    """Undo what was done to the environment's own parameters."""
    if hasattr(env.unwrapped, NOMINAL_VALUES):
        PerturbedParameters(env, {})


class PerturbedParameters(gymnasium.Wrapper):
    """An environment whose own parameters differ from their nominal values, put in place again at every reset."""

    def __init__(self, env: gymnasium.Env, coefficients: Mapping[str, float]) -> None:
        super().__init__(env)
        self.coefficients, self.parameters = dict(coefficients), parameters_of(env)
        before = getattr(env.unwrapped, NOMINAL_VALUES, {})
        new = {name: _nominal_value(env.unwrapped, self.parameters[name]) for name in coefficients}
        self.nominal: dict[str, Any] = new | before
        self._apply()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode, and make sure that `reset` itself did not put an attribute back."""
        self._apply()
        started = self.env.reset(seed=seed, options=options)
        for name, parameter in self.parameters.items():
            if name in self.coefficients and isinstance(parameter.target, str):
                now = _read(self.env.unwrapped, parameter.target)
                if not np.array_equal(now, self._wanted(name)):
                    raise BadInput(
                        f"{name}: the environment's reset() changes {parameter.target}, which was to be perturbed"
                    )
        return started

    def _apply(self) -> None:
        core: Any = self.env.unwrapped
        setattr(core, NOMINAL_VALUES, self.nominal)
        for name in self.nominal:
            target, value = self.parameters[name].target, self._wanted(name)
            try:
                if isinstance(target, str):
                    *path, last = target.split(".")
                    setattr(reduce(getattr, path, core), last, value)
                else:
                    target(core, value)
            except Exception as error:  # the environment's own code, which may refuse a value in any way
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise BadInput(f"{name} cannot be {value}: {reason}") from error

    def _wanted(self, name: str) -> Any:
        """The value that the attribute shall have, or the coefficient that the function is called with."""
        parameter = self.parameters[name]
        coefficient = self.coefficients.get(name, parameter.neutral)
        if not isinstance(parameter.target, str):
            return coefficient
        nominal = self.nominal[name]
        if coefficient == parameter.neutral:
            return nominal
        return nominal * coefficient if parameter.neutral == 1 else nominal + coefficient


def _check_parameter(core: Any, name: Any, parameter: Parameter) -> None:
    if not isinstance(name, str) or not name.isidentifier() or name in DISTURBANCES:
        raise BadInput(f"perturbations: a parameter needs a name of letters and digits, not taken; it is {name!r}")
    if callable(parameter.target):
        return
    if not isinstance(parameter.target, str):
        raise BadInput(f"perturbations: {name} must be an attribute's name or a function; it is {parameter.target!r}")
    if parameter.neutral not in (0, 1):
        raise BadInput(f"perturbations: {name}: neutral must be 1 (a factor) or 0 (added); it is {parameter.neutral}")
    _nominal_value(core, parameter)


def _nominal_value(core: Any, parameter: Parameter) -> Any:
    """A copy of the attribute as it is, or nothing for a function."""
    if not isinstance(parameter.target, str):
        return None
    value, name = _read(core, parameter.target), type(core).__name__
    array = np.asarray(value)
    number = isinstance(value, (Real, np.ndarray)) and array.dtype != bool and np.issubdtype(array.dtype, np.number)
    if not number or not np.isfinite(array).all():
        raise BadInput(f"perturbations: {parameter.target} of {name} must be finite numbers; it is {value!r:.60}")
    return value.copy() if isinstance(value, np.ndarray) else value


def _read(core: Any, path: str) -> Any:
    try:
        return reduce(getattr, path.split("."), core)
    except AttributeError:
        raise BadInput(f"perturbations: {type(core).__name__} has no attribute {path}") from None
