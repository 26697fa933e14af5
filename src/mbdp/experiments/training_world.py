"""The world that a run learns in: nominal, perturbed (`--perturb mass=0.8`), or drawn anew for every episode."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbdp.robustness.axes import AXES, DISTURBANCES, finite
from mbdp.types import BadInput, Termination

TERMINATIONS = ("known", "learned")  # what can be asked for; otherwise it is known where a rule is

# Learner and simulator are imported when they are needed: --help needs neither.
if TYPE_CHECKING:
    import gymnasium

    from mbdp.api import MBDP

Coefficients = Mapping[str, float]  # none of them: the nominal world
Ranges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class TrainingWorld:
    """How the world differs from the nominal one: always, and in the episodes of training from one to the next.

    The axes are checked when an environment is made, because it may have axes of its own.
    """

    perturb: Coefficients = field(default_factory=dict)
    randomise: Ranges = field(default_factory=dict)

    def words(self) -> dict[str, Any]:
        """As config.json and checkpoints keep it: nothing for the nominal world."""
        ranges = {name: list(pair) for name, pair in self.randomise.items()}
        return {name: said for name, said in (("perturb", dict(self.perturb)), ("randomise", ranges)) if said}


NOMINAL_WORLD = TrainingWorld()


def add_world(parser: argparse.ArgumentParser) -> tuple[argparse.Action, argparse.Action]:
    """The options of commands that make such a world."""
    text = f"in a world that differs from the nominal one: {', '.join(AXES)} (see mbdp robustness --help)"
    perturb = parser.add_argument("--perturb", nargs="+", default=[], metavar="AXIS=VALUE", help=text)
    text = "draw the world anew for every training episode, as mass=0.8:1.2; evaluations are not randomised"
    return perturb, parser.add_argument("--randomise", nargs="+", default=[], metavar="AXIS=LO:HI", help=text)


def read_world(perturb: Sequence[str], randomise: Sequence[str]) -> TrainingWorld:
    """AXIS=VALUE and AXIS=LO:HI, as the command line has them."""
    return TrainingWorld(
        _read("--perturb", "AXIS=VALUE, as mass=0.8", perturb, float),
        _read("--randomise", "AXIS=LO:HI, as mass=0.8:1.2", randomise, _pair),
    )


def world_of_words(words: Any) -> TrainingWorld:
    """The world that `TrainingWorld.words` describes, or BadInput for what is none: a file may say anything."""
    try:
        perturb = {str(axis): finite(axis, value) for axis, value in words.get("perturb", {}).items()}
        ranges = {str(axis): (low, high) for axis, (low, high) in words.get("randomise", {}).items()}
        return TrainingWorld(
            perturb, {axis: (finite(axis, low), finite(axis, high)) for axis, (low, high) in ranges.items()}
        )
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise BadInput(str(error) if isinstance(error, BadInput) else f"not a table of axes: {words!r:.60}") from None


def make_world(env_id: str, perturb: Coefficients, **options: Any) -> "gymnasium.Env":
    """The environment, with the coefficients of its nominal world."""
    from mbdp.envs.tasks import make
    from mbdp.robustness import perturb as physics

    env = make(env_id, **options)
    return physics.perturb(env, perturb) if perturb else env


def make_judging_world(env_id: str, perturb: Coefficients, **options: Any) -> "gymnasium.Env":
    """The same, for evaluations and pictures: an environment that breaks off or changes its spaces is one line."""
    from mbdp.envs.checked import Checked

    return Checked(make_world(env_id, perturb, **options))


def make_training_world(env_id: str, world: TrainingWorld) -> "gymnasium.Env":
    """The environment that a run learns in, after making sure that every axis has an effect in it."""
    from mbdp.envs.tasks import make
    from mbdp.robustness.effect import check_effect
    from mbdp.robustness.randomised import Randomised

    env = make_world(env_id, world.perturb)
    check_effect(make(env_id), {axis: [value] for axis, value in world.perturb.items()})
    return Randomised(env, world.randomise) if world.randomise else env


def new_agent(env_id: str, world: TrainingWorld, *, termination: str = "", **settings: Any) -> "MBDP":
    """An agent that will learn in that world; the end of episodes is learned if that is wanted, or no rule is known."""
    from mbdp.api import MBDP

    if world == NOMINAL_WORLD:
        agent = MBDP(env_id, termination="learned" if termination == "learned" else "known", **settings)
    else:
        rule = None if termination == "learned" else _rule(env_id, world)
        agent = MBDP(partial(make_training_world, env_id, world), termination=rule or "learned", **settings)
        agent.env_id = env_id  # as it was asked for, with the module that it imports if it does
    check_termination(agent.config, termination)
    if termination == "known" and agent.termination is None:
        raise BadInput(f"termination must be learned in {env_id}: no rule for the end of its episodes is known")
    return agent


def check_termination(config: Any, termination: str) -> None:
    """Refuse a wish for how the end of episodes is known where nothing would come of it."""
    if termination and not getattr(config, "imagines", True):
        raise BadInput("termination is of no use where nothing is imagined (sac, real-ratio 1)")


def load_agent(file: Path, env_id: str | None, world: TrainingWorld) -> "MBDP":
    """The agent of a checkpoint in that world; `env_id` is the caller's word for an environment that imports code."""
    from mbdp.api import MBDP
    from mbdp.envs.tasks import registered
    from mbdp.storage.checkpoint import read_about

    if world == NOMINAL_WORLD:
        return MBDP.load(file, env=partial(make_world, env_id, {}) if env_id else None)
    about = read_about(file)
    known = env_id or registered(about["env"], file)
    rule = _rule(known, world) if about["known_termination"] else None
    return MBDP.load(file, env=partial(make_training_world, known, world), termination=rule)


def world_of(run: Path) -> TrainingWorld:
    """What config.json of a run says of its world."""
    try:
        return world_of_words(json.loads((run / "config.json").read_text()))
    except FileNotFoundError:
        return NOMINAL_WORLD
    except (OSError, ValueError) as error:
        raise BadInput(f"{run / 'config.json'}: its world cannot be read ({error})") from None


def _read(option: str, form: str, arguments: Sequence[str], number: Callable[[str], Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for argument in arguments:
        axis, _, value = argument.partition("=")
        if axis in found:
            raise BadInput(f"{option} has {axis} twice")
        try:
            found[axis] = number(value)
        except ValueError:
            raise BadInput(f"{option} takes {form}; not {argument!r}") from None
    return found


def _pair(text: str) -> tuple[float, float]:
    low, high = text.split(":")
    return float(low), float(high)


def _rule(env_id: str, world: TrainingWorld) -> Termination | None:
    """The task's rule for the end of episodes, which scaled physics leave as it is and noisy observations do not."""
    from mbdp.envs.tasks import make
    from mbdp.termination import known_rule

    return None if {*world.perturb, *world.randomise} & set(DISTURBANCES) else known_rule(make(env_id))
