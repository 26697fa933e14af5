import copy
import pickle
import xml.etree.ElementTree as ElementTree

import gymnasium
import mujoco
import numpy as np
import pytest

from mbdp.robustness.axes import AXES
from mbdp.robustness.perturb import InertPerturbation, perturb, root_body
from mbdp.types import BadInput

FOUR = ("Hopper", "Walker2d", "HalfCheetah", "Ant")
PAPER = [f"{name}-{version}" for name in FOUR for version in ("v4", "v5")]


def edited_model(env, mass, friction):
    """The environment's XML with the density of the torso and every friction multiplied by hand, compiled anew."""
    root = ElementTree.parse(env.unwrapped.fullpath).getroot()
    default = root.find("default/geom")
    default = {} if default is None else default.attrib
    density = float(default.get("density", 1000))
    compiler = root.find("compiler")
    if total := compiler.attrib.pop("settotalmass", None):
        # HalfCheetah: apply the total to the nominal masses, and only then the coefficient to the torso alone.
        model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, "unicode"))
        density *= float(total) / model.body_mass.sum()
    torso = set(root.find("worldbody/body[@name='torso']").findall("geom"))
    for geom in root.find("worldbody").iter("geom"):
        geom.set("density", str(density * (mass if geom in torso else 1)))
        given, usual = geom.get("friction", "").split(), default.get("friction", "").split()
        all_three = [*given, *[*usual, *["1", "0.005", "0.0001"][len(usual) :]][len(given) :]]
        geom.set("friction", " ".join(str(float(x) * friction) for x in all_three))
    return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, "unicode"))


def assert_same_physics(model, other, tolerance=1e-9):
    fields = ["body_mass", "body_inertia", "geom_friction", "dof_damping", "actuator_gear", "qpos0", "body_subtreemass"]
    for field in [*fields, "body_invweight0", "dof_invweight0", "dof_M0", "actuator_acc0"]:
        np.testing.assert_allclose(
            getattr(model, field), getattr(other, field), rtol=tolerance, atol=1e-12, err_msg=field
        )
    assert model.stat.meaninertia == pytest.approx(other.stat.meaninertia, rel=tolerance)


def actions_for(env, count, seed=0):
    rng, size = np.random.default_rng(seed), env.action_space.shape
    return rng.uniform(env.action_space.low, env.action_space.high, (count, *size)).astype(np.float32)


def trajectory(env, count=100, seed=3):
    observation, _ = env.reset(seed=seed)
    rows = [observation]
    for action in actions_for(env, count):
        observation, reward, *_ = env.step(action)
        rows += [observation, np.array([reward])]
    return np.concatenate(rows)


@pytest.mark.parametrize("env_id", PAPER)
@pytest.mark.parametrize(("mass", "friction"), [(1.5, 0.5), (0.5, 1.3)])
def test_perturbed_in_place_equals_an_edited_xml_compiled_anew(env_id, mass, friction):
    env = perturb(gymnasium.make(env_id), {"mass": mass, "friction": friction})
    model = edited_model(env, mass, friction)
    assert_same_physics(env.unwrapped.model, model)
    env.reset(seed=0)
    core, data = env.unwrapped, mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = core.data.qpos, core.data.qvel
    mujoco.mj_forward(model, data)
    # Longer, and the chaos of contacts would turn the last bit of a compiled mass into more than 1e-9.
    for action in actions_for(env, 30):
        env.step(action)
        data.ctrl[:] = action
        mujoco.mj_step(model, data, core.frame_skip)
        np.testing.assert_allclose(core.data.qpos, data.qpos, rtol=0, atol=1e-9)
        np.testing.assert_allclose(core.data.qvel, data.qvel, rtol=0, atol=1e-6)


@pytest.mark.parametrize("env_id", PAPER)
def test_every_contact_has_the_coefficient_times_its_nominal_friction(env_id):
    nominal, scaled, seen = gymnasium.make(env_id), perturb(gymnasium.make(env_id), {"friction": 0.6}), 0
    nominal.reset(seed=1)
    scaled.reset(seed=1)
    for action in actions_for(nominal, 40):
        nominal.step(action)
        # The same positions in both worlds, so that the same geoms touch.
        for env in (nominal, scaled):
            env.unwrapped.set_state(nominal.unwrapped.data.qpos.copy(), nominal.unwrapped.data.qvel.copy())
        one, other = nominal.unwrapped.data.contact, scaled.unwrapped.data.contact
        np.testing.assert_array_equal(one.geom, other.geom)
        np.testing.assert_allclose(other.friction, 0.6 * one.friction, rtol=1e-12)
        seen += len(one.friction)
    assert seen > 0


@pytest.mark.parametrize("env_id", [*PAPER, "InvertedDoublePendulum-v5", "Swimmer-v5"])
def test_neutral_coefficients_change_no_bit(env_id):
    axes = {name: axis.neutral for name, axis in AXES.items()}
    inert = {"InvertedDoublePendulum-v5": ["friction"], "Swimmer-v5": ["friction", "damping"]}
    for name in inert.get(env_id, []):
        del axes[name]
    expected = trajectory(gymnasium.make(env_id))
    np.testing.assert_array_equal(trajectory(perturb(gymnasium.make(env_id), axes)), expected)


