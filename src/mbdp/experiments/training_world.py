"""The world that a run learns and is evaluated in: nominal, or perturbed as `--perturb mass=0.8 friction=1.2` says."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbdp.robustness.axes import AXES, DISTURBANCES, check_coefficients
from mbdp.types import BadInput, Termination

# Learner and simulator are imported when they are needed: --help needs neither.
if TYPE_CHECKING:
    import gymnasium

    from mbdp.api import MBDP

Coefficients = Mapping[str, float]  # none of them: the nominal world


def add_perturb(parser: argparse.ArgumentParser) -> None:
    """The option of commands that make such a world."""
    text = f"in a world that differs from the nominal one: {', '.join(AXES)} (see mbdp robustness --help)"
    parser.add_argument("--perturb", nargs="+", default=[], metavar="AXIS=VALUE", help=text)


def read_coefficients(arguments: Sequence[str]) -> dict[str, float]:
    """AXIS=VALUE, as the command line has them."""
    found: dict[str, float] = {}
    for argument in arguments:
        axis, _, value = argument.partition("=")
        if axis in found:
            raise BadInput(f"--perturb has {axis} twice")
        try:
            found[axis] = float(value)
        except ValueError:
            raise BadInput(f"--perturb takes AXIS=VALUE, as mass=0.8; not {argument!r}") from None
    return check_coefficients(found)


def make_world(env_id: str, perturb: Coefficients) -> "gymnasium.Env":
    """The environment, with the coefficients of its nominal world."""
    from mbdp.envs.tasks import make
    from mbdp.robustness import perturb as physics

    return physics.perturb(make(env_id), perturb) if perturb else make(env_id)


def new_agent(env_id: str, perturb: Coefficients, **settings: Any) -> "MBDP":
    """An agent that will learn in that world."""
    from mbdp.api import MBDP

    if not perturb:
        return MBDP(env_id, **settings)
    agent = MBDP(make_world(env_id, perturb), termination=_rule(env_id, perturb) or "learned", **settings)
    agent.env_id = env_id  # as it was asked for, with the module that it imports if it does
    return agent


def load_agent(file: Path, env_id: str | None, perturb: Coefficients) -> "MBDP":
    """The agent of a checkpoint in that world; `env_id` is the caller's word for an environment that imports code."""
    from mbdp.api import MBDP
    from mbdp.envs.tasks import registered
    from mbdp.storage.checkpoint import read_about

    if not perturb:
        return MBDP.load(file, env=make_world(env_id, {}) if env_id else None)
    about = read_about(file)
    known = env_id or registered(about["env"], file)
    rule = _rule(known, perturb) if about["known_termination"] else None
    return MBDP.load(file, env=make_world(known, perturb), termination=rule)


def perturbation_of(run: Path) -> dict[str, float]:
    """What config.json of a run says of its world."""
    try:
        said = json.loads((run / "config.json").read_text()).get("perturb", {})
        return check_coefficients(said)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        raise BadInput(f"{run / 'config.json'}: perturb cannot be read ({error})") from None


def _rule(env_id: str, perturb: Coefficients) -> Termination | None:
    """The task's rule for the end of episodes, which scaled physics leave as it is and noisy observations do not."""
    from mbdp.envs.tasks import make
    from mbdp.termination import known_rule

    return None if set(perturb) & set(DISTURBANCES) else known_rule(make(env_id))
