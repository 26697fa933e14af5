"""Data of other packages: Minari's datasets and Stable-Baselines3's replay buffers, made by the packages themselves."""

import gc
import warnings

import gymnasium
import minari
import numpy as np
import pytest
from minari import DataCollector
from stable_baselines3 import SAC

from mbdp import MBDP
from mbdp.envs.interact import World
from mbdp.envs.spaces import adapted
from mbdp.envs.tasks import make
from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.cli import main
from mbdp.replay import unpack
from mbdp.storage.datasets import read_data
from mbdp.types import BadInput
from tests.conftest import TINY
from tests.envs.test_spaces import InParts
from tests.experiments.test_commands import QUICK

NAME = "mbdp/point-v0"
# Minari's collector leaves its temporary folders to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")


def collect(env: gymnasium.Env, name: str, episodes: int) -> None:
    """A dataset of random episodes, in Minari's own folder."""
    collector = DataCollector(env)
    collector.action_space.seed(0)
    for episode in range(episodes):
        collector.reset(seed=episode)
        over = False
        while not over:
            _, _, terminated, truncated, _ = collector.step(collector.action_space.sample())
            over = terminated or truncated
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on what to say of a dataset that is to be published
        collector.create_dataset(name)
    collector.close()
    del collector
    gc.collect()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    collect(gymnasium.make(POINT_MASS), NAME, episodes=4)
    return tmp_path / "datasets" / NAME


def test_a_minari_dataset_is_read_by_its_id_and_by_its_folder(folder):
    world = World(make(POINT_MASS), 0)
    rows = read_data(f"minari:{NAME}", world).rows
    np.testing.assert_array_equal(read_data(folder, world).rows, rows)
    episode = minari.load_dataset(NAME)[0]
    steps = unpack(rows, world.spec)
    length = len(episode.actions)
    np.testing.assert_array_equal(steps.observation[:length], episode.observations[:-1])
    np.testing.assert_array_equal(steps.next_observation[:length], episode.observations[1:])
    np.testing.assert_allclose(steps.reward[:length], episode.rewards, rtol=1e-6)
    assert steps.terminated.sum() == sum(one.terminations.sum() for one in minari.load_dataset(NAME))


def test_a_dataset_with_a_dict_of_observations_and_other_units_fits_its_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    collect(gymnasium.wrappers.TimeLimit(InParts(), 50), "mbdp/parts-v0", episodes=4)
    world = World(adapted(InParts()), 0)
    steps = unpack(read_data("minari:mbdp/parts-v0", world).rows, world.spec)
    assert (np.abs(steps.action) <= 1).all()
    assert np.abs(steps.action).max() > 0.9
    speed = 0.9 * steps.observation[:, 1] + 0.2 * steps.action[:, 0]
    np.testing.assert_allclose(steps.next_observation[:, 1], speed, atol=1e-5)


def test_a_dataset_of_another_environment_is_refused(folder):
    with pytest.raises(BadInput, match="its observations are not those of the environment"):
        read_data(folder, World(make("Pendulum-v1"), 0))


def test_a_dataset_that_is_not_there_is_refused(folder):
    with pytest.raises(
        BadInput, match=r"minari:mbdp/nothing-v0: it is not on this machine, .* minari download mbdp/nothing-v0"
    ):
        read_data("minari:mbdp/nothing-v0", World(make(POINT_MASS), 0))


def test_mbdp_train_learns_offline_from_a_minari_dataset(folder, tmp_path, capsys):
    quick = [
        part for name, value in zip(QUICK[::2], QUICK[1::2], strict=True) for part in (name, value) if name != "--steps"
    ]
    offline = ["--data", str(folder), "--data-steps", "20", "--steps", "0", "--episodes", "2"]
    assert main(["train", POINT_MASS, *quick, *offline, "--out", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr().out
    assert "offline: no step is taken while learning" in said
    assert "step        0  evaluation" in said


def test_the_replay_buffer_of_stable_baselines3_holds_the_steps_that_we_read(tmp_path):
    theirs = SAC("MlpPolicy", "Pendulum-v1", buffer_size=500, learning_starts=500, seed=0)
    theirs.learn(450)
    buffer = theirs.replay_buffer
    names = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
    np.savez(tmp_path / "buffer.npz", **{name: getattr(buffer, name)[: buffer.pos] for name in names})
    world = World(make("Pendulum-v1"), 0)
    rows = read_data(tmp_path / "buffer.npz", world).rows
    steps = unpack(rows, world.spec)
    assert (len(rows), steps.terminated.sum()) == (450, 0)
    # As the simulator has it, with torques of up to 2: were the actions in other units, this would be off.
    angle = np.arctan2(steps.observation[:, 1], steps.observation[:, 0])
    speed = steps.observation[:, 2] + (15 * np.sin(angle) + 3 * 2 * steps.action[:, 0]) * 0.05
    np.testing.assert_allclose(steps.next_observation[:, 2], np.clip(speed, -8, 8), atol=1e-4)
    settings = {name: value for name, value in TINY.items() if name != "steps"}
    with pytest.warns(UserWarning, match="as SB3 stores them"):
        agent = MBDP("Pendulum-v1", **settings, data_steps=20).learn(5, data=tmp_path / "buffer.npz")
    assert agent.learner.step == 5
