"""STEVE's settings, apart from what needs JAX."""

from dataclasses import dataclass, replace
from typing import Any

from mbdp.config import Common, option, redefault
from mbdp.config import Config as ConfigOfMBDP
from mbdp.envs.tasks import task_of
from mbdp.presets import at_most_a_quarter
from mbdp.types import BadInput


@dataclass(frozen=True)
class Config(Common):
    """STEVE with the default preset's settings: its structure, with networks and budgets that a processor can bear."""

    members: int = redefault(Common, "members", 4)
    random_steps: int = redefault(ConfigOfMBDP, "random_steps", 1_000)
    expansion: int = option(3, "most model steps in a critic target")
    reward_members: int = option(4, "number of reward networks")
    critics: int = option(4, "number of critics")
    model_every: int = redefault(ConfigOfMBDP, "model_every", 250)
    fit_steps: int = redefault(ConfigOfMBDP, "fit_steps", 250)
    first_fit_steps: int = redefault(ConfigOfMBDP, "first_fit_steps", 2_000)
    updates_per_step: int = option(2, "updates of critics, actor and reward networks per env step")
    batch: int = redefault(ConfigOfMBDP, "batch", 256)
    width: int = redefault(Common, "width", 128)
    learning_rate: float = option(3e-4, "learning rate of actor, critics and reward networks")
    target_every: int = option(500, "updates between two copies of the critics to the target critics")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.expansion < 1:
            raise BadInput(f"expansion must be a whole number, at least 1; it is {self.expansion}")
        if self.alpha > 0 and self.members * self.reward_members * self.critics == 1:
            raise BadInput(
                f"members, reward-members or critics must be at least 2 for alpha={self.alpha} to compare targets; "
                "each is 1"
            )

    @property
    def model_shape(self) -> dict[str, Any]:
        return super().model_shape | {"deterministic": True}


# The authors' own: an hour of one core takes it a few thousand steps.
PUBLISHED: dict[str, Any] = {
    "model_width": 512,
    "model_depth": 8,
    "fit_steps": 1_000,
    "first_fit_steps": 10_000,
    "fit_batch": 512,
    "model_learning_rate": 3e-4,
    "updates_per_step": 4,
    "batch": 512,
    "depth": 4,
}


def preset(algo: str, env_id: str, name: str = "default") -> Config:
    """STEVE's settings for an environment; its authors have none for Ant, so all tasks share one set."""
    config = replace(Config(), steps=task_of(env_id).steps)
    if name == "paper":
        config = replace(config, **PUBLISHED, random_steps=at_most_a_quarter(10_000, config.steps))
    return config
