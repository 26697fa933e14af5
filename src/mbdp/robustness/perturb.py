"""A world that differs from the simulator: MuJoCo models scaled from their nominal values, checked to have an effect.

The body that `mass` and `push` mean is the one called "torso" (Hopper, Walker2d, HalfCheetah, Ant, Humanoid, Swimmer);
without a torso the one called "pole" (InvertedPendulum, InvertedDoublePendulum); without either the first that moves
against the world (Reacher: body0, Pusher: r_shoulder_pan_link). Only that body's mass changes, in HalfCheetah too,
although its XML fixes the total.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium
import mujoco
import numpy as np

from mbdp.envs.simulator import UNSTABLE
from mbdp.robustness.axes import DISTURBANCES, check_coefficients
from mbdp.robustness.contact import CONTACT_COLUMNS, effective_friction, live_friction
from mbdp.robustness.disturb import Disturbed
from mbdp.robustness.parameters import PerturbedParameters, back_to_nominal, own_axes
from mbdp.robustness.physics import FIELDS, NOMINAL, SCALED, ModelFields, Nominal, nominal_of, read_fields, write_fields
from mbdp.types import BadInput


class InertPerturbation(RuntimeError):
    """A perturbation was asked for and is not in the simulator: a result would be about another world."""


def perturb(env: gymnasium.Env, coefficients: Mapping[str, float]) -> gymnasium.Env:
    """`env` with these coefficients of its nominal world, whatever was applied before; BadInput leaves it as it was."""
    own = own_axes(env)
    coefficients = check_coefficients(coefficients, own)
    while isinstance(env, (Disturbed, PerturbedPhysics, PerturbedParameters)):
        env = env.env
    theirs = {name: value for name, value in coefficients.items() if name in own}
    around = {name: value for name, value in coefficients.items() if name in DISTURBANCES}
    inside = {name: value for name, value in coefficients.items() if name not in theirs and name not in around}
    env = Disturbed(env, around) if around else env
    # A world that was perturbed before must go back to nominal, even if nothing inside it is asked for now.
    back_to_nominal(env)
    env = PerturbedPhysics(env, inside) if inside or hasattr(env.unwrapped, NOMINAL) else env
    return PerturbedParameters(env, theirs) if theirs else env


class PerturbedPhysics(gymnasium.Wrapper):
    """A MuJoCo environment with scaled physics; copies and pickles carry the perturbation."""

    def __init__(
        self, env: gymnasium.Env, coefficients: Mapping[str, float], fields: ModelFields | None = None
    ) -> None:
        super().__init__(env)
        self.coefficients = check_coefficients(coefficients)
        model = mujoco_of(env)[0]
        self.root = root_body(model)
        self.nominal = nominal_of(env.unwrapped, fields)
        self.target = _scaled(model, self.nominal, self.coefficients)
        write_fields(model, self.target, self.nominal.scratch)
        # The solver's stopping rule scales with the mean inertia. The compiler derives it, unless the XML gives it;
        # mj_setConst does not.
        given = self.nominal.fields["meaninertia"]
        if np.isclose(given, self.nominal.inertia, rtol=1e-9):
            self.target["meaninertia"] = given * (model.dof_M0.mean() / self.nominal.inertia)
            model.stat.meaninertia = float(self.target["meaninertia"])
        self._unstable = np.zeros(0, int)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode, and make sure that it happens in the world that was asked for."""
        observation, info = self.env.reset(seed=seed, options=options)
        model, data = mujoco_of(self.env)
        data.xfrc_applied[self.root, 0] = self.coefficients.get("push", 0.0)
        self._check(model, data)
        self._unstable = data.warning.number[UNSTABLE]  # a view: MuJoCo counts on in it
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step; a simulation that became unstable ends the episode, without reward, as info["diverged"]."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        # MuJoCo resets an unstable simulation to its first state by itself, and what follows looks healthy.
        if any(self._unstable.tolist()):
            return observation, 0.0, True, truncated, info | {"diverged": True}
        return observation, reward, terminated, truncated, info

    def __reduce__(self) -> tuple[Any, ...]:
        # Gymnasium rebuilds its MuJoCo environments from their arguments, so a plain copy would be a nominal one.
        return type(self), (self.env, self.coefficients, self.nominal.fields)

    def _check(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        now, name = read_fields(model), _name(self.env)
        if changed := [field for field in self.target if not np.array_equal(now[field], self.target[field])]:
            raise InertPerturbation(f"{name}: {changed[0]} is not what was asked for: the model was changed or rebuilt")
        if not np.isclose(model.body_subtreemass[0], model.body_mass.sum(), rtol=1e-9):
            raise InertPerturbation(f"{name}: the model's constants do not belong to its masses")
        asked = self.nominal.friction * self.coefficients.get("friction", 1.0)
        if not np.allclose(effective_friction(model, self.nominal.pairs), asked, rtol=1e-9, atol=0):
            raise InertPerturbation(f"{name}: contacts do not have the friction that was asked for")
        geoms, friction = live_friction(model, data)
        expected = effective_friction(model, geoms)[:, CONTACT_COLUMNS]
        if not np.allclose(friction, np.maximum(expected, mujoco.mjMINMU), rtol=1e-9, atol=0):
            raise InertPerturbation(f"{name}: the solver does not use the friction that was asked for")
        if data.xfrc_applied[self.root, 0] != self.coefficients.get("push", 0.0):
            raise InertPerturbation(f"{name}: the push is not applied as asked for")


def mujoco_of(env: gymnasium.Env) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The MuJoCo model and data behind an environment, or BadInput."""
    core = env.unwrapped
    model, data = getattr(core, "model", None), getattr(core, "data", None)
    if not isinstance(model, mujoco.MjModel) or not isinstance(data, mujoco.MjData):
        known = ", ".join([*own_axes(env), *DISTURBANCES])
        raise BadInput(f"{_name(env)} is not a MuJoCo environment: only {known} can be perturbed in it")
    return model, data


def root_body(model: mujoco.MjModel) -> int:
    """The body that `mass` and `push` mean: see the top of this file."""
    names = [model.body(body).name for body in range(model.nbody)]
    moving = [body for body in range(1, model.nbody) if model.body_weldid[body] != 0]
    if not moving:
        raise BadInput("nothing moves in this MuJoCo model, so there is no body to perturb")
    return next((names.index(name) for name in ("torso", "pole") if name in names), moving[0])


def _scaled(model: mujoco.MjModel, nominal: Nominal, coefficients: Mapping[str, float]) -> ModelFields:
    """The fields that the perturbed model shall have; BadInput for an axis that could not have any effect."""
    target = {name: field.copy() for name, field in nominal.fields.items()}
    seen: dict[int, str] = {}
    for axis, value in coefficients.items():
        if axis.startswith("mass"):
            body = _body(model, axis)
            if body in seen:
                raise BadInput(f"{seen[body]} and {axis} are the same body")
            seen[body] = axis
            for field in ("body_mass", "body_inertia"):
                target[field][body] = nominal.fields[field][body] * value
        for field in SCALED.get(axis, ()):
            target[field] = nominal.fields[field] * value
        if reason := _why_inert(model, nominal, axis):
            raise BadInput(f"{axis} would change nothing in this environment: {reason}")
    return target


def _why_inert(model: mujoco.MjModel, nominal: Nominal, axis: str) -> str:
    if axis.startswith("mass"):
        body = _body(model, axis)
        still = model.body_weldid[body] == 0 or not nominal.fields["body_mass"][body] > 0
        return f"body {model.body(body).name!r} is fixed to the world or has no mass" if still else ""
    if axis == "friction":
        nothing = not len(nominal.pairs) and not (model.pair_dim > 1).any()
        return "no two of its geoms can rub against each other" if nothing else ""
    zero = not any(nominal.fields[field].any() for field in SCALED.get(axis, FIELDS))
    return f"it has no {axis}" if zero else ""


def _body(model: mujoco.MjModel, axis: str) -> int:
    name = axis.partition(":")[2]
    names = [model.body(body).name for body in range(model.nbody)]
    if name and name not in names:
        raise BadInput(f"{axis}: there is no body {name!r}; there are {', '.join(n for n in names[1:] if n)}")
    return names.index(name) if name else root_body(model)


def _name(env: gymnasium.Env) -> str:
    return env.spec.id if env.spec else type(env.unwrapped).__name__
