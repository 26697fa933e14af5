"""The whole configuration of a run in one frozen dataclass; methods and ablation arms are its diffs."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from mbdp.envs.tasks import task_of
from mbdp.models.fit import BiasName, Budget
from mbdp.rollout import Group, MemberPer, Plan, Termination
from mbdp.types import BadInput, Spec


def option(default: Any, text: str) -> Any:
    """A field with the sentence that `mbdp train --help` shows."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Config:
    """MBDP with the default preset's settings."""

    steps: int = option(20_000, "env steps, random ones included")
    alpha: float = option(0.2, "rollout dropout: fraction of imagined samples dropped, highest reward first")
    beta: float = option(0.2, "model dropout: fraction of members dropped, most biased first")
    group: Group = option("members", "which imagined samples rollout dropout compares")
    samples_per_state: int = option(10, "rollouts from each start state (grouping 'members' takes one per kept member)")
    random_steps: int = option(1_000, "env steps with random actions before learning starts")

    members: int = option(7, "models in the ensemble")
    model_width: int = option(200, "units in each hidden layer of a model")
    model_depth: int = option(4, "hidden layers of a model")
    member_per: MemberPer = option("row", "a member is drawn for each imagined row, or one for all rows of a step")
    bias: BiasName = option("distance", "score that ranks members: next-state distance (paper) or MSE (MBPO)")
    model_every: int = option(250, "env steps between two fits of the ensemble")
    fit_steps: int = option(
        100, "gradient steps in each fit, warm-started; 0 stops early by hold-out error, as MBPO does"
    )
    first_fit_steps: int = option(2_000, "gradient steps in the first fit, if fit_steps is not 0")
    fit_batch: int = option(256, "rows in a member's minibatch")
    model_learning_rate: float = option(1e-3, "Adam's step size for the ensemble")

    rollouts: int = option(30_000, "imagined rollouts after each fit")
    horizon: tuple[int, int, int, int] = option(
        (1, 1, 0, 0), "rollout length FROM TO, growing between env steps FIRST LAST"
    )
    d_model_fits: int = option(4, "d_model holds the rollouts of so many fits")

    updates_per_step: int = option(8, "SAC's critic updates per env step")
    actor_every: int = option(2, "critic updates per update of actor and temperature")
    real_ratio: float = option(0.05, "share of real rows in SAC's minibatches; 1 is plain SAC")
    batch: int = option(256, "rows in SAC's minibatch")
    width: int = option(256, "units in each hidden layer of actor and critics")
    depth: int = option(2, "hidden layers of actor and critics")
    layer_norm: bool = option(True, "layer normalisation in the critics")
    learning_rate: float = option(3e-4, "Adam's step size for actor, critics and temperature")
    discount: float = option(0.99, "gamma")
    tau: float = option(0.005, "step of the target critics towards the critics")
    target_entropy: float = option(math.nan, "entropy the temperature aims at; nan means -actions/2")
    temperature: float = option(1.0, "initial temperature")

    def __post_init__(self) -> None:
        for name, check, wanted in _RULES:
            value = getattr(self, name)
            if not check(value):
                raise BadInput(f"{name.replace('_', '-')} must be {wanted}; it is {value!r}")
        for name, kind in (("group", Group), ("member_per", MemberPer), ("bias", BiasName)):
            if getattr(self, name) not in get_args(kind):
                raise BadInput(f"{name} must be one of {', '.join(get_args(kind))}; it is {getattr(self, name)!r}")
        first, last, begin, end = self.horizon
        if first < 1 or last < first or begin < 0 or end < begin:
            raise BadInput(f"horizon must be 1 <= FROM <= TO and 0 <= FIRST <= LAST; it is {self.horizon}")
        if self.updates_per_step % self.actor_every:
            raise BadInput(f"updates-per-step must be a multiple of actor-every; it is {self.updates_per_step}")
        if self.alpha > 0 and self.group in ("state", "trajectory") and self.samples_per_state < 2:
            raise BadInput(
                f"samples-per-state must be at least 2 for alpha={self.alpha} to compare them; it is "
                f"{self.samples_per_state} (set --alpha 0, or --group members or batch)"
            )

    @property
    def imagines(self) -> bool:
        """Whether the model is used at all."""
        return self.real_ratio < 1

    def horizon_at(self, step: int) -> int:
        """Rollout length after so many env steps."""
        first, last, begin, end = self.horizon
        grown = min(1.0, max(0.0, (step - begin) / max(end - begin, 1)))
        return int(first + grown * (last - first))

    def starts(self, kept: int) -> int:
        """Start states of the rollouts after a fit, of which each gives one sample per sibling or per kept member."""
        return max(1, self.rollouts // (kept if self.group == "members" else self.samples_per_state))

    def d_model_capacity(self, horizon: int) -> int:
        return self.d_model_fits * self.rollouts * horizon if self.imagines else 1

    def budget(self, termination: Termination | None) -> Budget:
        """How long each fit of the ensemble lasts."""
        return Budget(
            self.fit_steps, self.first_fit_steps, self.fit_batch, self.model_learning_rate, termination is None
        )

    def plan(self, termination: Termination | None) -> Plan:
        """How rollouts are imagined and which of their samples are compared."""
        return Plan(self.group, self.alpha, self.samples_per_state, self.member_per, termination)

    @property
    def model_shape(self) -> dict[str, int]:
        return {"members": self.members, "width": self.model_width, "depth": self.model_depth}

    @property
    def agent_shape(self) -> dict[str, Any]:
        names = ("width", "depth", "layer_norm", "learning_rate", "temperature")
        return {name: getattr(self, name) for name in names}

    @property
    def minibatches(self) -> dict[str, Any]:
        return {"real_ratio": self.real_ratio, "batch": self.batch, "count": self.updates_per_step}

    def sac_settings(self, spec: Spec) -> dict[str, Any]:
        entropy = -spec.action_size / 2 if math.isnan(self.target_entropy) else self.target_entropy
        names = ("actor_every", "learning_rate", "discount", "tau")
        return {name: getattr(self, name) for name in names} | {"target_entropy": entropy}


Algo = Literal["mbdp", "mbpo", "sac", "alpha-only", "beta-only", "no-dropout"]
PresetName = Literal["default", "paper"]
Preference = Literal["balanced", "robust", "efficient"]

# Section 3.3.3: more alpha and less beta for robustness, the reverse for efficiency.
PREFERENCES: dict[str, dict[str, float]] = {
    "balanced": {"alpha": 0.2, "beta": 0.2},
    "robust": {"alpha": 0.4, "beta": 0.1},
    "efficient": {"alpha": 0.1, "beta": 0.4},
}

MBPO: dict[str, Any] = {
    "alpha": 0.0,
    "beta": 2 / 7,
    "members": 7,
    "group": "state",  # with one sample per state: no grouping at all
    "samples_per_state": 1,
    "member_per": "row",
    "bias": "mse",
}
METHODS: dict[str, dict[str, Any]] = {
    "mbdp": {},
    "mbpo": MBPO,
    "sac": {"real_ratio": 1.0, "alpha": 0.0, "beta": 0.0},
    "alpha-only": {"beta": 0.0},
    "beta-only": {"alpha": 0.0},
    "no-dropout": {"alpha": 0.0, "beta": 0.0},
}
# Appendix B of the paper; what it leaves open is as MBPO's authors run it.
PAPER: dict[str, Any] = {
    "random_steps": 5_000,
    "fit_steps": 0,
    "layer_norm": False,
    "members": 10,
    "actor_every": 1,
    "model_every": 250,
    "rollouts": 100_000,
    "member_per": "step",
}


def preset(algo: str, env_id: str, name: str = "default") -> Config:
    """The settings of a method for an environment."""
    task = task_of(env_id)
    config = replace(Config(), steps=task.steps, target_entropy=_or_nan(task.target_entropy), horizon=task.horizon)
    if name == "paper":
        config = replace(config, **PAPER, updates_per_step=task.updates_per_step)
    config = replace(config, **METHODS[algo])
    return replace(config, updates_per_step=1, actor_every=1) if algo == "sac" else config


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _fraction(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and 0 <= x < 1


def _positive(x: Any) -> bool:
    return isinstance(x, int | float) and x > 0 and math.isfinite(x)


_COUNTS = (
    *("steps", "samples_per_state", "random_steps", "members", "model_width", "model_depth", "model_every"),
    *("first_fit_steps", "fit_batch", "rollouts", "d_model_fits", "updates_per_step", "batch", "width", "depth"),
    "actor_every",
)
_RULES = [
    *[(name, _fraction, "a number in [0, 1), the fraction that is dropped") for name in ("alpha", "beta")],
    *[
        (name, lambda x: isinstance(x, int) and not isinstance(x, bool) and x >= 1, "a whole number, at least 1")
        for name in _COUNTS
    ],
    ("fit_steps", lambda x: isinstance(x, int) and x >= 0, "a whole number, at least 0"),
    ("real_ratio", lambda x: 0 <= x <= 1, "a number in [0, 1]"),
    ("discount", lambda x: 0 <= x <= 1, "a number in [0, 1]"),
    ("tau", lambda x: 0 < x <= 1, "a number in (0, 1]"),
    *[(name, _positive, "a positive number") for name in ("learning_rate", "model_learning_rate", "temperature")],
    ("target_entropy", lambda x: isinstance(x, int | float) and not math.isinf(x), "a number, or nan for -actions/2"),
]
