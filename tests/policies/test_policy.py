import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from mbdp.policies.export import export_onnx
from mbdp.policies.policy import Policy, load_policy
from mbdp.types import BadInput


def make_policy(sizes=(11, 256, 256, 3), hidden="relu", output="tanh", seed=0, low=-1.0, high=1.0):
    rng = np.random.default_rng(seed)
    pairs = list(itertools.pairwise(sizes))
    return Policy(
        tuple(rng.normal(0, m**-0.5, (m, n)) for m, n in pairs),
        tuple(rng.normal(0, 0.1, n) for _, n in pairs),
        np.full(sizes[-1], low),
        np.full(sizes[-1], high),
        hidden=hidden,
        output=output,
        env="Hopper-v5",
        algo="mbdp",
        seed=seed,
    )


@pytest.mark.parametrize("hidden", ["relu", "tanh"])
@pytest.mark.parametrize("output", ["tanh", "clip"])
def test_actions_match_the_formula_in_double_precision(hidden, output):
    policy = make_policy((5, 32, 2), hidden, output, low=-3.0, high=1.0)
    x = np.random.default_rng(1).normal(size=(7, 5))
    inner = x @ policy.weights[0].astype(float) + policy.biases[0]
    inner = np.maximum(inner, 0) if hidden == "relu" else np.tanh(inner)
    last = inner @ policy.weights[1].astype(float) + policy.biases[1]
    squashed = np.tanh(last) if output == "tanh" else np.clip(last, -1, 1)
    np.testing.assert_allclose(policy(x), -1 + 2 * squashed, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", [(11, 256, 256, 3), (4, 64, 64, 1), (27, 400, 300, 8), (348, 256, 256, 17), (3, 1)])
def test_an_action_does_not_depend_on_the_rows_that_came_with_it(sizes):
    assert_rows_are_independent(sizes)


# AVX2 is what most desktops have, whatever the machine that runs this test has; the others are unlike both.
@pytest.mark.parametrize("kernel", ["Haswell", "Sandybridge", "Nehalem"])
def test_rows_are_independent_with_the_linear_algebra_of_other_processors(kernel):
    outputs = {run_elsewhere(kernel, threads) for threads in ("1", "2")}
    assert len(outputs) == 1, "the number of threads changes the actions"


def run_elsewhere(kernel, threads):
    """Bytes of many actions in a process of its own, where OpenBLAS is told which processor it runs on."""
    code = "import tests.policies.test_policy as t;"
    code += "[t.assert_rows_are_independent(s) for s in [(11, 256, 256, 3), (4, 100, 1)]];"
    code += "import numpy as np; x = np.random.default_rng(0).normal(size=(30, 11));"
    code += "print(t.make_policy((11, 512, 512, 3))(x).tobytes().hex())"
    environment = os.environ | {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": threads}
    return subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdout=subprocess.PIPE).stdout


def assert_rows_are_independent(sizes):
    policy, rng = make_policy(sizes), np.random.default_rng(2)
    x = rng.normal(size=(130, sizes[0]))
    together = policy(x)
    order = rng.permutation(130)
    np.testing.assert_array_equal(policy(x[order]), together[order])
    for i in range(0, 130, 7):
        np.testing.assert_array_equal(policy(x[i : i + 1])[0], together[i])


def test_a_nan_observation_gives_a_nan_action_in_its_own_row_only():
    policy, x = make_policy(), np.ones((6, 11))
    clean = policy(x)
    x[2, 3], x[4, 0] = np.nan, np.inf
    actions = policy(x)
    assert np.isnan(actions[2]).all()
    np.testing.assert_array_equal(actions[[0, 1, 3, 5]], clean[[0, 1, 3, 5]])


@settings(max_examples=25, deadline=None)
@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(0, 5))
def test_actions_stay_within_their_bounds(low, width, rows):
    policy = make_policy((2, 8, 3), low=low, high=low + width)
    actions = policy(1e6 * np.random.default_rng(0).normal(size=(rows, 2)))
    assert actions.shape == (rows, 3)
    assert (actions >= policy.action_low).all()
    assert (actions <= policy.action_high).all()


def test_saved_and_loaded_it_acts_the_same_bit_for_bit(tmp_path):
    policy = make_policy(hidden="tanh", output="clip", seed=3)
    policy.save(tmp_path / "run")
    again = load_policy(tmp_path / "run")
    x = np.random.default_rng(0).normal(size=(50, 11))
    np.testing.assert_array_equal(again(x), policy(x))
    assert (again.env, again.algo, again.seed, again.hidden, again.output) == ("Hopper-v5", "mbdp", 3, "tanh", "clip")
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == ["policy.json", "policy.safetensors"]


