"""Numbers that go wrong: in the world, in the model, in the critic."""

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from mbdp import MBDP, algorithm
from mbdp.algorithm import Progress
from mbdp.envs.interact import FAR, MOST_FAULTS, MOST_REWARD, Outcome, World
from mbdp.envs.tasks import make
from mbdp.envs.toy import POINT_MASS, PointMass
from mbdp.experiments.alarms import Alarms
from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.cli import main
from mbdp.models.ensemble import Ensemble
from mbdp.models.fit import Score
from mbdp.types import Broken
from tests.conftest import TINY
from tests.faults.runs import OPTIONS, metrics

SETTINGS = {name: value for name, value in TINY.items() if name != "steps"}


class Glitch(PointMass):
    """A point mass that gives a reward of `reward` at step `at` of every episode."""

    def __init__(self, reward: float, at: int):
        super().__init__()
        self.reward, self.at, self.count = reward, at, 0

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.count += 1
        observation, reward, *rest = super().step(0 * action)
        return observation, self.reward if self.count == self.at else reward, *rest


@pytest.fixture
def broken_id():
    """The id of an environment that gives NaN at the twentieth step of every episode."""
    gymnasium.register("Glitch-v0", lambda: Glitch(np.nan, at=20), max_episode_steps=30)
    yield "Glitch-v0"
    del gymnasium.registry["Glitch-v0"]


@pytest.mark.parametrize("reward", [2 * MOST_REWARD, -2 * MOST_REWARD, 1e300, np.nan, -np.inf])
def test_a_reward_beyond_sense_is_not_stored(reward):
    world = World(Glitch(reward, at=3), 0)
    outcomes = [world.step(np.zeros(1)) for _ in range(4)]
    assert [len(outcome.rows) for outcome in outcomes] == [1, 1, 0, 1]
    assert (world.faults, world.episode, world.episode_length) == (1, 1, 1)


def test_a_large_reward_is_not_a_fault():
    world = World(Glitch(0.5 * MOST_REWARD, at=1), 0)
    assert len(world.step(np.zeros(1)).rows) == 1


def test_an_action_of_nan_never_reaches_the_environment():
    world = World(make(POINT_MASS), 0)
    assert len(world.step(np.full(1, np.nan)).rows) == 0
    assert np.isfinite(world.observation).all()
    assert world.faults == 1


def test_a_simulation_that_mujoco_reset_silently_is_not_stored():
    world = World(make("Hopper-v5"), 0)
    world.step(np.zeros(3))
    world.data.qvel[:] = 1e12  # MuJoCo sees this, warns and starts again from the first state
    assert len(world.step(np.zeros(3)).rows) == 0
    assert (world.faults, world.episode) == (1, 1)
    assert len(world.step(np.zeros(3)).rows) == 1


def test_a_simulation_that_goes_back_in_time_is_not_stored(monkeypatch):
    world = World(make("InvertedPendulum-v5"), 0)
    for _ in range(3):
        world.step(np.zeros(1))
    core = world.env.unwrapped
    real = core.step
    monkeypatch.setattr(core, "step", lambda action: (real(action), mujoco.mj_resetData(core.model, core.data))[0])
    assert len(world.step(np.zeros(1)).rows) == 0
    assert world.faults == 1


def test_faults_that_follow_each_other_end_the_run():
    world = World(Glitch(np.nan, at=5), 0)
    for _ in range(5 * MOST_FAULTS - 1):
        world.step(np.zeros(1))
    with pytest.raises(Broken, match=f"gave NaN or infinity, the last of {MOST_FAULTS} faults in a row"):
        world.step(np.zeros(1))


def test_a_rare_fault_does_not_end_the_run():
    world = World(Glitch(np.nan, at=FAR + 1), 0)
    for _ in range(20 * (FAR + 1)):
        world.step(np.zeros(1))
    assert world.faults == 20


def test_faults_are_counted_in_the_metrics_and_many_of_them_end_the_run_with_a_checkpoint(broken_id, tmp_path, capsys):
    assert main(["train", broken_id, *OPTIONS, "--steps", "250", "--out", str(tmp_path)]) == 2
    run = tmp_path / "mbdp" / "Glitch-v0_0"
    printed = capsys.readouterr()
    assert "Glitch-v0 at step 200" in printed.err
    assert "the environment has gone wrong; rollout/faults counts such steps" in printed.out
    assert checkpoints_of(run)[-1].name == "step_000000199.mbdp"
    faults = [line["rollout/faults"] for line in metrics(run) if "rollout/faults" in line]
    assert (faults[0], faults[-1]) == (1, 9)


