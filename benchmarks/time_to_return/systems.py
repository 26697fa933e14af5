"""The systems that are compared, each with `learn(env steps)` and `act(observations)`, as their libraries set them up.

mbrl-lib's `train` cannot be asked for a policy in between, so the body of its loop is repeated with its own functions
and its own settings for Hopper. Its SAC is made here and not by Hydra, whose file names gym's action space.
"""

from collections.abc import Callable
from importlib.resources import files
from types import SimpleNamespace
from typing import Any, Protocol

import mbrl.models
import numpy as np
import sbx
import torch
from mbrl.algorithms.mbpo import maybe_replace_sac_buffer, rollout_model_and_populate_sac_buffer
from mbrl.env.termination_fns import hopper
from mbrl.planning.sac_wrapper import SACAgent
from mbrl.third_party.pytorch_sac_pranz24.sac import SAC
from mbrl.util import ReplayBuffer
from mbrl.util.common import get_basic_buffer_iterators, step_env_and_add_to_buffer
from mbrl.util.math import truncated_linear
from omegaconf import OmegaConf

from mbdp import MBDP
from mbdp.envs.tasks import make

ENV = "Hopper-v5"
RANDOM_STEPS = 5_000  # of mbrl-lib's MBPO, by the untrained policy


class System(Protocol):
    """Something that learns on the task."""

    def learn(self, steps: int) -> object:
        """Take so many more env steps."""

    def act(self, observations: np.ndarray) -> np.ndarray:
        """The deterministic policy's actions."""


class Ours:
    """The default preset."""

    def __init__(self, seed: int):
        self.agent = MBDP(ENV, seed=seed)

    def learn(self, steps: int) -> object:
        return self.agent.learn(steps)

    def act(self, observations: np.ndarray) -> np.ndarray:
        return self.agent.predict(observations)[0]


class Sbx:
    """An algorithm of SBX with its own defaults."""

    def __init__(self, kind: Any, seed: int):
        self.model = kind("MlpPolicy", make(ENV), seed=seed)

    def learn(self, steps: int) -> object:
        return self.model.learn(steps, reset_num_timesteps=False)

    def act(self, observations: np.ndarray) -> np.ndarray:
        return self.model.predict(observations, deterministic=True)[0]


class MbrlLib:
    """MBPO as mbrl-lib's own settings for Hopper have it."""

    def __init__(self, seed: int):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        file = files("mbrl").joinpath("examples/conf/overrides/mbpo_hopper.yaml")
        self.settings: Any = OmegaConf.create(file.read_text())
        self.env, self.rng = make(ENV), np.random.default_rng(seed)
        self.sizes = self.env.observation_space.shape, self.env.action_space.shape
        self.real = ReplayBuffer(self.settings.num_steps, *self.sizes, rng=self.rng)
        self.imagined: ReplayBuffer | None = None
        self._make_model(seed)
        self._make_agent()
        self.steps = self.updates = 0
        self.observation, _ = self.env.reset(seed=seed)
        for _ in range(RANDOM_STEPS):
            self._step(sample=True)

    def learn(self, steps: int) -> None:
        """The random steps of the beginning count as env steps, too, as ours do."""
        while steps and self.steps < RANDOM_STEPS:
            self.steps, steps = self.steps + 1, steps - 1
        every = self.settings.freq_train_model
        for _ in range(steps):
            self._step(sample=False)  # so its own loop acts, once it learns
            self.steps += 1
            if self.steps % every == 0:
                self._fit_and_imagine(every)
            if self.imagined is None or len(self.imagined) < self.settings.sac_batch_size:
                continue
            for _ in range(self.settings.num_sac_updates_per_step):
                batch = self.settings.sac_batch_size
                self.agent.sac_agent.update_parameters(self.imagined, batch, self.updates, None, reverse_mask=True)
                self.updates += 1

    def act(self, observations: np.ndarray) -> np.ndarray:
        return self.agent.act(observations, batched=True)

    def _step(self, *, sample: bool) -> None:
        self.observation, _, terminated, truncated, _ = step_env_and_add_to_buffer(
            self.env, self.observation, self.agent, {"sample": sample}, self.real
        )
        if terminated or truncated or (self.steps + 1) % self.settings.epoch_length == 0:
            self.observation, _ = self.env.reset()

    def _fit_and_imagine(self, every: int) -> None:
        settings = self.settings
        self.model.update_normalizer(self.real.get_all())
        data = get_basic_buffer_iterators(
            self.real,
            settings.model_batch_size,
            settings.validation_ratio,
            ensemble_size=len(self.model),
            shuffle_each_epoch=True,
        )
        self.trainer.train(*data, patience=settings.patience, silent=True)
        length = int(truncated_linear(*settings.rollout_schedule, self.steps // settings.epoch_length + 1))
        rollouts = settings.effective_model_rollouts_per_step * every
        capacity = length * rollouts * (settings.epoch_length // every) * settings.num_epochs_to_retain_sac_buffer
        self.imagined = maybe_replace_sac_buffer(self.imagined, *self.sizes, capacity, 0)
        rollout_model_and_populate_sac_buffer(self.world, self.real, self.agent, self.imagined, True, length, rollouts)

    def _make_model(self, seed: int) -> None:
        observation, action = (shape[0] for shape in self.sizes)
        networks = mbrl.models.GaussianMLP(
            observation + action,
            observation + 1,
            "cpu",
            num_layers=4,
            ensemble_size=7,
            hid_size=200,
            propagation_method="random_model",
            learn_logvar_bounds=False,
            activation_fn_cfg={"_target_": "torch.nn.SiLU"},
        )
        settings = self.settings
        self.model = mbrl.models.OneDTransitionRewardModel(
            networks, target_is_delta=True, normalize=True, num_elites=settings.num_elites
        )
        self.trainer = mbrl.models.ModelTrainer(self.model, optim_lr=settings.model_lr, weight_decay=settings.model_wd)
        generator = torch.Generator().manual_seed(seed)
        self.world = mbrl.models.ModelEnv(self.env, self.model, hopper, generator=generator)

    def _make_agent(self) -> None:
        names = "gamma tau alpha policy target_update_interval automatic_entropy_tuning target_entropy hidden_size lr"
        settings = {name: self.settings[f"sac_{name}"] for name in names.split()}
        sac = SAC(self.sizes[0][0], self.env.action_space, SimpleNamespace(**settings, device="cpu"))
        self.agent = SACAgent(sac)


SYSTEMS: dict[str, Callable[[int], System]] = {
    "mbdp": Ours,
    "SBX CrossQ": lambda seed: Sbx(sbx.CrossQ, seed),
    "SBX SAC": lambda seed: Sbx(sbx.SAC, seed),
    "mbrl-lib MBPO": MbrlLib,
}
