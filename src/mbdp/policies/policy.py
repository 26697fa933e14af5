"""A trained policy as plain arrays: it acts with NumPy alone, and loading its files runs no code of theirs."""

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import safetensors
from safetensors.numpy import load, save

from mbdp.storage.files import replace_file
from mbdp.types import BadInput

Arrays = tuple[np.ndarray, ...]
Layers = tuple[tuple[list[np.ndarray], np.ndarray], ...]  # each one's weight in pieces of columns, see BLOCK, and bias
FORMAT = 1
HIDDEN = ("relu", "tanh", "silu")
OUTPUT = ("tanh", "clip")
WORDS = {"env": str, "algo": str, "hidden": str, "output": str, "seed": int, "observation_size": int}
MAX_JSON_BYTES = 10**6
MAX_TENSOR_BYTES = 2 * 10**9

# A BLAS product of 1 row and one of 64 rows differ in their last bits, and a hopper turns that into another episode. So
# rows always go through in blocks of this many, filled up with zeros: a row's action depends on nothing but the row.
# Of more than 8 rows some kernels (AVX2) treat the last ones differently. Each product is also kept too small to be
# shared among threads, where the last bits would depend on their number.
BLOCK = 4
MAX_PRODUCT = 2**18  # rows x inputs x outputs


