"""Policies that others trained: Stable-Baselines3, its contrib package and SBX (.zip), and ONNX files."""

import importlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from mbdp.policies.policy import load_policy
from mbdp.types import BadInput

# The modules in which those packages keep their policy classes, and the algorithm whose loader reads such a file. PPO
# and A2C share their policies, and so do TD3 and DDPG: either loader predicts the same actions.
ALGORITHMS = {"sac": "SAC", "td3": "TD3", "common": "PPO", "ppo": "PPO", "tqc": "TQC", "crossq": "CrossQ"}
PACKAGES = {"stable_baselines3": "pip install 'mbdp[sb3]'", "sb3_contrib": "", "sbx": "pip install 'mbdp[sbx]'"}
MAX_JSON_BYTES = 2 * 10**9  # SBX keeps all networks and optimisers in there, as text


def open_policy(path: str | os.PathLike[str], *, allow_code: bool = False) -> Any:
    """The policy in a run directory, an .onnx file, or, with `allow_code`, a .zip of Stable-Baselines3."""
    path = Path(path)
    if path.is_dir():
        return load_policy(path)
    if not path.exists():
        raise BadInput(f"{path}: there is no such file or directory")
    if path.suffix == ".onnx":
        return OnnxPolicy(path)
    if path.suffix != ".zip":
        raise BadInput(f"{path}: a policy is a run directory, a .zip of Stable-Baselines3 or an .onnx file")
    if not allow_code:
        raise BadInput(
            f"{path}: loading a .zip of Stable-Baselines3 can run code hidden in it; if you trust it, add --allow-code"
        )
    return ZipPolicy(path)


class ZipPolicy:
    """An agent saved by Stable-Baselines3, sb3-contrib or SBX, acting deterministically; loading it can run code."""

    def __init__(self, path: Path) -> None:
        self.path = path
        package, name = _algorithm_of(path)
        try:
            algorithm = getattr(importlib.import_module(package), name)
        except (ImportError, AttributeError) as error:
            extra = PACKAGES[package] and f" ({PACKAGES[package]})"
            raise BadInput(f"{path}: needs {name} of the package {package}{extra}: {error}") from error
        # What only training needs is not read: it is pickled, and often by another version of Python.
        unneeded = {"learning_rate": 0.0, "lr_schedule": _zero, "clip_range": _zero}
        unneeded |= {"replay_buffer_class": None, "buffer_size": 1}
        try:
            self.agent = algorithm.load(path, device="cpu", custom_objects=unneeded)
        except Exception as error:  # the loader runs what the file says, which may fail in any way
            raise BadInput(f"{path}: {package} cannot load it: {' '.join(str(error).split())}") from error

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Actions (n, act) for observations (n, obs)."""
        return np.asarray(self.agent.predict(observations, deterministic=True)[0])

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process reads the file by itself.
        return type(self), (self.path,)


class OnnxPolicy:
    """The first output of an ONNX model, applied as it is: rescaling and clipping are the model's own affair."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            import onnxruntime
        except ImportError as error:
            raise BadInput(f"{path}: needs the package onnxruntime (pip install 'mbdp[onnx]')") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has an exception for every kind of fault, none of them public
            raise BadInput(f"{path}: not an ONNX model that can be run: {' '.join(str(error).split())}") from error
        inputs = self.session.get_inputs()
        if len(inputs) != 1 or len(inputs[0].shape) != 2 or inputs[0].type not in ("tensor(float)", "tensor(double)"):
            found = [(i.name, i.shape, i.type) for i in inputs]
            raise BadInput(f"{path}: a policy takes one input of floats, (batch, observation); this one takes {found}")
        self.input, self.rows = inputs[0].name, inputs[0].shape[0]
        self.dtype = np.float32 if inputs[0].type == "tensor(float)" else np.float64
        # What a file of `mbdp export` says of itself; others say nothing under these names.
        words = self.session.get_modelmeta().custom_metadata_map
        self.env, self.algo = words.get("env", ""), words.get("algo", "")
        self.seed = int(words["seed"]) if words.get("seed", "").isdecimal() else None

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Actions (n, act) for observations (n, obs), row by row if the file was exported for one row."""
        rows = observations.astype(self.dtype)
        parts = np.split(rows, len(rows)) if self.rows == 1 else [rows]
        return np.concatenate([self.session.run(None, {self.input: part})[0] for part in parts])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)


def _algorithm_of(path: Path) -> tuple[str, str]:
    """Package and algorithm of a saved agent, from the readable part of the file."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("data") as file:
            module = json.loads(file.read(MAX_JSON_BYTES))["policy_class"]["__module__"]
        package, kind, *_ = module.split(".")
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{path}: not a file that Stable-Baselines3 or SBX saved") from error
    if package not in PACKAGES or kind not in ALGORITHMS:
        raise BadInput(
            f"{path}: policies of {module} are not known; those of {', '.join(PACKAGES)} for Box actions are"
        )
    return package, ALGORITHMS[kind]


def _zero(progress: float) -> float:
    return 0.0
