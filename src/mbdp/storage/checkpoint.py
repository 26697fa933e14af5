"""A learner and its place in the world, to and from one sealed safetensors file: loading runs no code.

The file's metadata has a manifest with the size and SHA-256 of every array, and a SHA-256 of itself.
"""

import json
from dataclasses import asdict, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors
from safetensors.numpy import save

from mbdp.algorithm import Learner
from mbdp.config import Common, Config
from mbdp.envs.interact import BOOKMARK, World
from mbdp.methods import METHODS
from mbdp.replay import Replay
from mbdp.storage.files import replace_file
from mbdp.types import BadInput, Spec

FORMAT = 5
BEFORE_EXPANSION = 4  # a format that is still read: its run goes on in a new episode, and with new random streams
SETTINGS_BEFORE_EXPANSION = {
    "expansion": 0,
    "model_noise": "input",
    "model_layer_norm": False,
    "bootstrap": True,
    "critics": 2,
    "activation": "relu",
    "normalised_inputs": False,
    "update_every": 1,
}
LEARNED = ("agent", "model", "model_optimiser")
BUFFERS = ("d_env", "d_model")
MOST_BYTES = 8 * 10**9  # of a file, and of a buffer that a file declares


def save_checkpoint(file: Path, learner: Learner, world: World, config: Common, words: dict[str, Any]) -> None:
    """Write all that the run needs to go on; `words` are the caller's own. The file is replaced whole or not at all."""
    tensors = {f"{part}{name}": leaf for part in LEARNED for name, leaf in _leaves(getattr(learner, part)).items()}
    buffers: dict[str, Replay] = {name: getattr(learner, name) for name in BUFFERS}
    # Rows stay where they are in the ring: minibatches are drawn by place, so a turned ring would give others.
    tensors |= {name: buffer.rows[: len(buffer)] for name, buffer in buffers.items()} | world.arrays()
    arrays = {name: np.asarray(value, order="C") for name, value in tensors.items()}
    about = {
        "format": FORMAT,
        "step": learner.step,
        "acted": int(learner.acted),
        "rounds": learner.rounds,
        "data_left": learner.data_left,
        "kept": [int(i) for i in learner.kept],
        "buffers": {name: {"capacity": b.capacity, "cursor": b.cursor} for name, b in buffers.items()},
        "spec": list(world.spec),
        "seed": world.seed,
        "world": world.bookmark(),
        "config": asdict(config),
        "manifest": {name: [array.nbytes, _digest(array)] for name, array in arrays.items()},
        **words,
    }
    replace_file(file, save(arrays, seal(about)))


def seal(about: dict[str, Any]) -> dict[str, str]:
    """The metadata of a checkpoint as safetensors stores it."""
    text = json.dumps(about)
    return {"mbdp": text, "sha256": sha256(text.encode()).hexdigest()}


