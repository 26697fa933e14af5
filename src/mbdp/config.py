"""The whole configuration of a run in one frozen dataclass; methods and ablation arms are its diffs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, get_args

from mbdp.plans import (
    LARGEST_BLOCK,
    Activation,
    BiasName,
    Budget,
    Group,
    MemberPer,
    NoisePer,
    Plan,
    Shape,
    TrainingRollout,
)
from mbdp.types import BadInput, Reward, Spec, Termination

SMALLEST_BLOCK = 1_000  # rows; in smaller blocks calling costs more than computing


def option(default: Any, text: str) -> Any:
    """A field with the sentence that `mbdp train --help` shows."""
    return field(default=default, metadata={"help": text})


def redefault(parent: type, name: str, default: Any) -> Any:
    """A parent's field with another default."""
    return option(default, next(one.metadata["help"] for one in fields(parent) if one.name == name))


@dataclass(frozen=True)
class Common:
    """What every system has: a learned model, networks for policy and values, and the two dropouts."""

    steps: int = option(20_000, "env steps in all, random ones included; known tasks have their own default")
    alpha: float = option(0.0, "rollout dropout: fraction of imagined samples to drop, highest first")
    beta: float = option(0.0, "model dropout: fraction of ensemble members to drop, most biased first")

    members: int = option(1, "members of the ensemble")
    model_width: int = option(200, "units per hidden layer of a member")
    model_depth: int = option(4, "hidden layers of a member")
    bias: BiasName = option("distance", "hold-out score that ranks members: next-state distance (paper) or MSE (MBPO)")
    fit_batch: int = option(256, "batch size of a member's gradient step")
    model_learning_rate: float = option(1e-3, "learning rate of the ensemble")

    width: int = option(256, "units per hidden layer of actor and critics")
    depth: int = option(2, "hidden layers of actor and critics")
    discount: float = option(0.99, "discount, gamma")

    def __post_init__(self) -> None:
        for one in fields(self):
            value, name = getattr(self, one.name), one.name.replace("_", "-")
            check, wanted = _BY_NAME.get(one.name) or _BY_TYPE.get(one.type) or (_anything, "")
            if not check(value):
                raise BadInput(f"{name} must be {wanted}; it is {value!r}")
            if (choices := get_args(one.type)) and isinstance(choices[0], str) and value not in choices:
                raise BadInput(f"{name} must be one of {', '.join(choices)}; it is {value!r}")
        if not self.steps and not getattr(self, "data_steps", 0):
            raise BadInput("steps must be a whole number, at least 1, or 0 to learn from --data alone; it is 0")
        if self.beta > 0 and self.members_kept == self.members:
            least = next(n for n in range(2, 10**4) if _kept(n, self.beta) < n)
            raise BadInput(f"members must be at least {least} for beta={self.beta:g} to drop one; it is {self.members}")

    @property
    def members_kept(self) -> int:
        """Number of members that model dropout keeps, if none has diverged."""
        return _kept(self.members, self.beta)

    @property
    def remarks(self) -> list[str]:
        """Notes for the user on these settings."""
        effective = 1 - self.members_kept / self.members
        if abs(effective - self.beta) < 0.01:
            return []
        dropped = self.members - self.members_kept
        return [f"beta={self.beta:g} of {self.members} members drops {dropped} of them, in effect {effective:.3f}"]

    def discount_at(self, step: int) -> float:
        """Gamma at env step `step`."""
        return self.discount

    @property
    def model_shape(self) -> dict[str, Any]:
        return {"members": self.members, "width": self.model_width, "depth": self.model_depth}


def _kept(members: int, beta: float) -> int:
    """How many `model_dropout` keeps."""
    return max(1, round((1 - beta) * members))


