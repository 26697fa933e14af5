import gymnasium
import numpy as np
import pytest

from mbdp.envs.perturb import perturb
from mbdp.experiments.cli import main
from mbdp.foreign_policies import open_policy
from mbdp.robustness import evaluate_grid

pytestmark = pytest.mark.filterwarnings("default")  # flax and tensorflow_probability warn of affairs of their own

DROQ = {"dropout_rate": 0.01, "layer_norm": True}
AGENTS = {
    "SAC": ("SAC", "MlpPolicy", {}),
    "SAC, Simba": ("SAC", "SimbaPolicy", {}),
    "DroQ": ("SAC", "MlpPolicy", {"policy_kwargs": DROQ}),
    "TD3": ("TD3", "MlpPolicy", {}),
    "DDPG": ("DDPG", "MlpPolicy", {}),
    "TQC": ("TQC", "MlpPolicy", {}),
    "CrossQ": ("CrossQ", "MlpPolicy", {}),
    "PPO": ("PPO", "MlpPolicy", {"n_steps": 16, "batch_size": 16, "n_epochs": 1}),
}


def train_agent(directory, name="SAC"):
    """A real agent after a few real updates, and the file that it saved."""
    import sbx  # warns as it is imported, which is an error until a test allows it

    algorithm, policy, options = AGENTS[name]
    options = options if algorithm == "PPO" else {"learning_starts": 16, "batch_size": 16, "buffer_size": 64} | options
    agent = getattr(sbx, algorithm)(policy, "Hopper-v5", seed=0, **options)
    agent.learn(20)
    agent.save(directory / "agent.zip")
    return agent, directory / "agent.zip"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train_agent(tmp_path_factory.mktemp("sbx"))


@pytest.mark.parametrize("name", AGENTS)
def test_a_zip_acts_as_the_agent_that_saved_it(tmp_path, name):
    agent, file = train_agent(tmp_path, name)
    observations = np.random.default_rng(0).normal(size=(16, 11))
    expected, _ = agent.predict(observations, deterministic=True)
    np.testing.assert_array_equal(open_policy(file, allow_code=True)(observations), expected)


def test_a_cell_is_what_a_plain_loop_with_the_agent_gives(trained):
    agent, file = trained
    grid = evaluate_grid(open_policy(file, allow_code=True), "Hopper-v5", {"mass": [1.2]}, episodes=2, seed=5, batch=1)
    env = perturb(gymnasium.make("Hopper-v5"), {"mass": 1.2})
    observation, _ = env.reset(seed=6)
    total, over = 0.0, False
    while not over:
        action, _ = agent.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(action)
        total, over = total + float(reward), terminated or truncated
    assert grid.returns[0, 1] == total


def test_the_command_evaluates_it_in_two_processes(trained, tmp_path, capsys):
    _, file = trained
    options = ["--env", "Hopper-v5", "--grid", "0.9,1", "--episodes", "2", "--workers", "2"]
    assert main(["robustness", f"SBX={file}", *options, "--allow-code", "--out", str(tmp_path / "out")]) == 0
    assert "SBX (1 seed)" in capsys.readouterr().out
    assert len((tmp_path / "out" / "episodes.csv").read_text().splitlines()) == 1 + 4 * 2


def test_the_command_loads_it_only_with_permission(trained, tmp_path, capsys):
    _, file = trained
    assert main(["robustness", str(file), "--env", "Hopper-v5", "--out", str(tmp_path / "out")]) == 2
    assert "--allow-code" in capsys.readouterr().err
