"""The Python interface, in Stable-Baselines3's words: learn, predict, save, load."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import gymnasium
import jax.numpy as jnp
import numpy as np

from mbdp.algorithm import Progress
from mbdp.callbacks import Callback, as_callback, wants_more
from mbdp.envs.spaces import adaptation_of, flat_rows, without_adaptation
from mbdp.envs.tasks import TASKS, EnvMaker, registered, task_of
from mbdp.envs.vectorised import VectorWorld, made_of, new_world
from mbdp.methods import METHODS, Method
from mbdp.policies.policy import Policy
from mbdp.presets import PREFERENCES
from mbdp.replay import unpack
from mbdp.storage.checkpoint import load_learner, load_world, read_about, save_checkpoint
from mbdp.storage.datasets import Source, read_data
from mbdp.streams import generator
from mbdp.termination import known_rule
from mbdp.types import BadInput, Reward, Termination
from mbdp.user_functions import check_function, in_env_units

CallbackLike = Callback | Callable[["MBDP", Progress], bool | None]
MOST_DATA_STEPS = 20_000  # of learning from data, unless more are asked for


class MBDP:
    """An agent that learns in an environment: `MBDP("Hopper-v5", alpha=0.2, beta=0.2).learn(120_000)`.

    - `env`: an id, any Gymnasium environment with Box spaces, or a class or function that makes one.
    - `envs`: how many environments step at once, each in a process of its own.
    - `termination`: "known", "learned" or a function. "known" is the rule of a known task; if there is none, or the
      environment is a modified one, termination is learned. A function takes (observation, action, next observation)
      as JAX arrays, actions in the environment's units, and returns bools.
    - `reward`: such a function that returns floats. It replaces the learned reward.
    - `settings`: fields of the system's configuration (`mbdp.config.Config`). Their defaults follow `algo` and
      `preset_name`.
    """

    def __init__(
        self,
        env: str | gymnasium.Env | EnvMaker,
        *,
        algo: str = "mbdp",
        preset_name: str = "default",
        prefer: str | None = None,
        termination: Termination | Literal["known", "learned"] = "known",
        reward: Reward | None = None,
        seed: int = 0,
        envs: int = 1,
        **settings: Any,
    ):
        made, maker = made_of(env)
        self.env_id = env if isinstance(env, str) else _id_of(made)
        self.algo = one_of("algo", algo, METHODS)
        advice = PREFERENCES[one_of("prefer", prefer, PREFERENCES)] if prefer else {}
        self.config = _with(algo, METHODS[algo].preset(algo, self.env_id, preset_name), advice | settings)
        self.seed = check_seed(seed)
        for sentence in adaptation_of(made):
            warnings.warn(f"{self.env_id or type(made.unwrapped).__name__}: {sentence}", stacklevel=2)
        self.termination = _rule(made, termination)
        if envs != 1 and algo == "slbo":
            raise BadInput("slbo fits its model to steps that follow each other in one env: envs must be 1")
        self.world = new_world(made, maker, seed, envs)
        self.reward = reward
        self._check_functions()
        self.learner = self.method.create(self.config, self.world.spec, seed=seed)

    @property
    def method(self) -> Method:
        """The system that this agent is of."""
        return METHODS[self.algo]

    def iterate(self, until: int) -> Iterator[Progress]:
        """Learn until so many env steps in all are done, yielding after each."""
        if getattr(self.config, "data_steps", 0) and not self.data:
            raise BadInput("data_steps is of use with data only: learn(..., data=)")
        self.config = replace(self.config, steps=until)
        learner = self.learner
        most = len(learner.d_env) + until - learner.step - learner.acted  # rows at the end, those of data included
        learner.d_env = learner.d_env.resized(max(until, most, learner.d_env.capacity))
        return self.method.loop(learner, self.world, self.config, seed=self.seed, **self.functions())

    def warm_start(self, data: Source) -> list[str]:
        """Put transitions from elsewhere into `d_env`; learning begins with them, before any env step.

        `data` is a path (a run directory or checkpoint, an .npz file, a Minari dataset), `minari:ID`, or a mapping with
        the arrays of a Stable-Baselines3 replay buffer. Returns notes for the user.
        """
        if self.method.loop is not METHODS["mbdp"].loop:
            raise BadInput(
                f"{self.algo} cannot start from data: it learns from its own episodes; use mbdp, mbpo or sac"
            )
        if len(self.learner.d_env) or self.learner.step or self.learner.acted:
            raise BadInput("data must be given once, before the first env step")
        rows, self.data, remarks = read_data(data, self.world)
        self.learner.d_env = self.learner.d_env.resized(self.config.steps + len(rows))
        self.learner.d_env.add(rows)
        self.learner.data_left = self.config.data_steps or min(len(rows), MOST_DATA_STEPS)
        self.config = replace(self.config, data_steps=self.learner.data_left)
        return remarks

    data = ""  # what the agent has learned from before its first env step

    def learn(
        self,
        total_timesteps: int,
        callback: "CallbackLike | Sequence[CallbackLike] | None" = None,
        progress_bar: bool = False,
        data: Source | None = None,
    ) -> "MBDP":
        """Take `total_timesteps` more env steps and learn from them.

        - `callback`: a callback, a function, or a list of them. One that returns False ends the learning early.
        - `data`: learn from these transitions first (see `warm_start`). With 0 env steps this is offline learning.
        """
        from mbdp.experiments.display import Display

        least = 1 if data is None else 0
        if not isinstance(total_timesteps, int) or total_timesteps < least:
            raise BadInput(f"total_timesteps must be a whole number, at least {least}; it is {total_timesteps!r}")
        told = as_callback(callback)
        for remark in self.warm_start(data) if data is not None else ():
            warnings.warn(remark, stacklevel=2)
        until = self.learner.step + total_timesteps
        told.model, told.num_timesteps = self, self.learner.step
        told.on_training_start()
        if total_timesteps:
            told.on_rollout_start()
        with Display(until, self.learner.step, live=progress_bar, silent=not progress_bar) as display:
            outcome = None
            for progress in self.iterate(until):
                display.show(progress)
                outcome = progress.outcome or outcome
                if progress.settled and not wants_more(told, progress._replace(outcome=outcome), until):
                    break
        told.on_training_end()
        return self

    def predict(
        self, observation: np.ndarray, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray, None]:
        """An action for an observation, or actions for a batch of them, in the environment's units."""
        own = without_adaptation(self.world.env)
        rows, single = flat_rows(own.observation_space, observation)
        if deterministic:
            if self._policy is None or self._policy[0] is not self.learner.agent:
                self._policy = self.learner.agent, self.policy()
            action = self._policy[1](rows)
        else:
            rng = generator(self.seed, "predict", self.learner.step, self._predictions)
            self._predictions += 1
            action = self.world.to_env(self.method.acting.explore(self.learner.agent.actor, rows, rng=rng))
        action = action.reshape(len(rows), *(own.action_space.shape or ()))
        return (action[0] if single else action), None

    _policy: tuple[Any, Policy] | None = None  # the agent that a policy was made of, and that policy
    _predictions = 0  # stochastic ones so far: each has a stream of its own

    def policy(self) -> Policy:
        """The deterministic policy as it is now, as plain arrays that need no JAX."""
        layers = self.method.acting.greedy(self.learner.agent, self.world.spec.action_size)
        return Policy(
            **layers,
            action_low=self.world.low,
            action_high=self.world.high,
            env=self.env_id,
            algo=self.algo,
            seed=self.seed,
        )

    @property
    def discount(self) -> float:
        """Gamma as it is now."""
        return self.config.discount_at(self.learner.step)

    def value(self, observations: np.ndarray) -> np.ndarray:
        """The discounted return that critics expect of the deterministic policy; for SAC with its entropy bonus."""
        action, low, high = self.policy()(observations), self.world.low, self.world.high
        scaled = 2 * (action - low) / (high - low) - 1
        return np.asarray(self.method.value(self.learner.agent, jnp.asarray(observations), jnp.asarray(scaled)))

    def save(self, path: str | os.PathLike[str], **words: Any) -> None:
        """Save everything, buffers included, in one file; a loaded agent goes on exactly where this one is."""
        words |= {"env": self.env_id, "algo": self.algo, "known_termination": self.termination is not None}
        words |= {"known_reward": self.reward is not None, "data": self.data}
        save_checkpoint(Path(path), self.learner, self.world, self.config, words)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        env: gymnasium.Env | EnvMaker | None = None,
        termination: Termination | None = None,
        reward: Reward | None = None,
    ) -> "MBDP":
        """Load an agent that `save` wrote; pass `env`, `termination` and `reward` again if they were your own."""
        about = read_about(Path(path))
        if env is None and (not about["env"] or ":" in about["env"]):
            raise BadInput(f"{path}: the agent was trained in an environment of its own; pass it as env=")
        made, maker = made_of(registered(about["env"], path) if env is None else env)
        agent = cls.__new__(cls)
        agent.env_id, agent.algo, agent.config, agent.seed = (about[k] for k in ("env", "algo", "config", "seed"))
        agent.termination = termination or (known_rule(made) if about["known_termination"] else None)
        if about["known_termination"] and agent.termination is None:
            raise BadInput(f"{path}: the agent was trained with a termination rule; pass it as termination=")
        if (reward is not None) != bool(about.get("known_reward")):
            what = "without a reward function" if reward else "with a reward function; pass it as reward="
            raise BadInput(f"{path}: the agent was trained {what}")
        agent.reward, agent.data = reward, str(about.get("data", ""))
        agent.learner = load_learner(Path(path), about)
        agent.world = new_world(made, maker, agent.seed, about["world"].get("envs", 1))
        if agent.world.spec != agent.learner.d_env.spec:
            raise BadInput(
                f"{path}: trained with {agent.learner.d_env.spec}, but the environment has {agent.world.spec}"
            )
        agent._check_functions()
        agent.continued_exactly = agent._return_to(about["world"], load_world(Path(path), about), path)
        return agent

    def _return_to(self, bookmark: dict[str, int], arrays: dict[str, np.ndarray], source: object) -> bool:
        """Bring the world back to where it was; False if it did not repeat itself."""
        if isinstance(self.world, VectorWorld):
            try:
                return self.world.restore(arrays)
            except BadInput as error:
                self.world.close()
                raise BadInput(f"{source}: {error}") from None
        episode = unpack(self.learner.d_env.newest(bookmark["episode_length"]), self.world.spec)
        last = np.asarray(episode.next_observation)[-1] if len(episode.reward) else None
        return self.world.return_to(bookmark, np.asarray(episode.action), last)

    def close(self) -> None:
        """End the processes that the environments run in, if there are any; learning again would start them again."""
        self.world.close()

    def _check_functions(self) -> None:
        """Refuse a termination rule or a reward that cannot be used."""
        if self.reward is not None and self.method.loop is not METHODS["mbdp"].loop:
            raise BadInput(f"{self.algo} learns the reward by itself; reward= is for mbdp, mbpo and their relatives")
        if self.reward is not None and not self.config.imagines:
            raise BadInput(f"{self.algo} imagines nothing, so there is no use for reward=")
        for name, function in self.functions().items():
            if function is not None:
                check_function(name, function, self.world.spec)

    def functions(self) -> dict[str, Any]:
        """The user's functions as functions of actions in [-1, 1], and a task's own rule, which is one already."""
        low, high = self.world.low, self.world.high
        rule, known = self.termination, [task.termination for task in TASKS.values()]
        own = in_env_units(rule, low, high) if rule is not None and rule not in known else rule
        return {"termination": own} | ({"reward": in_env_units(self.reward, low, high)} if self.reward else {})

    continued_exactly = True  # False after loading, if the environment did not repeat the interrupted episode