def test_five_applications_equal_one():
    coefficients = {"mass": 1.3, "friction": 0.7, "gear": 0.9, "action_noise": 0.1, "action_delay": 1}
    once = perturb(gymnasium.make("Hopper-v5"), coefficients)
    many = gymnasium.make("Hopper-v5")
    for _ in range(5):
        many = perturb(many, coefficients)
    np.testing.assert_array_equal(trajectory(many), trajectory(once))


def test_coefficients_are_of_the_nominal_world_not_of_the_last_one():
    env = gymnasium.make("Hopper-v5")
    expected = trajectory(env)
    env = perturb(perturb(env, {"mass": 2.0, "gravity": 0.5}), {"friction": 0.5})
    fresh = perturb(gymnasium.make("Hopper-v5"), {"friction": 0.5})
    np.testing.assert_array_equal(trajectory(env), trajectory(fresh))
    np.testing.assert_array_equal(trajectory(perturb(env, {})), expected)


def test_friction_of_the_floor_alone_is_found_to_be_inert():
    env = perturb(gymnasium.make("Hopper-v5"), {"friction": 0.5})
    model = env.unwrapped.model
    floor = model.geom("floor").id
    scaled = model.geom_friction[floor].copy()
    model.geom_friction[:] = env.nominal.fields["geom_friction"]
    model.geom_friction[floor] = scaled
    # Even if somebody had meant to ask for just that.
    env.target["geom_friction"][:] = model.geom_friction
    with pytest.raises(InertPerturbation, match="contacts do not have"):
        env.reset(seed=0)


@pytest.mark.parametrize("field", ["body_mass", "geom_friction", "dof_damping", "actuator_gear"])
def test_a_model_put_back_behind_our_back_is_found_at_the_next_reset(field):
    env = perturb(gymnasium.make("Hopper-v5"), {"mass": 1.5, "friction": 0.5, "damping": 2.0, "gear": 0.5})
    env.reset(seed=0)
    getattr(env.unwrapped.model, field)[:] = env.nominal.fields[field]
    with pytest.raises(InertPerturbation, match=field):
        env.reset(seed=0)


def test_constants_that_do_not_follow_the_mass_are_found():
    env = perturb(gymnasium.make("Hopper-v5"), {"mass": 1.5})
    env.unwrapped.model.body_subtreemass[:] = 1.0
    with pytest.raises(InertPerturbation, match="constants"):
        env.reset(seed=0)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_carry_the_perturbation(duplicate):
    env = perturb(gymnasium.make("Hopper-v5"), {"mass": 1.5, "friction": 0.5, "observation_noise": 0.1})
    np.testing.assert_array_equal(trajectory(duplicate(env)), trajectory(env))


def test_an_environment_made_again_from_its_spec_is_refused_not_nominal():
    env = perturb(gymnasium.make("Hopper-v5"), {"mass": 1.5})
    with pytest.raises(ValueError, match="PerturbedPhysics"):
        gymnasium.make(env.spec)


@pytest.mark.parametrize(
    ("axis", "field", "value"),
    [
        ("mass:foot", "body_mass", 1.5),
        ("damping", "dof_damping", 0.5),
        ("gear", "actuator_gear", 0.8),
        ("gravity", "opt.gravity", 1.2),
    ],
)
def test_an_axis_scales_its_field_and_changes_the_trajectory(axis, field, value):
    nominal, env = gymnasium.make("Hopper-v5"), perturb(gymnasium.make("Hopper-v5"), {axis: value})
    read = lambda e: e.unwrapped.model.opt.gravity if "." in field else getattr(e.unwrapped.model, field)  # noqa: E731
    rows = nominal.unwrapped.model.body("foot").id if axis.startswith("mass") else slice(None)
    np.testing.assert_allclose(read(env)[rows], value * read(nominal)[rows], rtol=1e-15)
    assert not np.array_equal(trajectory(env), trajectory(nominal))


def test_a_push_accelerates_the_robot_by_force_over_mass():
    """A hopper in the air has nothing else that acts along x, so its centre of mass must follow Newton."""
    env = perturb(gymnasium.make("Hopper-v5"), {"push": 10.0})
    env.reset(seed=0)
    model, data = env.unwrapped.model, env.unwrapped.data
    data.qpos[1], data.qvel[:] = 10.0, 0.0
    for _ in range(100):
        mujoco.mj_step(model, data)
    mujoco.mj_subtreeVel(model, data)
    assert data.subtree_linvel[0, 0] == pytest.approx(10.0 / model.body_mass.sum() * data.time, rel=0.02)


@pytest.mark.parametrize(
    ("env_id", "body"),
    [
        ("Hopper-v5", "torso"),
        ("Ant-v5", "torso"),
        ("Swimmer-v5", "torso"),
        ("InvertedPendulum-v5", "pole"),
        ("InvertedDoublePendulum-v5", "pole"),
        ("Reacher-v5", "body0"),
        ("Pusher-v5", "r_shoulder_pan_link"),
    ],
)
def test_the_body_that_mass_means(env_id, body):
    model = gymnasium.make(env_id).unwrapped.model
    assert model.body(root_body(model)).name == body


