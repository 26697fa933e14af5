"""Domain randomisation: every episode happens in a world of its own, drawn from ranges around the nominal one."""

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np

from mbdp.robustness import parameters
from mbdp.robustness.axes import NO_AXES, OwnAxes, axis_of, check_value
from mbdp.robustness.disturb import Disturbed
from mbdp.robustness.effect import check_effect
from mbdp.robustness.perturb import PerturbedPhysics
from mbdp.robustness.perturb import perturb as perturbed
from mbdp.types import BadInput

Range = tuple[float, float]
STREAM = 3  # of the episode's seed: `Disturbed` has 1 and 2


class Randomised(gymnasium.Wrapper):
    """An environment that draws each coefficient uniformly from its range at every reset.

    `Randomised(env, {"mass": (0.8, 1.2)})`. A seed given to `reset` fixes the coefficients too. They are of the nominal
    world, never of the last one. `perturb` names parameters of one's own environment, as in `evaluate_grid`. What `env`
    was perturbed with before stays as it is.
    """

    def __init__(
        self, env: gymnasium.Env, ranges: Mapping[str, Range], perturb: parameters.Perturbations | None = None
    ) -> None:
        own = parameters.own_axes(parameters.declare(env, perturb))
        self.ranges = check_ranges(ranges, own)
        self.whole = {name: axis_of(name, own).whole for name in ranges}
        self.fixed = {name: value for name, value in _coefficients_of(env) if value != axis_of(name, own).neutral}
        if both := [name for name in self.ranges if name in self.fixed]:
            raise BadInput(f"{both[0]} is both fixed and drawn at random: choose one")
        bare = perturbed(env, {})
        perturbed(bare, self.fixed | {name: high for name, (_, high) in self.ranges.items()})
        check_effect(bare, self.ranges)
        super().__init__(perturbed(bare, self.fixed))
        self.rng = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode in a new world; info["coefficients"] says in which."""
        if seed is not None:
            self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM,)))
        drawn = {name: self._draw(name) for name in self.ranges}
        self.env = perturbed(self.env, self.fixed | drawn)
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info | {"coefficients": drawn}

    def _draw(self, name: str) -> float:
        low, high = self.ranges[name]
        if self.whole[name]:
            return float(self.rng.integers(int(low), int(high), endpoint=True))
        return float(self.rng.uniform(low, high))


def check_ranges(ranges: Mapping[str, Range], own: OwnAxes = NO_AXES) -> dict[str, Range]:
    """The ranges as pairs of floats, each within the limits of its axis, or BadInput."""
    if not ranges:
        raise BadInput("randomise needs at least one axis, for example mass=0.8:1.2")
    checked = {}
    for name, (low, high) in ranges.items():
        checked[name] = check_value(name, low, own), check_value(name, high, own)
        if low > high:
            raise BadInput(f"{name} must have a range from low to high, as 0.8:1.2; it is {low:g}:{high:g}")
    return checked


def _coefficients_of(env: gymnasium.Env) -> Iterator[tuple[str, float]]:
    """What the environment has been perturbed with."""
    while isinstance(env, (Disturbed, PerturbedPhysics, parameters.PerturbedParameters)):
        yield from env.coefficients.items()
        env = env.env