def _rule(env: gymnasium.Env, wanted: Termination | Literal["known", "learned"]) -> Termination | None:
    """The termination rule to use, or None if it is to be learned."""
    if callable(wanted):
        return wanted
    if one_of("termination", wanted, ("known", "learned")) == "learned":
        return None
    rule = known_rule(env)
    if rule is None and env.spec and task_of(env.spec.id).termination:
        warnings.warn(
            f"{env.spec.id} is not as Gymnasium makes it, so its termination is learned; pass termination=",
            stacklevel=3,
        )
    return rule


def _id_of(env: Any) -> str:
    return env.spec.id if getattr(env, "spec", None) else ""


def check_seed(seed: Any) -> int:
    """A seed that every generator here takes."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**31:
        raise BadInput(f"seed must be a whole number from 0 to 2147483647; it is {seed!r}")
    return seed


def one_of(name: str, value: Any, choices: Any) -> Any:
    """The value, if it is one of the choices."""
    if value not in choices:
        raise BadInput(f"{name} must be one of {', '.join(choices)}; it is {value!r}")
    return value


def _with(algo: str, config: Any, settings: dict[str, Any]) -> Any:
    names = [one.name for one in fields(config)]
    if unknown := [name for name in settings if name not in names]:
        raise BadInput(f"{algo} has no setting {unknown[0]!r}; it has {', '.join(names)}")
    if "discount" in settings and "last_discount" in names:  # one discount that is asked for is meant for the whole run
        settings = {"last_discount": 0.0} | settings
    return replace(config, **settings)