def test_half_cheetah_keeps_the_mass_of_its_other_bodies():
    env, nominal = (gymnasium.make("HalfCheetah-v5") for _ in range(2))
    ratio = perturb(env, {"mass": 1.5}).unwrapped.model.body_mass[1:] / nominal.unwrapped.model.body_mass[1:]
    np.testing.assert_allclose(ratio, [1.5, 1, 1, 1, 1, 1, 1], rtol=1e-15)


BAD = [
    ({"mass": 0}, "more than 0"),
    ({"mass": -1}, "more than 0"),
    ({"mass": float("nan")}, "finite"),
    ({"friction": float("inf")}, "finite"),
    ({"friction": "1"}, "finite number"),
    ({"friction": True}, "finite number"),
    ({"mass": 1e9}, "at most"),
    ({"gear": -0.1}, "at least 0"),
    ({"action_delay": 1.5}, "whole"),
    ({"action_noise": -1}, "at least 0"),
    ({"mass:nose": 1.2}, "torso, thigh, leg, foot"),
    ({"mass:": 1.2}, "no axis"),
    ({"friction:foot": 1.2}, "no axis"),
    ({"mas": 1.2}, "did you mean 'mass'"),
    ({"mass": 1.2, "mass:torso": 1.1}, "same body"),
    ({"mass:world": 1.2}, "change nothing"),
]


@pytest.mark.parametrize(("coefficients", "words"), BAD)
def test_bad_coefficients_are_refused_and_leave_the_model_nominal(coefficients, words):
    env = gymnasium.make("Hopper-v5")
    before = copy.deepcopy(env.unwrapped.model)
    with pytest.raises(BadInput, match=words):
        perturb(env, {"gravity": 0.5, "observation_noise": 1.0, **coefficients})
    assert_same_physics(env.unwrapped.model, before, tolerance=0)
    np.testing.assert_array_equal(env.unwrapped.model.opt.gravity, before.opt.gravity)


@pytest.mark.parametrize(
    ("env_id", "axis"),
    [
        ("InvertedPendulum-v5", "friction"),
        ("Swimmer-v5", "damping"),
        ("Pusher-v5", "gravity"),
        ("Reacher-v5", "friction"),
    ],
)
def test_an_axis_without_effect_is_refused(env_id, axis):
    with pytest.raises(BadInput, match="change nothing"):
        perturb(gymnasium.make(env_id), {axis: 0.5})


def test_an_environment_without_mujoco_takes_noise_but_no_mass():
    with pytest.raises(BadInput, match="Pendulum-v1 is not a MuJoCo environment"):
        perturb(gymnasium.make("Pendulum-v1"), {"mass": 1.2})
    assert np.isfinite(trajectory(perturb(gymnasium.make("Pendulum-v1"), {"action_noise": 0.2}))).all()


@pytest.mark.parametrize("axis", ["observation_noise", "action_noise"])
def test_noise_repeats_with_the_seed_and_differs_without(axis):
    env = perturb(gymnasium.make("Hopper-v5"), {axis: 0.1})
    first, other = trajectory(env, seed=5), trajectory(env, seed=6)
    np.testing.assert_array_equal(trajectory(env, seed=5), first)
    assert not np.array_equal(first, other)


def test_observation_noise_has_the_deviation_asked_for():
    env, noisy = gymnasium.make("Ant-v5"), perturb(gymnasium.make("Ant-v5"), {"observation_noise": 0.3})
    difference = trajectory(noisy, 50) - trajectory(env, 50)
    assert difference[np.abs(difference) > 0].std() == pytest.approx(0.3, rel=0.05)


def test_a_delayed_action_arrives_that_many_steps_later():
    late, env = perturb(gymnasium.make("Hopper-v5"), {"action_delay": 3}), gymnasium.make("Hopper-v5")
    late.reset(seed=0)
    env.reset(seed=0)
    actions = actions_for(env, 20)
    for i, action in enumerate(actions):
        seen, *_ = late.step(action)
        expected, *_ = env.step(actions[i - 3] if i >= 3 else np.zeros(3, np.float32))
        np.testing.assert_array_equal(seen, expected)


def test_noise_keeps_actions_within_bounds():
    env = perturb(gymnasium.make("Hopper-v5"), {"action_noise": 5.0})
    env.reset(seed=0)
    for _ in range(20):
        env.step(np.zeros(3, np.float32))
        assert np.abs(env.unwrapped.data.ctrl).max() <= 1


def test_a_simulation_that_blows_up_ends_the_episode_and_says_so():
    env = perturb(gymnasium.make("Hopper-v5"), {"mass": 1.1})
    env.reset(seed=0)
    env.unwrapped.data.qvel[:] = 1e12
    _, reward, terminated, _, info = env.step(np.zeros(3, np.float32))
    assert (reward, terminated, info["diverged"]) == (0.0, True, True)
    env.reset(seed=0)
    assert "diverged" not in env.step(np.zeros(3, np.float32))[-1]
