"""The folder `checkpoints/` of a run: the last two are kept, and the newest that is intact is used."""

from pathlib import Path
from typing import Any

from mbdp.api import MBDP
from mbdp.experiments.training_world import load_agent, world_of_words
from mbdp.storage.checkpoint import read_about
from mbdp.storage.files import remove_partials
from mbdp.types import BadInput

KEPT = 2


def checkpoints_of(run: Path) -> list[Path]:
    """A run's checkpoints, oldest first."""
    return sorted((run / "checkpoints").glob("step_*.mbdp"))


def checkpoint_name(step: int) -> str:
    return f"step_{step:09}.mbdp"


def save_in(run: Path, agent: MBDP, words: dict[str, Any]) -> None:
    """Add a checkpoint, with the run's own `words`, and drop those that are no longer needed."""
    agent.save(run / "checkpoints" / checkpoint_name(agent.learner.step), run=words)
    for old in checkpoints_of(run)[:-KEPT]:
        old.unlink(missing_ok=True)


def newest_of(run: Path, env_id: str | None = None) -> tuple[MBDP, dict[str, Any], list[str]]:
    """The agent of the newest intact checkpoint, the run's words in it, and what is wrong with newer ones.

    Those are renamed, so that they are neither taken for good ones again nor lost.
    """
    for folder in (run, run / "checkpoints"):
        remove_partials(folder)
    complaints: list[str] = []
    unusable: list[Path] = []
    for file in reversed(checkpoints_of(run)):
        try:
            words = _words_of_run(file)
            agent = load_agent(file, env_id, words["world"])
        except BadInput as error:
            complaints.append(str(error))
            unusable.append(file)
            continue
        for other in unusable:
            other.rename(other.with_name(other.name + ".damaged"))
        return agent, words, complaints
    if complaints:
        raise BadInput(f"no checkpoint can be used; {complaints[0]}")
    raise BadInput(f"{run}: there is no checkpoint in it to go on from")


def _words_of_run(file: Path) -> dict[str, Any]:
    """What `train` needs to go on, checked for its kind: somebody else may have written the file."""
    words: Any = read_about(file).get("run")
    try:
        return {
            "schedule": {
                "evaluate_every": max(1, int(words["schedule"]["evaluate_every"])),
                "episodes": max(1, int(words["schedule"]["episodes"])),
                "checkpoint_minutes": float(words["schedule"]["checkpoint_minutes"]),
            },
            "episodes": [(float(total), int(length)) for total, length in words["episodes"]],
            "training": {str(name): float(x) for name, x in words.get("training", {}).items()},
            "evaluations": [
                (int(step), [float(x) for x in returns], [int(x) for x in lengths])
                for step, returns, lengths in words["evaluations"]
            ],
            "elapsed": float(words["elapsed"]),
            "world": world_of_words(words),
        }
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise BadInput(f"{file}: saved by hand, not by `mbdp train` ({type(error).__name__}: {error})") from None
