"""SLBO's settings, apart from what needs JAX."""

from dataclasses import dataclass, replace
from typing import Any

from mbdp.config import Common, option, redefault
from mbdp.envs.tasks import task_of
from mbdp.presets import at_most_a_quarter


@dataclass(frozen=True)
class Config(Common):
    """SLBO with the default preset's settings."""

    model_width: int = redefault(Common, "model_width", 500)
    model_depth: int = redefault(Common, "model_depth", 2)
    fit_batch: int = redefault(Common, "fit_batch", 128)
    steps_ahead: int = option(2, "model steps in the multi-step loss")
    stage: int = option(1_000, "env steps between two stages of training")
    rounds: int = option(5, "rounds per stage: model steps, then policy steps")
    model_steps: int = option(100, "gradient steps of the model per round")
    policy_steps: int = option(40, "TRPO steps per round")
    lanes: int = option(4, "imagined episodes in parallel")
    imagined_steps: int = option(1_000, "imagined steps per lane for each TRPO step")
    width: int = redefault(Common, "width", 32)
    trace: float = option(0.95, "lambda of generalised advantage estimation")
    kl_bound: float = option(0.01, "largest KL divergence of a TRPO step")
    entropy_bonus: float = option(0.005, "weight of the entropy bonus")
    value_width: int = option(64, "units per hidden layer of the value function")
    value_epochs: int = option(5, "epochs of the value function per TRPO step")
    value_batch: int = option(64, "batch size of the value function")
    value_learning_rate: float = option(1e-3, "learning rate of the value function")

    @property
    def model_shape(self) -> dict[str, Any]:
        return super().model_shape | {"deterministic": True}


def preset(algo: str, env_id: str, name: str = "default") -> Config:
    """SLBO's settings for an environment; its authors share one set among all tasks."""
    config = replace(Config(), steps=task_of(env_id).steps)
    if name == "paper":
        stage = at_most_a_quarter(4_000, config.steps)
        config = replace(config, stage=stage, rounds=20 * stage // 4_000)
    return config
