import numpy as np
import onnx
import pytest
import sb3_contrib
import stable_baselines3
from onnx import TensorProto, helper, numpy_helper

from mbdp.experiments.cli import main
from mbdp.policies.foreign import open_policy
from mbdp.robustness import evaluate_grid, evaluate_grids
from mbdp.types import BadInput
from tests.peers.conftest import acts_as, cell_and_plain_loop
from tests.policies.test_policy import make_policy

pytestmark = pytest.mark.filterwarnings("default")  # torch and onnx warn of affairs of their own


def save_agent(tmp_path, name="SAC"):
    package = sb3_contrib if hasattr(sb3_contrib, name) else stable_baselines3
    agent = getattr(package, name)("MlpPolicy", "Hopper-v5", device="cpu", seed=0)
    agent.save(tmp_path / f"{name.lower()}.zip")
    return agent, tmp_path / f"{name.lower()}.zip"


def save_onnx(file, policy, rows="n"):
    """The policy as ONNX, built from its arrays by hand."""
    nodes, arrays, last = [], [], "observation"
    for i, (weight, bias) in enumerate(zip(policy.weights, policy.biases, strict=True)):
        arrays += [numpy_helper.from_array(weight.copy(), f"w{i}"), numpy_helper.from_array(bias.copy(), f"b{i}")]
        kind = "Relu" if i < len(policy.weights) - 1 else "Tanh"
        nodes += [
            helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"]),
            helper.make_node("Add", [f"m{i}", f"b{i}"], [f"a{i}"]),
        ]
        last = f"h{i}"
        nodes.append(helper.make_node(kind, [f"a{i}"], [last]))
    given = helper.make_tensor_value_info("observation", TensorProto.FLOAT, [rows, policy.observation_size])
    made = helper.make_tensor_value_info(last, TensorProto.FLOAT, [rows, policy.action_size])
    graph = helper.make_graph(nodes, "policy", [given], [made], arrays)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    return file


@pytest.mark.parametrize("name", ["SAC", "TD3", "DDPG", "PPO", "A2C", "TQC", "CrossQ", "TRPO"])
def test_a_zip_acts_as_the_agent_that_saved_it(tmp_path, name):
    assert acts_as(*save_agent(tmp_path, name))


def test_a_cell_is_what_a_plain_loop_with_the_agent_gives(tmp_path):
    by_grid, by_loop = cell_and_plain_loop(*save_agent(tmp_path))
    assert by_grid == by_loop


def test_an_agent_itself_is_a_policy_too(tmp_path):
    agent, file = save_agent(tmp_path)
    both = [agent, open_policy(file, allow_code=True)]
    one, other = evaluate_grids(both, "Hopper-v5", {"mass": [1.0]}, episodes=2, seed=0)
    np.testing.assert_array_equal(one.returns, other.returns)


def test_a_zip_is_not_loaded_without_permission(tmp_path):
    _, file = save_agent(tmp_path)
    with pytest.raises(BadInput, match="--allow-code"):
        open_policy(file)


def test_ours_sb3_and_onnx_stand_on_one_grid(tmp_path, capsys):
    _, file = save_agent(tmp_path)
    ours = make_policy((11, 32, 3))
    ours.save(tmp_path / "ours")
    exported = save_onnx(tmp_path / "exported.onnx", ours)
    paths = [str(path) for path in (tmp_path / "ours", file, exported)]
    options = ["--allow-code", "--grid", "0.9,1", "--episodes", "2", "--workers", "2", "--out", str(tmp_path / "out")]
    assert main(["robustness", *paths, *options]) == 0
    assert "sac (1 seed)" in capsys.readouterr().out
    assert (tmp_path / "out" / "heatmap.png").stat().st_size > 0


@pytest.mark.parametrize("rows", ["n", 1])
def test_an_onnx_file_acts_as_the_policy_it_was_made_from(tmp_path, rows):
    policy = make_policy((11, 32, 3))
    observations = np.random.default_rng(0).normal(size=(5, 11))
    actions = open_policy(save_onnx(tmp_path / "p.onnx", policy, rows))(observations)
    np.testing.assert_allclose(actions, policy(observations), atol=1e-5)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x08\x07" * 50])
def test_an_onnx_file_that_is_none_is_one_line(tmp_path, content):
    (tmp_path / "p.onnx").write_bytes(content)
    with pytest.raises(BadInput, match=r"p\.onnx: not an ONNX model") as caught:
        open_policy(tmp_path / "p.onnx")
    assert "\n" not in str(caught.value)


def test_a_damaged_zip_is_one_line(tmp_path):
    _, file = save_agent(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"sac\.zip"):
        open_policy(file, allow_code=True)


def test_an_agent_of_another_environment_does_not_fit(tmp_path):
    _, file = save_agent(tmp_path)
    with pytest.raises(BadInput, match="does not fit Walker2d-v5"):
        evaluate_grid(open_policy(file, allow_code=True), "Walker2d-v5", {"mass": [1.0]}, episodes=1, seed=0)