def read_about(file: Path) -> dict[str, Any]:
    """The metadata of a checkpoint: its configuration, step, seed and environment."""
    if file.is_dir():
        newest = max((file / "checkpoints").glob("*.mbdp"), default="the file that `save` wrote")
        raise BadInput(f"{file}: a folder, not a checkpoint; pass {newest}")
    try:
        if (size := file.stat().st_size) > MOST_BYTES:
            raise BadInput(f"{file}: {size} bytes are more than a checkpoint has ({MOST_BYTES})")
        with safetensors.safe_open(file, framework="numpy") as opened:
            stored = opened.metadata() or {}
        about = json.loads(stored["mbdp"])
        if about["format"] not in (BEFORE_EXPANSION, FORMAT):
            known = f"{BEFORE_EXPANSION} and {FORMAT}"
            raise BadInput(f"{file}: written in format {about['format']!r:.20}; this version of mbdp reads {known}")
        if sha256(stored["mbdp"].encode()).hexdigest() != stored["sha256"]:
            raise BadInput(f"{file}: damaged, its metadata does not have the SHA-256 that it had when written")
        if about["algo"] not in METHODS:
            raise BadInput(f"{file}: algo is {about['algo']!r:.20}, not one of {', '.join(METHODS)}")
        kind = METHODS[about["algo"]].config
        if about["format"] == BEFORE_EXPANSION:
            about = _of_today(about, kind)
        if kind is Config:  # of before these settings: nothing was cut, and all real rows were alike
            about["config"] = {"cut_episodes": 0, "recent": 0.0, "fit_recent": 0.0} | about["config"]
        if unknown := set(about["config"]) - {one.name for one in fields(kind)}:
            raise BadInput(
                f"{file}: of another version of mbdp, with a setting {min(unknown)!r:.40} that is unknown here"
            )
        about["config"] = kind(**_with_tuples(about["config"]))
        _check(about)
    except FileNotFoundError:
        raise BadInput(f"{file}: there is no such file") from None
    except (safetensors.SafetensorError, OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, BadInput) and str(file) in str(error):
            raise
        raise BadInput(f"{file}: not a whole checkpoint of mbdp ({type(error).__name__}: {error!s:.200})") from error
    except RecursionError:
        raise BadInput(f"{file}: not a checkpoint of mbdp (its metadata is nested too deeply)") from None
    return about


