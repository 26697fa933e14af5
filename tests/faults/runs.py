"""Small runs, how they die, and what is left of them."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from mbdp.envs.toy import POINT_MASS
from mbdp.experiments.checkpoint_folder import checkpoints_of
from mbdp.experiments.cli import main
from mbdp.experiments.record import Record
from mbdp.storage.checkpoint import read_about
from tests.conftest import TINY, TINY_SLBO, TINY_STEVE


def options_of(settings: dict[str, Any]) -> list[str]:
    """Settings as the command line takes them."""
    quick = [part for name, value in settings.items() for part in ("--" + name.replace("_", "-"), str(value))]
    return [*quick, "--evaluate-every", "30", "--episodes", "2", "--quiet"]


# d_model holds one fit, so that its ring turns: the place of a row in it matters.
OPTIONS = options_of(TINY | {"d_model_fits": 1})
BASELINES = {name: options_of(tiny | {"steps": 100}) for name, tiny in (("steve", TINY_STEVE), ("slbo", TINY_SLBO))}


class Death(BaseException):
    """The process ends here, without a chance to do anything."""


def train(out: Path, *options: str, env: str = POINT_MASS) -> Path:
    """A run of 100 steps, its directory."""
    algo = options[options.index("--algo") + 1] if "--algo" in options else "mbdp"
    run = out / algo / f"{env.replace('/', '-')}_0"
    assert main(["train", env, *BASELINES.get(algo, OPTIONS), *options, "--out", str(out)]) == 0
    return run


def start_and_die(
    patch: pytest.MonkeyPatch, out: Path, step: int, saved: Iterable[int], *, acted: bool = False, **rest: Any
) -> Path:
    """A run that checkpoints at the steps `saved`, and dies after `step` of them, or in the midst of the next one."""
    with patch.context() as context:
        context.setattr(Record, "checkpoint", _dying(Record.checkpoint, step, {0, *saved}, acted))
        with pytest.raises(Death):
            train(out, "--checkpoint-minutes", "0", *rest.pop("options", ()), **rest)
    return next(out.glob("*/*"))


def _dying(checkpoint: Callable[..., None], step: int, saved: set[int], acted: bool) -> Callable[..., None]:
    def wrapper(self: Record, agent: Any, words: Any) -> None:
        if agent.learner.step in saved:
            checkpoint(self, agent, words)
        if agent.learner.step == step and agent.learner.acted == acted:
            raise Death

    return wrapper


def remains(run: Path) -> dict[str, Any]:
    """All that a finished run says, except how long it took and how often it looked at the clock."""
    last = checkpoints_of(run)[-1]
    about = read_about(last)
    about.pop("run")
    with np.load(run / "evaluations.npz") as stored:
        evaluations = {name: stored[name].tolist() for name in stored}
    return {
        "metrics": metrics(run),
        "evaluations": evaluations,
        "policy": (run / "policy.safetensors").read_bytes(),
        "config": json.loads((run / "config.json").read_text()),
        "about": repr(about),
        "tensors": {name: array.tobytes() for name, array in load_file(last).items()},
    }


def metrics(run: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without the clock's."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if not name.startswith("time/")} for line in lines]
