"""Minari datasets as arrays; the package is imported only if one is asked for, and nothing is downloaded."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Space

from mbdp.envs.spaces import flat_rows
from mbdp.types import BadInput

PREFIX = "minari:"


def is_minari(source: str | os.PathLike[str]) -> bool:
    """Whether this names a Minari dataset: `minari:ID`, or the folder that holds one."""
    return str(source).startswith(PREFIX) or (Path(source) / "data" / "metadata.json").is_file()


def arrays_of_minari(source: str, observation_space: Space) -> dict[str, np.ndarray]:
    """All transitions of a local dataset, under the names that Stable-Baselines3 has for them."""
    try:
        import minari
    except ImportError:
        raise BadInput(f"{source}: reading it needs the package minari: pip install 'mbdp[minari]'") from None
    try:
        if source.startswith(PREFIX):
            dataset = minari.load_dataset(source.removeprefix(PREFIX))
        else:
            dataset = minari.MinariDataset(Path(source) / "data")
        episodes = [_arrays(episode, observation_space, source) for episode in dataset]
    except BadInput:
        raise
    except Exception as error:  # a folder of somebody's files, read by somebody's package
        if isinstance(error, FileNotFoundError) and (known := source.removeprefix(PREFIX)) != source:
            need = f"minari download {known}"
            raise BadInput(f"{source}: it is not on this machine, and nothing is downloaded here: {need}") from None
        said = " ".join(str(error).split())
        raise BadInput(f"{source}: Minari cannot read it ({type(error).__name__}: {said:.200})") from error
    if not episodes:
        raise BadInput(f"{source}: it has no episodes")
    return {name: np.concatenate([episode[name] for episode in episodes]) for name in episodes[0]}


def _arrays(episode: Any, space: Space, source: str) -> dict[str, np.ndarray]:
    """One episode, which has an observation more than actions."""
    try:
        observations, single = flat_rows(space, episode.observations)
    except (BadInput, KeyError, IndexError, TypeError) as error:
        raise BadInput(f"{source}: its observations are not those of the environment ({error})") from None
    actions = np.asarray(episode.actions)
    if single or len(observations) != len(actions) + 1:
        raise BadInput(f"{source}: an episode has {len(observations)} observations and {len(actions)} actions")
    return {
        "observations": observations[:-1],
        "next_observations": observations[1:],
        "env_actions": actions.reshape(len(actions), -1),
        "rewards": np.asarray(episode.rewards),
        "dones": np.asarray(episode.terminations),
    }
