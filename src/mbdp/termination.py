"""Whether a rule for the end of episodes may be trusted: that of a task, and one that a user passes."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from mbdp.envs.tasks import make, task_of
from mbdp.replay import Replay, unpack
from mbdp.types import Broken, Termination
from mbdp.user_functions import FEW, said_of

MOST_DISAGREEMENT = 0.01  # of all real steps, beyond which learning with the rule makes no sense
HARMLESS = (OrderEnforcing, PassiveEnvChecker, TimeLimit)  # wrappers that change neither observations nor endings


def known_rule(env: gymnasium.Env) -> Termination | None:
    """The rule of a task that this library knows, if the environment is provably the unmodified one."""
    if env.spec is None or (rule := task_of(env.spec.id).termination) is None:
        return None
    core: Any = env
    while isinstance(core, gymnasium.Wrapper):
        if type(core) not in HARMLESS:
            return None
        core = core.env
    originals = (make(env.spec.id), gymnasium.make(env.spec.id))
    return rule if any(_same(core, original.unwrapped) for original in originals) else None


def disagreement(termination: Termination, d_env: Replay) -> float:
    """The share of real steps of which the rule says otherwise than the environment did; Broken if it is too large."""
    rows = d_env.rows[: len(d_env)]
    said = said_of(termination, d_env).astype(bool)
    was = np.asarray(unpack(rows, d_env.spec).terminated) > 0
    rate = float(np.mean(said != was))
    if rate > MOST_DISAGREEMENT and len(rows) >= FEW:
        missed, invented = int((was & ~said).sum()), int((said & ~was).sum())
        raise Broken(
            f"the termination rule is wrong in {rate:.1%} of {len(rows)} real steps ({missed} ends missed, {invented} "
            f"invented; at most {MOST_DISAGREEMENT:.0%} is accepted): mend it, or pass termination='learned'"
        )
    return rate


def _same(env: Any, original: Any) -> bool:
    """Whether two environments are of one class and have the same settings."""
    return type(env) is type(original) and _settings(env) == _settings(original)


def _settings(env: Any) -> dict[str, Any]:
    """What its constructor was given, as far as it keeps it in plain attributes."""
    plain = (bool, int, float, str, tuple)
    own = {name: value for name, value in vars(env).items() if isinstance(value, plain)}
    return {name: repr(value) for name, value in own.items() if name not in ("_ezpickle_args", "render_mode")}
