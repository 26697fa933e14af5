"""What is measured of mbrl-lib 0.2.0: its own models, trainer, buffers, model environment, SAC and loop of MBPO.

Its `train` function cannot be stopped after some steps, so `whole_algorithm` repeats the body of its loop with its own
functions and a fixed budget for the fit. Its parts are made here and not by Hydra, whose file names gym's action space.
"""

from collections.abc import Callable
from types import SimpleNamespace

import mbrl.models
import numpy as np
import torch
from benchmarks.speed.settings import (
    BATCH,
    DISCOUNT,
    ENV,
    KEPT,
    LEARNING_RATE,
    MEMBERS,
    MODEL_DEPTH,
    MODEL_LEARNING_RATE,
    MODEL_WIDTH,
    TARGET_ENTROPY,
    TAU,
    UPDATES_PER_STEP,
    WIDTH,
    Sizes,
)
from mbrl.algorithms.mbpo import rollout_model_and_populate_sac_buffer
from mbrl.env.termination_fns import no_termination
from mbrl.planning.sac_wrapper import SACAgent
from mbrl.third_party.pytorch_sac_pranz24.sac import SAC
from mbrl.util import ReplayBuffer
from mbrl.util.common import get_basic_buffer_iterators, step_env_and_add_to_buffer

from mbdp.envs.tasks import make
from mbdp.replay import Replay, unpack

Way = Callable[[], object]


class Parts:
    """Everything that mbrl-lib's MBPO holds in its hands."""

    def __init__(self, d_env: Replay, sizes: Sizes):
        self.sizes = sizes
        self.env = make(ENV)
        spec = d_env.spec
        self.real, self.imagined = (
            ReplayBuffer(capacity, (spec.observation_size,), (spec.action_size,), rng=np.random.default_rng(0))
            for capacity in (len(d_env) + 10_000, 4 * sizes.imagined)
        )
        for column in (self.imagined.obs, self.imagined.next_obs, self.imagined.action):
            column[:] = 0  # as in ours
        rows = unpack(d_env.rows[: len(d_env)], spec)
        never = np.zeros(len(d_env), bool)
        self.real.add_batch(rows.observation, rows.action, rows.next_observation, rows.reward, never, never)
        networks = mbrl.models.GaussianMLP(
            spec.observation_size + spec.action_size,
            spec.observation_size + 1,
            "cpu",
            num_layers=MODEL_DEPTH,
            ensemble_size=MEMBERS,
            hid_size=MODEL_WIDTH,
            propagation_method="random_model",
            learn_logvar_bounds=True,
            activation_fn_cfg={"_target_": "torch.nn.SiLU"},
        )
        self.model = mbrl.models.OneDTransitionRewardModel(
            networks, target_is_delta=True, normalize=True, num_elites=KEPT
        )
        self.model.update_normalizer(self.real.get_all())
        self.model.set_elite(list(range(KEPT)))
        self.trainer = mbrl.models.ModelTrainer(self.model, optim_lr=MODEL_LEARNING_RATE, weight_decay=1e-5)
        self.world = mbrl.models.ModelEnv(self.env, self.model, no_termination, generator=torch.Generator())
        settings = SimpleNamespace(
            gamma=DISCOUNT,
            tau=TAU,
            alpha=1.0,
            policy="Gaussian",
            target_update_interval=1,
            automatic_entropy_tuning=True,
            target_entropy=TARGET_ENTROPY,
            hidden_size=WIDTH,
            device="cpu",
            lr=LEARNING_RATE,
        )
        self.agent = SACAgent(SAC(spec.observation_size, self.env.action_space, settings))
        self.observation, _ = self.env.reset(seed=0)

    def fit(self, steps: int, *, held_out: float = 0.0) -> int:
        """About so many gradient steps, in whole epochs; how many."""
        train, held = get_basic_buffer_iterators(self.real, BATCH, held_out, ensemble_size=MEMBERS)
        epochs = max(1, round(steps / len(train)))
        self.trainer.train(train, held, num_epochs=epochs, evaluate=held is not None, silent=True)
        return epochs * len(train)

    def imagine(self) -> None:
        rollout_model_and_populate_sac_buffer(
            self.world, self.real, self.agent, self.imagined, True, 1, self.sizes.imagined
        )

    def update(self, buffer: ReplayBuffer) -> None:
        self.agent.sac_agent.update_parameters(buffer, BATCH, 0, None, reverse_mask=True)

    def act(self) -> None:
        self.observation, _, terminated, truncated, _ = step_env_and_add_to_buffer(
            self.env, self.observation, self.agent, {"sample": True}, self.real
        )
        if terminated or truncated:
            self.observation, _ = self.env.reset()


def sac_update(parts: Parts) -> Way:
    return lambda: [parts.update(parts.real) for _ in range(parts.sizes.updates)]


def ensemble_step(parts: Parts) -> tuple[Way, int]:
    """Epochs of its trainer, and the number of gradient steps in them."""
    return lambda: parts.fit(parts.sizes.fit_steps), parts.fit(parts.sizes.fit_steps)


def imagination(parts: Parts) -> Way:
    """Without a dropout, which it does not have."""
    return parts.imagine


def acting(parts: Parts) -> Way:
    return lambda: [parts.act() for _ in range(parts.sizes.env_steps)]


def whole_algorithm(parts: Parts) -> Way:
    """The body of its training loop, with a fit and its rollouts at the first step of each stretch."""

    def way() -> object:
        for step in range(parts.sizes.stretch):
            parts.act()
            if step == 0:
                parts.model.update_normalizer(parts.real.get_all())
                parts.fit(parts.sizes.fit_steps, held_out=0.2)
                parts.imagine()
            for _ in range(UPDATES_PER_STEP):
                parts.update(parts.imagined)
        return None

    return way
