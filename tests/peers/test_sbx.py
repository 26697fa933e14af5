import pytest

from mbdp.experiments.cli import main
from tests.peers.conftest import acts_as, cell_and_plain_loop

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
    assert acts_as(*train_agent(tmp_path, name))


def test_a_cell_is_what_a_plain_loop_with_the_agent_gives(trained):
    by_grid, by_loop = cell_and_plain_loop(*trained)
    assert by_grid == by_loop


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
