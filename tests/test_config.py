import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from mbdp.config import Config
from mbdp.dropout import model_dropout, rollout_dropout
from mbdp.envs.tasks import TASKS
from mbdp.methods import METHODS, preset
from mbdp.presets import PREFERENCES
from mbdp.types import BadInput, Spec


@pytest.mark.parametrize(
    ("task", "steps", "updates"),
    [("Hopper", 120_000, 20), ("Walker2d", 300_000, 20), ("HalfCheetah", 400_000, 40), ("Ant", 300_000, 20)],
)
def test_the_paper_preset_is_the_papers_table(task, steps, updates):
    config = preset("mbdp", f"{task}-v5", "paper")
    assert (config.steps, config.updates_per_step) == (steps, updates)
    assert (config.alpha, config.beta, config.discount, config.members) == (0.2, 0.2, 0.99, 10)
    assert (config.model_width, config.model_depth, config.rollouts, config.model_every) == (200, 4, 100_000, 250)
    assert (config.fit_steps, config.actor_every, config.member_per) == (0, 1, "step")
    assert (config.longest_epoch, config.most_fit_steps) == (100, 600)


def test_mbpo_is_a_diff_of_mbdp():
    mbdp, mbpo = preset("mbdp", "Hopper-v5", "paper"), preset("mbpo", "Hopper-v5", "paper")
    changed = {name for name, value in asdict(mbpo).items() if value != asdict(mbdp)[name]}
    assert changed == {"alpha", "beta", "members", "samples_per_state", "member_per", "bias"}


def test_mbpo_keeps_its_five_elites_of_seven():
    assert len(model_dropout(np.arange(7.0), preset("mbpo", "Hopper-v5").beta)) == 5


@pytest.mark.parametrize(
    ("algo", "alpha", "beta"), [("alpha-only", 0.5, 0.0), ("beta-only", 0.0, 0.2), ("no-dropout", 0.0, 0.0)]
)
def test_ablation_arms_differ_from_mbdp_in_alpha_and_beta_only(algo, alpha, beta):
    assert preset(algo, "Hopper-v5") == replace(preset("mbdp", "Hopper-v5"), alpha=alpha, beta=beta)


