"""A policy as an ONNX file, for machines without JAX: normalisation and the scaling of actions are in the graph."""

import importlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from mbdp.policies.foreign import OnnxPolicy
from mbdp.policies.policy import Policy
from mbdp.storage.files import replace_file
from mbdp.types import BadInput

TOLERANCE = 1e-5  # between actions of the file and of the policy, in halves of the action's range
OPSET, IR_VERSION = 17, 8  # of 2022: any runtime that is still maintained reads them
RANDOM_ROWS = 1000


def export_onnx(policy: Policy, file: Path, observations: np.ndarray) -> float:
    """Write a new file that acts as the policy does; the largest difference found, in halves of the action's range.

    The file is compared with the policy on `observations` (n, obs), real ones, and on random ones around them. One that
    differs by more than 1e-5 is removed again, and BadInput says so. An existing file is never touched.
    """
    check_target(file)
    replace_file(file, _model(policy).SerializeToString())
    try:
        found = largest_difference(OnnxPolicy(file), policy, observations)
        if not found <= TOLERANCE:
            raise BadInput(f"{file}: its actions differ by {found:.2g} from the policy's, more than {TOLERANCE:g}")
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return found


def check_target(file: Path) -> None:
    """BadInput unless a new .onnx file can be made there, with the packages that it takes."""
    if file.suffix != ".onnx":
        raise BadInput(f"{file}: the file must end in .onnx")
    if file.exists() or file.is_symlink():
        raise BadInput(f"{file} exists, and nothing is overwritten: choose another name or delete it")
    if not file.parent.is_dir():
        raise BadInput(f"{file}: there is no folder {file.parent}")
    for package in ("onnx", "onnxruntime"):
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise BadInput(f"export needs the package {package} (pip install 'mbdp[onnx]'): {error}") from None


def largest_difference(exported: OnnxPolicy, policy: Policy, observations: np.ndarray) -> float:
    """Between actions for the observations and for random ones, in batches and one by one."""
    real = np.asarray(observations, np.float32).reshape(-1, policy.observation_size)
    centre, spread = (real.mean(axis=0), real.std(axis=0)) if len(real) else (0.0, 1.0)
    noise = np.random.default_rng(0).normal(size=(RANDOM_ROWS, policy.observation_size))
    rows = np.concatenate([real, centre + noise * spread]).astype(np.float32)
    one_by_one = rows[:: max(1, len(rows) // 100)]
    half = (policy.action_high - policy.action_low) / 2
    differences = [np.abs(exported(rows) - policy(rows)) / half]
    differences += [np.abs(exported(row[None]) - policy(row[None])) / half for row in one_by_one]
    return max(float(part.max()) for part in differences)


def _model(policy: Policy) -> Any:
    from onnx import TensorProto, helper

    nodes, arrays, last = _perceptron(policy)
    if policy.output == "clip":
        arrays |= {"least": np.array(-1, np.float32), "most": np.array(1, np.float32)}
    low, high = policy.action_low, policy.action_high
    arrays |= {"half": (high - low) / 2, "centre": (high + low) / 2, "action_low": low, "action_high": high}
    squash = ("Tanh", [last]) if policy.output == "tanh" else ("Clip", [last, "least", "most"])
    nodes += [
        helper.make_node(*squash, ["squashed"]),
        helper.make_node("Mul", ["squashed", "half"], ["scaled"]),
        helper.make_node("Add", ["scaled", "centre"], ["shifted"]),
        helper.make_node("Max", ["shifted", "action_low"], ["above"]),
        helper.make_node("Min", ["above", "action_high"], ["action"]),
    ]
    rows = {"observation": policy.observation_size, "action": policy.action_size}
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in rows.items())
    tensors = [helper.make_tensor(name, TensorProto.FLOAT, x.shape, x.ravel()) for name, x in arrays.items()]
    graph = helper.make_graph(nodes, "policy", [given], [made], tensors)
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="mbdp")
    helper.set_model_props(model, _words(policy))
    return model


def _perceptron(policy: Policy) -> tuple[list[Any], dict[str, np.ndarray], str]:
    """Nodes, their arrays, and the name of the last layer's output."""
    from onnx import helper

    nodes: list[Any] = []
    arrays: dict[str, np.ndarray] = {}
    last = "observation"
    for i, (weight, bias) in enumerate(zip(policy.weights, policy.biases, strict=True)):
        arrays |= {f"weight_{i}": weight, f"bias_{i}": bias}
        nodes.append(helper.make_node("Gemm", [last, f"weight_{i}", f"bias_{i}"], [last := f"layer_{i}"]))
        if i == len(policy.weights) - 1:
            break
        if policy.hidden == "silu":
            nodes.append(helper.make_node("Sigmoid", [last], [f"sigmoid_{i}"]))
            nodes.append(helper.make_node("Mul", [last, f"sigmoid_{i}"], [last := f"hidden_{i}"]))
        else:
            nodes.append(helper.make_node(policy.hidden.capitalize(), [last], [last := f"hidden_{i}"]))
    return nodes, arrays, last


def _words(policy: Policy) -> dict[str, str]:
    """What the file says of itself, readable as the metadata of an ONNX model."""
    sizes = {"observation_size": str(policy.observation_size), "action_size": str(policy.action_size)}
    return {"mbdp": version("mbdp"), "env": policy.env, "algo": policy.algo, "seed": str(policy.seed)} | sizes