def fit_that_diverges(members):
    """A fit after which the members `members` are of no use."""
    real = algorithm.fit

    def fit(*args, **rest):
        model, optimiser, score = real(*args, **rest)
        wrong = np.isin(np.arange(len(model)), members)
        return model, optimiser, Score(*(np.where(wrong, np.nan, np.asarray(x)) for x in score))

    return fit


def test_a_member_that_diverged_is_not_kept(monkeypatch):
    monkeypatch.setattr(algorithm, "fit", fit_that_diverges([0, 2]))
    seen: list[Progress] = []
    MBDP(POINT_MASS, beta=0.0, **SETTINGS).learn(45, callback=lambda agent, progress: seen.append(progress))
    assert sorted(seen[40].metrics["model/kept"]) == [1, 3]


def test_with_every_member_diverged_the_run_goes_on_with_real_data_and_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(algorithm, "fit", fit_that_diverges([0, 1, 2, 3]))
    assert main(["train", POINT_MASS, *OPTIONS, "--algo", "mbpo", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("every member of the model has diverged; nothing is imagined until") == 1
    lines = metrics(tmp_path / "mbpo" / "mbdp-PointMass-v0_0")
    assert [line["model/kept"] for line in lines if "model/kept" in line] == [[], [], []]
    assert np.isfinite(lines[-1]["train/critic_loss"])


def test_with_every_member_diverged_training_rollouts_wait(monkeypatch):
    monkeypatch.setattr(algorithm, "fit", fit_that_diverges([0, 1, 2, 3]))
    agent = MBDP(POINT_MASS, **SETTINGS)
    before = agent.learner.agent.actor.weights[0]
    np.testing.assert_array_equal(agent.learn(60).learner.agent.actor.weights[0], before)


def test_imagined_samples_of_models_that_diverged_later_are_dropped(monkeypatch):
    agent = MBDP(POINT_MASS, **SETTINGS).learn(60)
    assert len(agent.learner.d_model)
    monkeypatch.setattr(algorithm, "fit", fit_that_diverges([0, 1, 2, 3]))
    assert len(agent.learn(5).learner.d_model) == 0


@pytest.mark.parametrize(("q", "said"), [(-3.0, 0), (1e6, 1), (np.nan, 1)])
def test_a_critic_that_explodes_is_reported_once(q, said):
    agent = MBDP(POINT_MASS, **SETTINGS).learn(10)
    progress = Progress(10, Outcome(np.zeros((0, 7))), {"train/q_mean": q})
    alarms = Alarms(agent)
    sentences = [*alarms.raised_by(progress), *alarms.raised_by(progress)]
    assert [sentence.startswith("the critic has exploded") for sentence in sentences] == [True] * said


def test_a_policy_of_nan_ends_the_run_with_a_checkpoint_and_the_last_good_policy(whole, tmp_path, capsys, monkeypatch):
    real = algorithm.expansion.update

    def update(agent, *inputs, **rest):
        agent, metrics = real(agent, *inputs, **rest)
        return jax.tree.map(lambda x: x * np.nan if x.dtype == np.float32 else x, agent), metrics

    monkeypatch.setattr(algorithm.expansion, "update", update)
    assert main(["train", POINT_MASS, *OPTIONS, "--out", str(tmp_path)]) == 2
    assert "was to take an action of NaN or infinity, the last of 10" in capsys.readouterr().err
    run = tmp_path / "mbdp" / "mbdp-PointMass-v0_0"
    assert checkpoints_of(run)[-1].name == "step_000000050.mbdp"
    assert main(["evaluate", str(run), "--episodes", "1"]) == 0


def test_a_member_with_nan_weights_is_created_anew():
    agent = MBDP(POINT_MASS, **SETTINGS)
    agent.learn(30)
    members = agent.learner.model.members
    spoilt = eqx.tree_at(lambda m: m.network.weights[0], members, members.network.weights[0].at[1].set(jnp.nan))
    agent.learner.model = Ensemble(spoilt, agent.learner.model.scaling)
    seen = [progress.metrics for progress in agent.iterate(100) if "model/bias" in progress.metrics]
    assert seen[0]["model/recreated"] == [1]
    assert 1 not in seen[0]["model/kept"]
    assert all("model/recreated" not in later and np.isfinite(later["model/bias_1"]) for later in seen[1:])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(agent.learner.model))