@pytest.mark.parametrize(
    ("algo", "task", "of_critics", "of_actor"),
    [("mbpo", "Hopper", 4, 1), ("sac", "Hopper", 1, 1), ("mbpo", "InvertedPendulum", 8, 4)],
)
def test_mbpo_and_sac_make_as_many_updates_as_were_found_to_be_enough(algo, task, of_critics, of_actor):
    config = preset(algo, f"{task}-v5")
    assert (config.updates_per_step, config.updates_per_step // config.actor_every) == (of_critics, of_actor)


@pytest.mark.parametrize("algo", METHODS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["default", "paper"])
def test_every_preset_learns_before_it_ends(algo, task, name):
    config = preset(algo, f"{task}-v5", name)
    first_update = config.stage if algo == "slbo" else config.random_steps
    assert 0 < first_update <= config.steps / 2


def test_preferences_trade_robustness_for_efficiency_as_the_paper_advises():
    robust, balanced, efficient = (PREFERENCES[name] for name in ("robust", "balanced", "efficient"))
    assert robust["alpha"] >= balanced["alpha"] > efficient["alpha"]
    assert robust["beta"] < balanced["beta"] < efficient["beta"]


@pytest.mark.parametrize(
    ("step", "horizon"), [(0, 1), (20_000, 1), (60_000, 8), (99_999, 14), (100_000, 15), (10**6, 15)]
)
def test_hoppers_horizon_grows_from_1_to_15(step, horizon):
    assert preset("mbpo", "Hopper-v5").horizon_at(step) == horizon


@pytest.mark.parametrize(("horizon", "rollouts"), [(1, 30_000), (8, 30_000), (9, 15_000), (15, 15_000)])
def test_hoppers_rollouts_give_no_more_rows_than_its_updates_draw(horizon, rollouts):
    config = preset("mbpo", "Hopper-v5")
    assert config.rollouts_of(horizon) == rollouts
    assert rollouts * horizon <= 250 * 4 * 256 * 0.95


def test_without_a_limit_rollouts_stay_as_many():
    assert preset("mbdp", "Hopper-v5", "paper").rollouts_of(15) == 100_000


def test_d_model_never_shrinks_while_the_horizon_grows():
    capacities = [preset("mbpo", "Hopper-v5").d_model_capacity(horizon) for horizon in range(1, 16)]
    assert capacities == sorted(capacities)
    assert capacities[-1] == 4 * 30_000 * 8


@pytest.mark.parametrize(("step", "ahead"), [(0, 100), (20_000, 100), (60_000, 300), (100_000, 500), (10**6, 500)])
def test_hoppers_discount_looks_further_ahead_as_the_horizon_grows(step, ahead):
    assert preset("mbpo", "Hopper-v5").discount_at(step) == pytest.approx(1 - 1 / ahead)


@pytest.mark.parametrize(("algo", "name"), [("mbdp", "paper"), ("mbpo", "default"), ("sac", "default")])
def test_systems_as_published_cut_no_episode(algo, name):
    assert preset(algo, "Hopper-v5", name).cut_episodes == 0


@pytest.mark.parametrize("last", [0.0, 0.5, 0.9])
def test_a_discount_never_shrinks(last):
    config = replace(preset("mbpo", "Hopper-v5"), discount=0.9, last_discount=last, horizon=(1, 5, 0, 10))
    assert config.discount_at(7) == 0.9


@pytest.mark.parametrize("algo", ["mbdp", "mbpo", "sac"])
def test_the_papers_discount_does_not_grow(algo):
    assert preset(algo, "Hopper-v5", "paper").discount_at(10**6) == 0.99


def test_the_entropy_target_is_the_tasks_or_minus_half_the_actions():
    assert preset("mbpo", "Hopper-v5").sac_settings(Spec(11, 3))["target_entropy"] == -1
    assert preset("mbpo", "Unknown-v0").sac_settings(Spec(4, 6))["target_entropy"] == -3


def test_with_training_rollouts_the_entropy_target_is_minus_the_actions():
    assert preset("mbdp", "Hopper-v5").training_rollout(Spec(11, 3), None).target_entropy == -3


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ({"alpha": 1.0}, "alpha.*1.0"),
        ({"alpha": math.nan}, "alpha.*nan"),
        ({"beta": -0.1}, "beta.*-0.1"),
        ({"steps": 0}, "steps.*0"),
        ({"steps": 1.5}, "steps.*1.5"),
        ({"real_ratio": 1.1}, "real-ratio.*1.1"),
        ({"learning_rate": 0.0}, "learning-rate.*0.0"),
        ({"last_discount": 1.0}, "last-discount.*1.0"),
        ({"group": "colour"}, "group.*state, members, batch, trajectory.*colour"),
        ({"horizon": (0, 1, 0, 0)}, "horizon"),
        ({"group": "state", "samples_per_state": 1}, "samples-per-state must be at least 2"),
        ({"updates_per_step": 3, "actor_every": 2}, "multiple of actor-every"),
        ({"members": 1}, "members must be at least 3 for beta=0.2"),
        ({"members": 2}, "members must be at least 3 for beta=0.2"),
        ({"alpha": 0.8}, "alpha must be at most 0.5 in groups of 2"),
        ({"group": "members", "alpha": 0.8}, "alpha must be at most 0.75 in groups of 4"),
        ({"group": "members", "member_per": "step"}, "member-per must be row where group is members"),
        ({"expansion": 0}, "group must be state, members, batch or trajectory where expansion is 0"),
        ({"critics": 3, "expansion": 0, "group": "state"}, "critics must be 2 where expansion is 0"),
        ({"actor_every": 2, "updates_per_step": 2}, "actor-every must be 1 where expansion is above 0"),
        ({"last_discount": 0.999}, "last-discount must be 0 where expansion is above 0"),
        ({"real_ratio": 1.0}, "alpha and beta must be 0 where nothing is imagined.*0.5 and 0.2"),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_value(setting, named):
    with pytest.raises(BadInput, match=named):
        Config(**setting)


@pytest.mark.parametrize("name", ["default", "paper"])
@pytest.mark.parametrize("preference", [None, *PREFERENCES])
def test_presets_and_preferences_drop_the_share_of_members_that_they_name(name, preference):
    config = replace(preset("mbdp", "Hopper-v5", name), **PREFERENCES.get(preference, {}))
    assert 1 - config.members_kept / config.members == pytest.approx(config.beta, abs=0.01)
    assert config.remarks == []


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
def test_ten_members_drop_every_beta_of_the_papers_sweep(beta):
    assert Config(members=10, beta=beta).members_kept == round(10 * (1 - beta))


def test_a_beta_that_members_do_not_allow_is_said():
    assert Config(members=7).remarks == ["beta=0.2 of 7 members drops 1 of them, in effect 0.143"]


@pytest.mark.parametrize("name", ["default", "paper"])
@pytest.mark.parametrize("preference", [*PREFERENCES, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
def test_presets_preferences_and_the_papers_sweep_drop_the_alpha_that_they_name(name, preference):
    settings = PREFERENCES.get(preference, {"alpha": preference})
    config = replace(preset("mbdp", "Hopper-v5", name), **settings)
    rng = np.random.default_rng(0)
    groups = rng.normal(size=(40_000, config.samples_per_state))
    mask = rollout_dropout(groups, config.alpha, rounding=rng.random(40_000))
    assert 1 - mask.mean() == pytest.approx(config.alpha, abs=0.01)