@dataclass(frozen=True, eq=False)
class Policy:
    """A deterministic multilayer perceptron, observations (n, obs) to actions (n, act), in float32."""

    weights: Arrays  # (in, out) each
    biases: Arrays
    action_low: np.ndarray
    action_high: np.ndarray
    hidden: str = "relu"
    output: str = "tanh"
    env: str = ""
    algo: str = ""
    seed: int = 0
    _layers: "Layers" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("weights", "biases"):
            object.__setattr__(self, name, tuple(_frozen(array) for array in getattr(self, name)))
        for name in ("action_low", "action_high"):
            object.__setattr__(self, name, _frozen(getattr(self, name)))
        _check(self)
        object.__setattr__(self, "_layers", layers(self.weights, self.biases))

    rows_are_independent: ClassVar[bool] = True

    @property
    def observation_size(self) -> int:
        """Numbers in one observation."""
        return int(self.weights[0].shape[0])

    @property
    def action_size(self) -> int:
        """Numbers in one action."""
        return int(self.biases[-1].shape[0])

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Actions (n, act) within the bounds for observations (n, obs); a row with a NaN gets an action of NaN."""
        rows = np.asarray(observations)
        if rows.ndim != 2 or rows.shape[1] != self.observation_size:
            raise BadInput(f"the policy takes observations of shape (n, {self.observation_size}), not {rows.shape}")
        last = outputs(self._layers, rows, self.hidden)[:, : self.action_size]
        squashed = np.tanh(last) if self.output == "tanh" else np.clip(last, -1, 1)
        centre, half = (self.action_high + self.action_low) / 2, (self.action_high - self.action_low) / 2
        return np.clip(centre + half * squashed, self.action_low, self.action_high)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write policy.safetensors and policy.json into `directory`, each replaced as a whole or not at all."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        words = {name: getattr(self, name) for name in WORDS}
        words |= {"action_low": self.action_low.tolist(), "action_high": self.action_high.tolist()}
        tensors = {f"weight_{i}": weight for i, weight in enumerate(self.weights)}
        tensors |= {f"bias_{i}": bias for i, bias in enumerate(self.biases)}
        replace_file(directory / "policy.safetensors", save(tensors))
        replace_file(directory / "policy.json", json.dumps({"format": FORMAT} | words, indent=1).encode() + b"\n")


def load_policy(directory: str | os.PathLike[str]) -> Policy:
    """The policy that `Policy.save` wrote into `directory`; what is wrong with the files is one line of BadInput."""
    words_file, tensors_file = Path(directory) / "policy.json", Path(directory) / "policy.safetensors"
    words = _read_words(words_file)
    try:
        tensors = load(_read(tensors_file, MAX_TENSOR_BYTES))
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{tensors_file}: not a whole safetensors file ({error})") from error
    count = len(tensors) // 2
    expected = {f"{kind}_{i}" for kind in ("weight", "bias") for i in range(count)}
    if set(tensors) != expected or not expected:
        raise BadInput(f"{tensors_file}: tensors must be weight_0, bias_0, weight_1, ...; it has {sorted(tensors)[:6]}")
    if wrong := [f"{name} is {tensor.dtype}" for name, tensor in tensors.items() if tensor.dtype != np.float32]:
        raise BadInput(f"{tensors_file}: tensors must be float32, but {wrong[0]}")
    observation_size = words.pop("observation_size")
    try:
        weights = tuple(tensors[f"weight_{i}"] for i in range(count))
        policy = Policy(weights, tuple(tensors[f"bias_{i}"] for i in range(count)), **words)
    except BadInput as error:
        raise BadInput(f"{directory}: the saved policy does not fit together: {error}") from error
    if policy.observation_size != observation_size:
        raise BadInput(
            f"{words_file}: observation_size is {observation_size}, "
            f"but weight_0 in {tensors_file.name} takes {policy.observation_size}"
        )
    return policy


def _read_words(file: Path) -> dict[str, Any]:
    try:
        words = json.loads(_read(file, MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{file}: not a JSON file ({error})") from error
    if not isinstance(words, dict) or words.get("format") != FORMAT or isinstance(words["format"], bool):
        found = words.get("format", "missing") if isinstance(words, dict) else "missing"
        raise BadInput(f"{file}: format must be {FORMAT}, the one this version reads; it is {found!r}")
    kinds = WORDS | {"action_low": list, "action_high": list}
    for name, kind in kinds.items():
        if not isinstance(words.get(name), kind) or isinstance(words[name], bool):
            raise BadInput(f"{file}: {name} must be {kind.__name__}; it is {words.get(name, 'missing')!r:.40}")
    for name in ("action_low", "action_high"):
        if not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in words[name]):
            raise BadInput(f"{file}: {name} must be a list of numbers")
    return {name: words[name] for name in kinds}


def _check(policy: Policy) -> None:
    """Raise BadInput unless the layers, bounds and words make one policy."""
    if policy.hidden not in HIDDEN or policy.output not in OUTPUT:
        raise BadInput(f"hidden must be one of {HIDDEN} and output of {OUTPUT}: {policy.hidden!r}, {policy.output!r}")
    if not policy.weights or len(policy.weights) != len(policy.biases):
        raise BadInput(
            f"a policy has a bias per weight, not {len(policy.weights)} weights, {len(policy.biases)} biases"
        )
    for i, (weight, bias) in enumerate(zip(policy.weights, policy.biases, strict=True)):
        size = policy.weights[i - 1].shape[-1] if i else weight.shape[0] if weight.ndim else 0
        if weight.ndim != 2 or 0 in weight.shape or weight.shape[0] != size or bias.shape != weight.shape[1:]:
            raise BadInput(f"layer {i} must be weight ({size}, out), bias (out,); it is {weight.shape}, {bias.shape}")
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise BadInput(f"layer {i} has numbers that are not finite")
    low, high = policy.action_low, policy.action_high
    if low.shape != policy.biases[-1].shape or high.shape != low.shape:
        raise BadInput(
            f"the last layer has {policy.action_size} outputs, action_low and _high have {low.shape}, {high.shape}"
        )
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise BadInput("action_low and action_high must be finite, and each low below its high")


def layers(weights: Arrays, biases: Arrays) -> Layers:
    """The layers of a perceptron as `outputs` takes them; the last has columns of zeros if it had less than four."""
    # A last layer of one column would go to another BLAS routine, which treats rows differently.
    if extra := max(0, 4 - len(biases[-1])):
        weights = *weights[:-1], np.pad(weights[-1], ((0, 0), (0, extra)))
        biases = *biases[:-1], np.pad(biases[-1], (0, extra))
    return tuple(zip(map(_in_pieces, weights), biases, strict=True))


def _in_pieces(weight: np.ndarray) -> list[np.ndarray]:
    count = math.ceil(BLOCK * weight.size / MAX_PRODUCT)
    return [np.ascontiguousarray(piece) for piece in np.array_split(weight, count, axis=1)] if count > 1 else [weight]


def outputs(layers: Layers, rows: np.ndarray, hidden: str) -> np.ndarray:
    """What the last layer says of each row."""
    count, width = rows.shape
    blocks = np.zeros((-(-count // BLOCK), BLOCK, width), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        blocks.reshape(-1, width)[:count] = rows
        for i, (pieces, bias) in enumerate(layers):
            if i:
                blocks = _activated(blocks, hidden)
            products = [blocks @ piece for piece in pieces]
            blocks = (np.concatenate(products, axis=-1) if len(products) > 1 else products[0]) + bias
    return blocks.reshape(-1, blocks.shape[-1])[:count]


def _activated(x: np.ndarray, hidden: str) -> np.ndarray:
    if hidden == "relu":
        return np.maximum(x, 0)
    return np.tanh(x) if hidden == "tanh" else x / (1 + np.exp(-x))


def _frozen(array: Any) -> np.ndarray:
    with np.errstate(over="ignore"):
        copy = np.array(array, np.float32, order="C")
    copy.flags.writeable = False
    return copy


def _read(file: Path, limit: int) -> bytes:
    try:
        if (size := file.stat().st_size) > limit:
            raise BadInput(f"{file}: {size} bytes are more than a policy has ({limit})")
        return file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror or error}") from error