def load_learner(file: Path, about: dict[str, Any]) -> Learner:
    """The learner of a checkpoint, every array checked against the manifest and against the shape it must have."""
    spec, buffers = Spec(*about["spec"]), about["buffers"]
    try:
        with safetensors.safe_open(file, framework="numpy") as opened:
            names = opened.keys()
            arrays = {name: _intact(file, name, opened.get_tensor(name), about) for name in names}
        if max(about["config"].depth, about["config"].model_depth) > len(arrays):
            raise BadInput(f"{file}: has fewer arrays than its configuration has layers")
        # Shapes only: nothing as large as a file declares is made before the file is seen to hold it.
        learner = Learner(*jax.eval_shape(lambda: _learned(about)), *(_empty(buffers[b], spec) for b in BUFFERS))
        for part in LEARNED:
            whole = getattr(learner, part)
            values = [_fitting(file, part + name, leaf, arrays) for name, leaf in _leaves(whole).items()]
            setattr(learner, part, jax.tree.unflatten(jax.tree.structure(whole), values))
    except (safetensors.SafetensorError, OSError, TypeError, ValueError, MemoryError, OverflowError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{file}: not a whole checkpoint of mbdp ({type(error).__name__}: {error!s:.200})") from error
    for name in BUFFERS:
        buffer: Replay = getattr(learner, name)
        rows = arrays.get(name, np.empty(0))
        if rows.ndim != 2 or rows.shape[1] != spec.row_width or len(rows) > buffer.capacity or rows.dtype != np.float32:
            raise BadInput(f"{file}: {name} has the shape {rows.shape}")
        buffer.add(rows)
        buffer.cursor = buffers[name]["cursor"]
    learner.step, learner.acted, learner.rounds = about["step"], bool(about["acted"]), about["rounds"]
    learner.kept, learner.data_left = np.asarray(about["kept"], np.int64), about.get("data_left", 0)
    return learner


def load_world(file: Path, about: dict[str, Any]) -> dict[str, np.ndarray]:
    """What `World.arrays` wrote into a checkpoint."""
    with safetensors.safe_open(file, framework="numpy") as opened:
        names = [name for name in opened.keys() if name.startswith("world.")]  # noqa: SIM118 (it is no dict)
        return {name: _intact(file, name, opened.get_tensor(name), about) for name in names}


def _of_today(about: dict[str, Any], kind: type) -> dict[str, Any]:
    """The metadata of a checkpoint of format 4 in today's form."""
    settings, due = dict(about["config"]), about["due"]
    if kind is Config:
        settings = SETTINGS_BEFORE_EXPANSION | settings
        settings["member_per"] = "row" if settings["group"] == "members" else settings["member_per"]
    begun = {"step": about["step"] - (due > 0), "acted": int(due > 0), "rounds": due if about["algo"] == "slbo" else 0}
    return about | begun | {"config": settings, "kept": list(range(settings["members"]))}


def _learned(about: dict[str, Any]) -> list[Any]:
    learner = METHODS[about["algo"]].create(about["config"], Spec(*about["spec"]), seed=about["seed"])
    return [getattr(learner, part) for part in LEARNED]


def _with_tuples(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as they were before JSON made lists of their tuples."""
    return {name: tuple(map(int, x)) if isinstance(x, list) else x for name, x in settings.items()}


def _empty(words: dict[str, int], spec: Spec) -> Replay:
    return Replay(words["capacity"], spec)


def _intact(file: Path, name: str, array: np.ndarray, about: dict[str, Any]) -> np.ndarray:
    if about["manifest"].get(name) != [array.nbytes, _digest(array)]:
        raise BadInput(f"{file}: damaged, {name} does not have the size and SHA-256 of the manifest")
    return array


def _fitting(file: Path, name: str, like: Any, arrays: dict[str, np.ndarray]) -> jax.Array:
    if name not in arrays:
        raise BadInput(f"{file}: {name} is missing")
    array = arrays[name]
    if array.shape != like.shape or array.dtype != like.dtype:
        raise BadInput(f"{file}: {name} is {array.dtype}{array.shape}, not {like.dtype}{like.shape}")
    return jax.numpy.asarray(array)


def _digest(array: np.ndarray) -> str:
    return sha256(array.reshape(-1).view(np.uint8).data).hexdigest()


def _check(about: dict[str, Any]) -> None:
    """Raise ValueError unless the metadata has the right types and sane values, whoever wrote it."""
    spec, config = about["spec"], about["config"]
    whole = {
        "seed": about["seed"],
        "step": about["step"],
        "acted": about["acted"],
        "rounds": about["rounds"],
        "data_left": about.get("data_left", 0),
        **{f"world {name}": about["world"][name] for name in BOOKMARK},
        "envs": about["world"].get("envs", 1),
    }
    for name, words in about["buffers"].items():
        whole |= {f"{name} capacity": words["capacity"], f"{name} cursor": words["cursor"]}
    whole |= dict(zip(("observation size", "action size"), spec, strict=True))
    for name, value in whole.items():
        if type(value) is not int or not 0 <= value < 2**31:
            raise ValueError(f"{name} is {value!r:.40}")
    for name in BUFFERS:
        capacity, cursor = about["buffers"][name]["capacity"], about["buffers"][name]["cursor"]
        if (declared := capacity * Spec(*spec).row_width * 4) > MOST_BYTES:
            raise ValueError(f"{name} is declared to be of {declared / 1e9:.1f} GB, more than {MOST_BYTES / 1e9:.0f}")
        if not cursor < capacity:
            raise ValueError(f"{name} has a cursor of {cursor} in {capacity} rows")
    if min(spec) < 1 or not about["step"] <= config.steps <= about["buffers"]["d_env"]["capacity"]:
        raise ValueError(f"spec {spec}, step {about['step']} of {config.steps} do not fit together")
    if whole["data_left"] > getattr(config, "data_steps", 0):
        raise ValueError(f"data_left is {whole['data_left']} of {getattr(config, 'data_steps', 0)} data_steps")
    kept = about["kept"]
    if not isinstance(kept, list) or not all(type(i) is int and 0 <= i < config.members for i in kept):
        raise ValueError(f"kept is {about['kept']!r:.40}")
    if not all(isinstance(about[name], str) for name in ("env", "algo")) or not isinstance(about["manifest"], dict):
        raise ValueError("env, algo or manifest is of the wrong kind")


def _leaves(tree: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
