"""What is known of a task: how to make it, when its episodes end, and how the authors of MBPO set it up."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mbdp.types import BadInput, Spec, Termination

# Gymnasium and MuJoCo are imported when an environment is made: what is known of a task does not need them.
if TYPE_CHECKING:
    import gymnasium

EnvMaker = Callable[[], "gymnasium.Env"]


@dataclass(frozen=True)
class Task:
    """Knowledge about one family of environments, all of it optional."""

    termination: Termination | None = None
    target_entropy: float | None = None
    horizon: tuple[int, int, int, int] = (1, 1, 0, 0)  # from, to, first and last env step of a linear growth
    last_discount: float = 0.0  # what the default preset's discount grows to in these steps
    steps: int = 20_000
    updates_per_step: int = 20  # the paper's
    updates: tuple[int, int] | None = None  # of critics and actor in the default preset, where others than usual
    options: dict[str, Any] = field(default_factory=dict)  # for gymnasium.make, v5 only


def _never(observation: Any, action: Any, following: Any) -> Any:
    return np.zeros(following.shape[:-1], bool)


def _hopper(observation: Any, action: Any, following: Any) -> Any:
    height, angle = following[..., 0], following[..., 1]
    sane = (abs(following[..., 1:]) < 100).all(axis=-1)
    return ~((height > 0.7) & (abs(angle) < 0.2) & sane)


def _walker2d(observation: Any, action: Any, following: Any) -> Any:
    height, angle = following[..., 0], following[..., 1]
    return ~((height > 0.8) & (height < 2.0) & (abs(angle) < 1.0))


def _ant(observation: Any, action: Any, following: Any) -> Any:
    height = following[..., 0]
    return ~((height >= 0.2) & (height <= 1.0))


def _inverted_pendulum(observation: Any, action: Any, following: Any) -> Any:
    return ~(abs(following[..., 1]) <= 0.2)


def _inverted_double_pendulum(observation: Any, action: Any, following: Any) -> Any:
    sine, cosine = following[..., 1:3], following[..., 3:5]
    cosine_of_sum = cosine[..., 0] * cosine[..., 1] - sine[..., 0] * sine[..., 1]
    return ~(0.6 * (cosine[..., 0] + cosine_of_sum) > 1.0)


def _point_mass(observation: Any, action: Any, following: Any) -> Any:
    return abs(following[..., 0]) > 2.0


TASKS = {
    "Hopper": Task(_hopper, -1.0, (1, 15, 20_000, 100_000), last_discount=0.998, steps=120_000, updates=(4, 1)),
    "Walker2d": Task(_walker2d, -3.0, steps=300_000),
    "HalfCheetah": Task(_never, -3.0, steps=400_000, updates_per_step=40),
    "Ant": Task(
        _ant,
        -4.0,
        (1, 25, 20_000, 100_000),
        steps=300_000,
        options={"include_cfrc_ext_in_observation": False},
    ),
    "InvertedPendulum": Task(_inverted_pendulum, steps=5_000),
    "InvertedDoublePendulum": Task(_inverted_double_pendulum, steps=20_000),
    "Swimmer": Task(_never, steps=50_000),
    "Reacher": Task(_never, steps=20_000),
    "Pendulum": Task(_never, steps=10_000),
    "mbdp/PointMass": Task(_point_mass, steps=2_000),
}


def task_of(env_id: str) -> Task:
    """What is known of an environment, by its id without the version; nothing, if it is not one of ours."""
    return TASKS.get(env_id.rpartition("-v")[0], Task())


def make(env_id: str, **options: Any) -> "gymnasium.Env":
    """The environment, as this library runs it: spaces are flattened, Ant-v5 has 27 observations, as published."""
    import gymnasium

    from mbdp.envs import toy  # noqa: F401 (registers the point mass)
    from mbdp.envs.simulator import without_settotalmass_warning
    from mbdp.envs.spaces import adapted

    ours = task_of(env_id).options if env_id.endswith("-v5") else {}
    try:
        with without_settotalmass_warning():
            return adapted(gymnasium.make(env_id, **ours | options))
    except gymnasium.error.NameNotFound:
        known = [name for name in gymnasium.registry if not name.startswith("phys2d")]
        near = difflib.get_close_matches(env_id, known, n=1)
        hint = (
            f"did you mean {near[0]!r}?" if near else "for example 'Hopper-v5'; gymnasium.pprint_registry() lists all"
        )
        raise BadInput(f"there is no environment {env_id!r}: {hint}") from None
    except (gymnasium.error.Error, ModuleNotFoundError, ImportError) as error:
        raise BadInput(f"environment {env_id!r} cannot be made: {' '.join(str(error).split())}") from None
    except BadInput:
        raise
    except Exception as error:  # an environment, and the module that it is imported from, are anyone's code
        said = " ".join(str(error).split())
        raise BadInput(f"environment {env_id!r} cannot be made: {type(error).__name__}: {said}") from error


def registered(env_id: str, source: object) -> str:
    """The id, if it is registered: a file may name an environment that is there, never code to import."""
    import gymnasium

    from mbdp.envs import toy  # noqa: F401 (registers the point mass)

    if env_id not in {name for full in gymnasium.registry for name in (full, full.rpartition("-v")[0])}:
        raise BadInput(f"{source}: {env_id!r:.60} is not a registered environment, and files import no code")
    return env_id


def spec_of(env: "gymnasium.Env") -> Spec:
    """Sizes of an environment with one-dimensional, bounded Box actions and Box observations; others are refused."""
    import gymnasium

    name = env.spec.id if env.spec else type(env.unwrapped).__name__
    for what, space in (("observation", env.observation_space), ("action", env.action_space)):
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise BadInput(f"{name}: the {what} space must be a one-dimensional Box; it is {space}")
    actions = env.action_space
    assert isinstance(actions, gymnasium.spaces.Box)
    if not (np.isfinite(actions.low).all() and np.isfinite(actions.high).all() and (actions.low < actions.high).all()):
        raise BadInput(f"{name}: the action space must have finite bounds, low below high; it is {actions}")
    assert env.observation_space.shape is not None
    return Spec(env.observation_space.shape[0], actions.shape[0])


__all__ = ["TASKS", "EnvMaker", "Task", "make", "registered", "spec_of", "task_of"]