@dataclass(frozen=True)
class Config(Common):
    """MBDP with the default preset's settings."""

    alpha: float = redefault(Common, "alpha", 0.5)
    beta: float = redefault(Common, "beta", 0.2)
    group: Group = option("returns", "samples that rollout dropout compares; 'returns' needs expansion above 0")
    samples_per_state: int = option(2, "rollouts per start state, or returns per (s, a); not used with group 'members'")
    expansion: int = option(3, "length H of the training rollout; 0 trains SAC on single imagined steps")
    random_steps: int = option(
        1_000, "env steps with random actions before training starts (long tasks: up to 2,500); none with --data"
    )
    cut_episodes: int = option(
        100, "training cuts an episode whose last so many steps earned less than half of what is usual; 0 = never"
    )
    data_steps: int = option(
        0, "learning from --data before the first env step, counted in env steps; 0 = one per row, 20,000 at most"
    )

    members: int = redefault(Common, "members", 5)
    model_depth: int = redefault(Common, "model_depth", 3)
    model_noise: NoisePer = option("output", "model variance: one per output dimension, or predicted from each input")
    model_layer_norm: bool = option(True, "LayerNorm in the models")
    bootstrap: bool = option(
        True, "fit each member to a bootstrap of the real rows, as MBPO does; if not, to all of them"
    )
    member_per: MemberPer = option("row", "draw a member for each imagined row, or one for all rows of a step")
    model_every: int = option(250, "env steps between two refits of the ensemble")
    fit_steps: int = option(200, "gradient steps per refit, warm-started; 0 = stop early by hold-out error, as MBPO")
    fit_recent: float = option(0.5, "share of each fit minibatch from the newest tenth of the real rows; 0 = uniform")
    first_fit_steps: int = option(1_600, "gradient steps of the first fit, unless fit_steps is 0")
    longest_epoch: int = option(
        0, "early stopping: most gradient steps between two checks of the hold-out error; 0 = a whole epoch"
    )
    most_fit_steps: int = option(
        0, "early stopping: most gradient steps of a refit, not of the first fit; 0 = no limit"
    )

    rollouts: int = option(2_500, "imagined rollouts after each refit")
    recent: float = option(0.5, "share of rollouts that start in the newest tenth of the real rows; 0 = uniform")
    imagined_per_drawn: float = option(
        0.0, "cap on imagined rows per row that updates sample before the next refit; 0 = no cap"
    )
    horizon: tuple[int, int, int, int] = option(
        (20, 20, 0, 0), "rollout length: grows from FROM to TO between env steps FIRST and LAST"
    )
    last_discount: float = option(0.0, "discount at the end of the horizon's growth; 0 = discount stays fixed")
    d_model_fits: int = option(1, "refits whose rollouts d_model holds")

    updates_per_step: int = option(2, "critic updates per env step")
    update_every: int = option(10, "env steps between two rounds of updates; a round makes up for all of them")
    actor_every: int = option(1, "critic updates per update of actor and temperature")
    real_ratio: float = option(0.05, "share of real rows in each minibatch; 1 = model-free SAC")
    real_targets: bool = option(
        False, "critics also regress on the real rows of each minibatch, at the action that was taken; needs expansion"
    )
    batch: int = option(256, "batch size of actor and critic updates")
    critics: int = option(2, "number of critics; a target is the smaller of a random pair")
    activation: Activation = option("silu", "activation of actor and critics")
    layer_norm: bool = option(True, "LayerNorm in the critics")
    normalised_inputs: bool = option(
        True, "normalise inputs of actor and critics by the mean and deviation of real observations"
    )
    learning_rate: float = option(3e-4, "learning rate of actor, critics and temperature")
    tau: float = option(0.02, "rate at which target critics follow the critics")
    target_entropy: float = option(math.nan, "target entropy; nan = -actions, or -actions/2 if expansion is 0")
    temperature: float = option(0.1, "initial entropy temperature")
    discount: float = redefault(Common, "discount", 0.995)
    average_over: int = option(
        1_000, "env steps (a tenth of all at most) over which the evaluated policy's weights are averaged; 1 = newest"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        first, last, begin, end = self.horizon
        if first < 1 or last < first or begin < 0 or end < begin:
            raise BadInput(f"horizon must be 1 <= FROM <= TO and 0 <= FIRST <= LAST; it is {self.horizon}")
        if not self.imagines and (self.alpha > 0 or self.beta > 0):
            raise BadInput(
                f"alpha and beta must be 0 where nothing is imagined (sac, real-ratio 1); they are {self.alpha} and "
                f"{self.beta}"
            )
        if self.updates_per_step % self.actor_every:
            actor_every = f"a multiple of actor-every, {self.actor_every}"
            raise BadInput(f"updates-per-step must be {actor_every}; it is {self.updates_per_step}")
        self._check_dropout()
        self._check_updates()

    def _check_dropout(self) -> None:
        """Refuse settings under which alpha is not the share that is dropped, or another setting is never used."""
        if self.group == "members" and self.member_per == "step":
            raise BadInput("member-per must be row where group is members, which imagines every row in every member")
        if self.group == "returns" and self.imagines and not self.expansion:
            raise BadInput("group must be state, members, batch or trajectory where expansion is 0; it is 'returns'")
        if not self.alpha or self.group == "batch":
            return
        name, size = "samples-per-state", self.samples_per_state
        if self.group == "members":
            name, size = "members kept", self.members_kept
        if size < 2:
            raise BadInput(f"{name} must be at least 2 for alpha={self.alpha:g} to compare them; it is {size}")
        if self.alpha > 1 - 1 / size:
            most = f"{1 - 1 / size:.3g} in groups of {size} ({name})"
            raise BadInput(f"alpha must be at most {most}; it is {self.alpha:g}")

    def _check_updates(self) -> None:
        if self.expansion and not self.imagines:
            raise BadInput("expansion must be 0 where nothing is imagined (sac, real-ratio 1)")
        if self.expansion and self.actor_every != 1:
            raise BadInput(f"actor-every must be 1 where expansion is above 0; it is {self.actor_every}")
        if self.expansion and self.last_discount > self.discount:
            raise BadInput("last-discount must be 0 where expansion is above 0")
        if self.real_targets and not self.expansion:
            raise BadInput("real-targets must be off where expansion is 0: there SAC learns from all real rows anyway")
        if not self.expansion and self.critics != 2:
            raise BadInput(f"critics must be 2 where expansion is 0; it is {self.critics}")
        if self.fit_recent and not self.fit_steps:
            raise BadInput("fit-recent must be 0 where fit-steps is 0: early stopping goes through all rows")
        if self.critics < 2:
            raise BadInput(f"critics must be at least 2; it is {self.critics}")

    @property
    def imagines(self) -> bool:
        """Whether the model is used."""
        return self.real_ratio < 1

    @property
    def warm_up(self) -> int:
        """Number of env steps with random actions; none after learning from data."""
        return 0 if self.data_steps else self.random_steps

    def fits_at(self, past_warm_up: int) -> bool:
        """Whether the ensemble is fitted `past_warm_up` env steps after the random ones."""
        return self.imagines and past_warm_up >= 0 and past_warm_up % self.model_every == 0

    def updates_at(self, past_warm_up: int) -> int:
        """Rounds of updates at this env step; with training rollouts, the first makes up for the random steps."""
        if past_warm_up < 0 or past_warm_up % self.update_every:
            return 0
        return max(1, self.warm_up // self.update_every) if self.expansion and past_warm_up == 0 else 1

    def horizon_at(self, step: int) -> int:
        """Rollout length at env step `step`."""
        first, last, _, _ = self.horizon
        return int(first + self._grown_at(step) * (last - first))

    def discount_at(self, step: int) -> float:
        """Gamma at env step `step`; if it grows, 1 / (1 - gamma) grows linearly."""
        if self.last_discount <= self.discount:
            return self.discount
        first, last = 1 / (1 - self.discount), 1 / (1 - self.last_discount)
        return 1 - 1 / (first + self._grown_at(step) * (last - first))

    def _grown_at(self, step: int) -> float:
        _, _, begin, end = self.horizon
        return min(1.0, max(0.0, (step - begin) / max(end - begin, 1)))

    @property
    def block(self) -> int:
        """Rows that are imagined in one call: a quarter of all, so that even half of them keep two cores busy."""
        return min(LARGEST_BLOCK, max(SMALLEST_BLOCK, -(-self.rollouts // 4)))

    def rollouts_of(self, horizon: int) -> int:
        """Number of rollouts of this length after a fit, capped by `imagined_per_drawn`; in whole pairs of blocks."""
        if not self.imagined_per_drawn:
            return self.rollouts
        drawn = self.model_every * self.updates_per_step * self.batch * (1 - self.real_ratio)
        pairs = int(self.imagined_per_drawn * drawn / horizon / (2 * self.block))
        return min(self.rollouts, max(1, pairs) * 2 * self.block)

    def starts(self, kept: int, horizon: int) -> int:
        """Number of start states after a fit; each gives one sample per sibling or per kept member."""
        samples = {"members": kept, "returns": 1}.get(self.group, self.samples_per_state)
        return -(-self.rollouts_of(horizon) // samples)

    def d_model_capacity(self, horizon: int) -> int:
        """Capacity of `d_model` in rows; it never shrinks while the horizon grows."""
        most = max(self.rollouts_of(length) * length for length in range(1, horizon + 1))
        return self.d_model_fits * most if self.imagines else 1

    def budget(self, termination: Termination | None) -> Budget:
        """How long each fit of the ensemble lasts."""
        return Budget(
            steps=self.fit_steps,
            first_steps=self.first_fit_steps,
            batch=self.fit_batch,
            learning_rate=self.model_learning_rate,
            learn_termination=termination is None,
            longest_epoch=self.longest_epoch,
            most_steps=self.most_fit_steps,
            bootstrap=self.bootstrap,
            recent=self.fit_recent,
        )

    def plan(self, termination: Termination | None, reward: Reward | None = None) -> Plan:
        """How rollouts are imagined and which of their samples are compared."""
        return Plan(self.group, self.alpha, self.samples_per_state, self.member_per, termination, self.block, reward)

    @property
    def model_shape(self) -> dict[str, Any]:
        return super().model_shape | {"noise": self.model_noise, "layer_norm": self.model_layer_norm}

    @property
    def agent_shape(self) -> Shape:
        return Shape(**{name: getattr(self, name) for name in Shape._fields})

    @property
    def minibatches(self) -> dict[str, Any]:
        rows = self.batch // self.siblings if self.expansion else self.batch
        return {"real_ratio": self.real_ratio, "batch": rows, "count": self.updates_per_step * self.update_every}

    @property
    def real_target_rows(self) -> int:
        """Rows of each minibatch on which critics regress as real transitions."""
        return round(self.real_ratio * self.minibatches["batch"]) if self.real_targets else 0

    @property
    def siblings(self) -> int:
        """Returns of each (s, a) of a training rollout."""
        return self.samples_per_state if self.group == "returns" else 1

    def training_rollout(
        self, spec: Spec, termination: Termination | None, reward: Reward | None = None
    ) -> TrainingRollout:
        """How updates learn where `expansion` is above 0."""
        return TrainingRollout(
            steps=self.expansion,
            siblings=self.siblings,
            alpha=self.alpha if self.group == "returns" else 0.0,
            member_per_row=self.member_per == "row",
            termination=termination,
            discount=self.discount,
            tau=self.tau,
            target_entropy=self._target_entropy(spec),
            learning_rate=self.learning_rate,
            reward=reward,
        )

    def sac_settings(self, spec: Spec) -> dict[str, Any]:
        names = ("actor_every", "learning_rate", "tau")
        averaged = {"average_over": self.average_over / self.update_every}
        return {name: getattr(self, name) for name in names} | averaged | {"target_entropy": self._target_entropy(spec)}

    def _target_entropy(self, spec: Spec) -> float:
        if math.isnan(self.target_entropy):
            return -spec.action_size * (1.0 if self.expansion else 0.5)
        return self.target_entropy


Rule = tuple[Callable[[Any], bool], str]  # what a value must pass, and that in words


def _anything(x: Any) -> bool:
    return True


def _fraction(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and 0 <= x < 1


def _count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 1


def _positive(x: Any) -> bool:
    return isinstance(x, int | float) and x > 0 and math.isfinite(x)


_BY_TYPE: dict[Any, Rule] = {
    int: (_count, "a whole number, at least 1"),
    float: (_positive, "a positive number"),
}
_BY_NAME: dict[str, Rule] = {
    **dict.fromkeys(("alpha", "beta"), (_fraction, "a number in [0, 1), the fraction that is dropped")),
    **dict.fromkeys(
        ("real_ratio", "recent", "fit_recent", "discount", "trace"), (lambda x: 0 <= x <= 1, "a number in [0, 1]")
    ),
    "last_discount": (_fraction, "a number in [0, 1)"),
    **dict.fromkeys(
        ("steps", "data_steps", "cut_episodes", "fit_steps", "longest_epoch", "most_fit_steps", "expansion"),
        (lambda x: isinstance(x, int) and x >= 0, "a whole number, at least 0"),
    ),
    "tau": (lambda x: 0 < x <= 1, "a number in (0, 1]"),
    **dict.fromkeys(("entropy_bonus", "imagined_per_drawn"), (lambda x: 0 <= x < math.inf, "a number, at least 0")),
    "target_entropy": (
        lambda x: isinstance(x, int | float) and not math.isinf(x),
        "a number, or nan for -actions/2",
    ),
}