def test_weights_cannot_be_changed_in_place():
    policy, source = make_policy(), np.ones((2, 1))
    with pytest.raises(ValueError, match="read-only"):
        policy.weights[0][0, 0] = 1
    copied = Policy((source,), (np.zeros(1),), np.array([-1]), np.array([1]))
    source[:] = 5
    assert copied.weights[0].max() == 1


@pytest.mark.parametrize("shape", [(11,), (3, 10), (2, 3, 11)])
def test_observations_of_another_shape_are_refused(shape):
    with pytest.raises(BadInput, match=r"shape \(n, 11\)"):
        make_policy()(np.zeros(shape))


WRONG_WORDS: dict[str, list] = {
    "format": [0, 2, "1", None, True],
    "env": [None, 3],
    "seed": ["0", 1.5, True],
    "observation_size": [12, "11"],
    "hidden": ["gelu", 1],
    "output": ["softmax"],
    "action_low": [[-1, -1], [-1, -1, float("nan")], [-1, -1, "x"], 3, [2, 2, 2], [True, -1, -1]],
    "action_high": [[1, 1, float("inf")], []],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG_WORDS.items() for value in values])
def test_a_wrong_word_in_policy_json_is_named(tmp_path, name, value):
    make_policy().save(tmp_path)
    words = json.loads((tmp_path / "policy.json").read_text())
    words[name] = value
    (tmp_path / "policy.json").write_text(json.dumps(words))
    assert_one_line_that_names(tmp_path, name.removeprefix("action_"))


@pytest.mark.parametrize("name", ["format", "env", "action_low", "output"])
def test_a_missing_word_in_policy_json_is_named(tmp_path, name):
    make_policy().save(tmp_path)
    words = json.loads((tmp_path / "policy.json").read_text())
    del words[name]
    (tmp_path / "policy.json").write_text(json.dumps(words))
    assert_one_line_that_names(tmp_path, name)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"null", b"[" * 100_000, b"1" * 2_000_000])
def test_garbage_in_policy_json_is_refused(tmp_path, content):
    make_policy().save(tmp_path)
    (tmp_path / "policy.json").write_bytes(content)
    assert_one_line_that_names(tmp_path, "policy.json")


@pytest.mark.parametrize("content", [b"", b"x" * 7, b"\xff" * 100, b"\x08\0\0\0\0\0\0\0{}      ", b"half"])
def test_garbage_in_policy_safetensors_is_refused(tmp_path, content):
    make_policy().save(tmp_path)
    file = tmp_path / "policy.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if content == b"half" else content)
    assert_one_line_that_names(tmp_path, "policy.safetensors")


FINE = {"weight_0": np.ones((11, 4)), "bias_0": np.ones(4), "weight_1": np.ones((4, 3)), "bias_1": np.ones(3)}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"weight_1": np.ones((5, 3))}, "layer 1"),
        ({"bias_0": np.ones(3)}, "layer 0"),
        ({"weight_0": np.full((11, 4), np.nan)}, "finite"),
        ({"weight_0": np.ones((11, 4)), "extra": np.ones(1)}, "weight_0"),
        ({"weight_0": np.ones((11, 4), np.float64)}, "float64"),
        ({"weight_0": np.ones((12, 4))}, "observation_size"),
        ({"weight_1": np.ones((4, 2)), "bias_1": np.ones(2)}, "2 outputs"),
        ({"weight_0": np.ones(11)}, "layer 0"),
    ],
)
def test_tensors_that_do_not_fit_are_named(tmp_path, change, fault):
    make_policy().save(tmp_path)
    tensors = {name: array.astype(np.float32) for name, array in FINE.items()}
    tensors |= {name: array if fault == "float64" else array.astype(np.float32) for name, array in change.items()}
    save_file(tensors, tmp_path / "policy.safetensors")
    assert_one_line_that_names(tmp_path, fault)


def test_a_missing_directory_is_one_line(tmp_path):
    assert_one_line_that_names(tmp_path / "nowhere", "nowhere")


def assert_one_line_that_names(directory, word):
    with pytest.raises(BadInput, match=word) as caught:
        load_policy(directory)
    assert "\n" not in str(caught.value)
    assert str(directory) in str(caught.value)


def test_export_without_its_packages_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)  # what Python does with a module that is not there
    with pytest.raises(BadInput, match=r"export needs the package onnx \(pip install 'mbdp\[onnx\]'\)"):
        export_onnx(make_policy(), tmp_path / "p.onnx", np.zeros((0, 11)))
    assert list(tmp_path.iterdir()) == []
