"""Settings of rollouts, fits and training rollouts as plain values, so that reading one needs no JAX."""

from typing import Literal, NamedTuple

from mbdp.types import Reward, Termination

Group = Literal["state", "members", "batch", "trajectory", "returns"]
MemberPer = Literal["step", "row"]
LARGEST_BLOCK = 25_000  # rows that are imagined at once; in larger ones products gain little more
BiasName = Literal["distance", "mse"]
NoisePer = Literal["input", "output"]
Activation = Literal["relu", "silu"]


class Plan(NamedTuple):
    """How to imagine. Grouped by `returns`, dropout has its place in the updates, and all of `d_model` is kept."""

    group: Group
    alpha: float
    samples: int
    member_per: MemberPer
    termination: Termination | None
    block: int = LARGEST_BLOCK
    reward: Reward | None = None  # known, or None where the model's is used


class TrainingRollout(NamedTuple):
    """How to make a training rollout and what to learn from it; one for each set of settings is compiled."""

    steps: int  # H
    siblings: int  # returns of each (s, a) that dropout compares
    alpha: float
    member_per_row: bool  # without siblings: each member takes a share of the rows, or one member takes all
    termination: Termination | None
    discount: float
    tau: float
    target_entropy: float
    learning_rate: float
    reward: Reward | None = None


class Budget(NamedTuple):
    """How long to fit: a fixed number of steps on top of the last fit, or MBPO's early stopping if `steps` is 0."""

    steps: int
    first_steps: int  # of the first fit, which has no last one to start from
    batch: int
    learning_rate: float
    learn_termination: bool
    recent: float = 0.0  # share of each minibatch from the newest tenth of the rows, with a fixed number of steps
    # With early stopping:
    longest_epoch: int = 0  # steps between two looks at the hold-out error; 0 is a whole epoch
    most_steps: int = 0  # of a fit that has a last one to start from; 0 is no limit
    bootstrap: bool = True  # each member's own draw of the rows, which leaves a third of them out; if not, all rows


class Shape(NamedTuple):
    """What an agent is made of."""

    width: int
    depth: int
    critics: int = 2
    activation: str = "relu"
    layer_norm: bool = False  # in the critics
    normalised_inputs: bool = False  # by statistics of the real observations
    learning_rate: float = 3e-4
    temperature: float = 1.0
