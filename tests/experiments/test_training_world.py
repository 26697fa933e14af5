"""Training in a perturbed world: it is the one that was asked for, to the end of the run and after a resume."""

import json

import pytest

from mbdp.experiments.checkpoint_folder import newest_of
from mbdp.experiments.cli import main
from mbdp.experiments.training_world import TrainingWorld, make_world, new_agent, read_world, world_of
from mbdp.robustness.perturb import PerturbedPhysics
from tests.conftest import TINY
from tests.faults.runs import metrics, remains, start_and_die, train

ENV = "InvertedPendulum-v5"
HEAVY = ("--perturb", "mass=3", "gear=0.5")


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    """A whole run in a world with a heavier pole; not to be changed."""
    return train(tmp_path_factory.mktemp("heavy"), *HEAVY, env=ENV)


def test_the_run_says_in_which_world_it_learned(heavy):
    assert json.loads((heavy / "config.json").read_text())["perturb"] == {"mass": 3.0, "gear": 0.5}
    assert world_of(heavy).perturb == {"mass": 3.0, "gear": 0.5}


def test_another_world_is_another_run(heavy, tmp_path):
    assert metrics(train(tmp_path, env=ENV)) != metrics(heavy)


def test_neutral_coefficients_change_nothing(tmp_path):
    neutral = train(tmp_path / "neutral", "--perturb", "mass=1", "--steps", "60", env=ENV)
    assert metrics(neutral) == metrics(train(tmp_path / "plain", "--steps", "60", env=ENV))


def test_a_resumed_run_is_in_the_same_world_and_comes_to_the_same_end(heavy, tmp_path, monkeypatch):
    run = start_and_die(monkeypatch, tmp_path, 95, [70, 85], options=HEAVY, env=ENV)
    agent, past, _ = newest_of(run)
    assert past["world"].perturb == {"mass": 3.0, "gear": 0.5}
    assert isinstance(agent.world.env, PerturbedPhysics)
    assert agent.continued_exactly
    assert main(["resume", str(run), "--quiet"]) == 0
    assert remains(run) == remains(heavy)


def test_evaluate_goes_back_to_the_world_of_training(heavy, capsys):
    assert main(["evaluate", str(heavy), "--episodes", "2"]) == 0
    printed = capsys.readouterr().out
    assert "as in training, with mass 3, gear 0.5" in printed
    assert f"mean return {metrics(heavy)[-1]['eval/mean_reward']:.2f}" in printed


def test_scaled_physics_keep_the_rule_of_the_task_and_noise_does_not():
    settings = {"seed": 0, **TINY, "members": 5, "samples_per_state": 4}
    assert new_agent(ENV, TrainingWorld({"mass": 2.0}), **settings).termination is not None
    assert new_agent(ENV, TrainingWorld({"observation_noise": 0.1}), **settings).termination is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mass"], "--perturb takes AXIS=VALUE, as mass=0.8; not 'mass'"),
        (["mass=heavy"], "--perturb takes AXIS=VALUE"),
        (["mas=2"], "there is no axis 'mas': did you mean 'mass'?"),
        (["mass=0"], "mass must be more than 0"),
        (["mass=nan"], "mass must be a finite number"),
        (["mass=1", "mass=2"], "--perturb has mass twice"),
        (["friction=2"], "friction would change nothing in this environment"),
    ],
)
def test_bad_coefficients_are_one_line(words, message, tmp_path, capsys):
    assert main(["train", ENV, "--out", str(tmp_path), "--perturb", *words]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_coefficients_are_read_in_their_order():
    assert list(read_world(["gear=2", "mass=0.5"], []).perturb.items()) == [("gear", 2.0), ("mass", 0.5)]


DRAWN = ("--randomise", "mass=0.5:3", "gear=0.8:1.2")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A whole run in worlds that are drawn anew for every episode; not to be changed."""
    return train(tmp_path_factory.mktemp("drawn"), *DRAWN, env=ENV)


def test_a_run_says_from_which_worlds_it_drew(drawn):
    assert json.loads((drawn / "config.json").read_text())["randomise"] == {"mass": [0.5, 3.0], "gear": [0.8, 1.2]}
    assert world_of(drawn).randomise == {"mass": (0.5, 3.0), "gear": (0.8, 1.2)}


def test_every_training_episode_has_a_world_of_its_own_and_evaluations_the_nominal_one(drawn, capsys):
    agent, *_ = newest_of(drawn)
    worlds = [agent.world.env.reset(seed=seed)[1]["coefficients"] for seed in range(3)]
    assert len({world["mass"] for world in worlds}) == 3
    assert main(["evaluate", str(drawn), "--episodes", "2"]) == 0
    printed = capsys.readouterr().out
    assert "as in training" not in printed
    assert f"mean return {metrics(drawn)[-1]['eval/mean_reward']:.2f}" in printed


def test_a_run_in_drawn_worlds_that_died_comes_to_the_same_end(drawn, tmp_path, monkeypatch):
    run = start_and_die(monkeypatch, tmp_path, 95, [70, 85], options=DRAWN, env=ENV)
    agent, past, _ = newest_of(run)
    assert past["world"].randomise == {"mass": (0.5, 3.0), "gear": (0.8, 1.2)}
    assert agent.continued_exactly
    assert main(["resume", str(run), "--quiet"]) == 0
    assert remains(run) == remains(drawn)


def test_one_point_as_range_learns_what_a_fixed_world_does(heavy, tmp_path):
    point = train(tmp_path, "--randomise", "mass=3:3", "gear=0.5:0.5", env=ENV)
    assert (point / "policy.safetensors").read_bytes() == (heavy / "policy.safetensors").read_bytes()


def test_a_fixed_axis_and_a_drawn_one_go_together():
    world = TrainingWorld({"mass": 2.0}, {"gear": (0.8, 1.2)})
    env = new_agent(ENV, world, seed=0, **TINY, beta=0.0).world.env
    env.reset(seed=0)
    nominal = make_world(ENV, {}).unwrapped.model
    assert env.unwrapped.model.body("pole").mass == 2 * nominal.body("pole").mass
    assert env.unwrapped.model.actuator_gear[0, 0] != nominal.actuator_gear[0, 0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mass"], "--randomise takes AXIS=LO:HI, as mass=0.8:1.2; not 'mass'"),
        (["mass=1"], "--randomise takes AXIS=LO:HI"),
        (["mas=1:2"], "there is no axis 'mas': did you mean 'mass'?"),
        (["mass=0:2"], "mass must be more than 0"),
        (["mass=2:1"], "mass must have a range from low to high, as 0.8:1.2; it is 2:1"),
        (["mass=nan:1"], "mass must be a finite number"),
        (["mass=1:2", "mass=1:2"], "--randomise has mass twice"),
        (["friction=1:2"], "friction would change nothing in this environment"),
        (["mass=1:2", "--perturb", "mass=2"], "mass is both fixed and drawn at random"),
    ],
)
def test_bad_ranges_are_one_line(words, message, tmp_path, capsys):
    assert main(["train", ENV, "--out", str(tmp_path), "--randomise", *words]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
