"""Double dropout inside somebody else's loop: the planner of mbrl-lib (PETS), with the two functions put into it.

PETS learns an ensemble of models and plans by trying action sequences in it. Model dropout chooses the members that
planning may use; rollout dropout makes it cautious, because the most hopeful imagined returns of a sequence no longer
count. Nothing else of mbdp is used but its point mass, which is where they balance.

    pip install mbdp torch hydra-core termcolor tqdm && pip install --no-deps mbrl
    python examples/borrow_the_dropout.py
"""

import gymnasium
import numpy as np
import torch
from mbrl.models import GaussianMLP, ModelEnv, ModelTrainer, OneDTransitionRewardModel
from mbrl.planning import TrajectoryOptimizer
from mbrl.util.replay_buffer import BootstrapIterator, ReplayBuffer, TransitionIterator
from omegaconf import OmegaConf

from mbdp.dropout import model_dropout, rollout_dropout
from mbdp.envs.toy import POINT_MASS

ALPHA, BETA = 0.2, 0.4
RANDOM_EPISODES = 4
MEMBERS, PARTICLES, HORIZON = 5, 6, 10
PLANNER = OmegaConf.create(
    {
        "_target_": "mbrl.planning.CEMOptimizer",
        "num_iterations": 2,
        "elite_ratio": 0.1,
        "population_size": 40,
        "alpha": 0.1,
        "device": "cpu",
        "lower_bound": None,
        "upper_bound": None,
    }
)


class CautiousModelEnv(ModelEnv):
    """mbrl-lib's imagined environment, in which a sequence is worth the mean of its least hopeful returns."""

    def evaluate_action_sequences(
        self, action_sequences: torch.Tensor, initial_state: np.ndarray, num_particles: int
    ) -> torch.Tensor:
        repeated = action_sequences.repeat_interleave(num_particles, dim=0)
        returns = super().evaluate_action_sequences(repeated, initial_state, 1).reshape(-1, num_particles)
        kept = rollout_dropout(returns, ALPHA)
        return (returns * kept).sum(dim=1) / kept.sum(dim=1)


def run(episodes: int = 8, seed: int = 0) -> list[float]:
    """The return of each episode: the first ones are random, the others are planned."""
    torch.set_num_threads(1)  # the networks are too small to share
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    env = gymnasium.make(POINT_MASS)
    shapes = env.observation_space.shape, env.action_space.shape
    buffer = ReplayBuffer(10_000, *shapes, rng=rng)
    network = GaussianMLP(3, 3, "cpu", 2, MEMBERS, 32, propagation_method="random_model", learn_logvar_bounds=True)
    model = OneDTransitionRewardModel(network, normalize=True, num_elites=MEMBERS)
    imagined = CautiousModelEnv(env, model, _left_the_line, generator=torch.Generator().manual_seed(seed))
    trainer = ModelTrainer(model, optim_lr=3e-3)
    planner = TrajectoryOptimizer(PLANNER, np.array([-1.0]), np.array([1.0]), HORIZON)
    returns: list[float] = []
    for episode in range(episodes):
        planned = episode >= RANDOM_EPISODES
        if planned:
            kept = _learn(model, trainer, buffer, rng)
            print(f"         members kept {kept}", flush=True)
        planner.reset()
        observation, _ = env.reset(seed=seed + episode)
        total, ended = 0.0, False
        while not ended:
            action = _plan(planner, imagined, observation) if planned else rng.uniform(-1, 1, 1)
            following, reward, terminated, truncated, _ = env.step(np.float32(action))
            buffer.add(observation, action, following, float(reward), terminated, truncated)
            observation, total, ended = following, total + float(reward), terminated or truncated
        returns.append(total)
        print(f"episode {episode}  {'planned' if planned else 'random '}  return {total:6.1f}", flush=True)
    return returns


def _learn(
    model: OneDTransitionRewardModel, trainer: ModelTrainer, buffer: ReplayBuffer, rng: np.random.Generator
) -> list[int]:
    """Train the ensemble, and let planning use the members that model dropout keeps."""
    everything = buffer.get_all(shuffle=True)
    model.update_normalizer(everything)
    held_out = max(10, len(everything) // 5)
    own = BootstrapIterator(everything[held_out:], 32, MEMBERS, shuffle_each_epoch=True, permute_indices=False, rng=rng)
    judged = TransitionIterator(everything[:held_out], held_out)
    trainer.train(own, judged, num_epochs=200, patience=50, silent=True)
    kept = model_dropout(trainer.evaluate(judged), BETA).tolist()
    model.set_elite(kept)
    return kept


def _plan(planner: TrajectoryOptimizer, imagined: ModelEnv, observation: np.ndarray) -> np.ndarray:
    plan = planner.optimize(lambda sequences: imagined.evaluate_action_sequences(sequences, observation, PARTICLES))
    return plan[0]


def _left_the_line(action: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    return following[:, :1].abs() > 2.0


if __name__ == "__main__":
    returns = run()
    random, planned = np.mean(returns[:RANDOM_EPISODES]), np.mean(returns[RANDOM_EPISODES:])
    print(f"random episodes: mean {random:.1f}; planned ones: {planned:.1f}, of 50 at most")
