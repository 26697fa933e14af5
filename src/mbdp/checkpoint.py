"""A learner and its place in the world, to and from one safetensors file: loading runs no code."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors
from safetensors.numpy import save

from mbdp.algorithm import Learner, create
from mbdp.config import Config
from mbdp.envs.interact import World
from mbdp.replay import Replay
from mbdp.types import BadInput, Spec

FORMAT = 1
LEARNED = ("agent", "model", "model_optimiser")
BUFFERS = ("d_env", "d_model")


def save_checkpoint(file: Path, learner: Learner, world: World, config: Config, words: dict[str, Any]) -> None:
    """Write all that the run needs to go on; `words` are the caller's own. The file is replaced whole or not at all."""
    tensors = {f"{part}{name}": leaf for part in LEARNED for name, leaf in _leaves(getattr(learner, part)).items()}
    for name in BUFFERS:
        buffer: Replay = getattr(learner, name)
        tensors[name] = buffer.newest(len(buffer))
    about = {
        "format": FORMAT,
        "step": learner.step,
        "capacity": {name: getattr(learner, name).capacity for name in BUFFERS},
        "spec": list(world.spec),
        "seed": world.seed,
        "world": world.bookmark(),
        "config": asdict(config),
        **words,
    }
    content = save({k: np.asarray(v, order="C") for k, v in tensors.items()}, {"mbdp": json.dumps(about)})
    replace_file(file, content)


def read_about(file: Path) -> dict[str, Any]:
    """The words of a checkpoint: its configuration, step, seed and environment."""
    try:
        with safetensors.safe_open(file, framework="numpy") as opened:
            about = json.loads((opened.metadata() or {})["mbdp"])
        if about["format"] != FORMAT:
            raise BadInput(f"{file}: format {about['format']}; this version reads {FORMAT}")
        about["config"]["horizon"] = tuple(about["config"]["horizon"])
        about["config"] = Config(**about["config"])
    except FileNotFoundError:
        raise BadInput(f"{file}: there is no such file") from None
    except (safetensors.SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{file}: not a checkpoint of mbdp ({type(error).__name__}: {error})") from error
    return about


def load_learner(file: Path) -> Learner:
    """The learner of a checkpoint, every array checked against the shape that its configuration gives."""
    about = read_about(file)
    learner = create(about["config"], Spec(*about["spec"]), seed=about["seed"])
    with safetensors.safe_open(file, framework="numpy") as opened:
        names = set(opened.keys())

        def tensor(name: str, like: Any = None) -> np.ndarray:
            if name not in names:
                raise BadInput(f"{file}: {name} is missing")
            value: np.ndarray = opened.get_tensor(name)
            if like is not None and (value.shape != like.shape or value.dtype != like.dtype):
                raise BadInput(f"{file}: {name} is {value.dtype}{value.shape}, not {like.dtype}{like.shape}")
            return value

        for part in LEARNED:
            whole = getattr(learner, part)
            values = [jax.numpy.asarray(tensor(part + name, leaf)) for name, leaf in _leaves(whole).items()]
            setattr(learner, part, jax.tree.unflatten(jax.tree.structure(whole), values))
        for name in BUFFERS:
            buffer, rows = Replay(about["capacity"][name], Spec(*about["spec"])), tensor(name)
            if rows.ndim != 2 or rows.shape[1] != buffer.spec.row_width or len(rows) > buffer.capacity:
                raise BadInput(f"{file}: {name} has the shape {rows.shape}")
            buffer.add(rows)
            setattr(learner, name, buffer)
    learner.step = about["step"]
    return learner


def replace_file(file: Path, content: bytes) -> None:
    """Write a file so that at any moment either the old or the new one is there, whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.partial")
    with partial.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _leaves(tree: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
