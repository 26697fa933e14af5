"""Blocks of rollouts by the kernels for a processor: what `rollout` does in JAX elsewhere."""

from collections.abc import Iterator
from functools import partial

import jax
import numpy as np

from mbdp.dropout import rollout_dropout
from mbdp.kernels import imagination, layout
from mbdp.kernels.imagination import Scales, Settings
from mbdp.models.ensemble import Ensemble
from mbdp.models.fit_on_cpu import one_of, rows_of
from mbdp.networks import MLP
from mbdp.replay import unpack
from mbdp.rollout import Imagined, Plan, drawn_noise
from mbdp.types import Spec, Termination


class Imagination:
    """An ensemble and an actor as the kernels have them."""

    def __init__(self, model: Ensemble, actor: MLP, spec: Spec):
        members = jax.tree.map(np.asarray, model.members)
        self.spec = spec
        self.settings = Settings(
            observations=spec.observation_size,
            actions=spec.action_size,
            actor=layout.shape_of(actor),
            member=layout.shape_of(one_of(members, 0).network),
            deterministic=model.members.deterministic,
        )
        self.actor = layout.zeros(layout.row_size(self.settings.actor))
        layout.fill(self.actor, actor)
        self.members, self.bounds = rows_of([one_of(members, number) for number in range(len(model))])
        scaling = jax.tree.map(np.asarray, model.scaling)
        self.scales = Scales(
            scaling.input_mean,
            1 / scaling.input_std,
            scaling.target_mean,
            scaling.target_std,
            scaling.low,
            scaling.high,
        )

    def __len__(self) -> int:
        return len(self.members)


def rollout_block(
    networks: Imagination,
    starts: np.ndarray,
    rng: np.random.Generator,
    samples: int,
    plan: Plan,
    one_member: np.ndarray,
) -> Iterator[Imagined]:
    """The rollouts from some of the starts, step by step; `one_member` is that of each step, if it is one for all."""
    shape, width, o = (len(starts), samples), networks.spec.row_width, networks.spec.observation_size
    together = plan.group == "members"
    room, observation, alive = imagination.room(networks.settings), starts[:, None], np.ones(shape, bool)
    for depth, chosen in enumerate(one_member):
        noise = drawn_noise(rng, shape, networks.spec, actions=1 if together else samples)
        rows = np.empty((*shape, width), np.float32)
        rows[..., :o] = observation
        flat = rows.reshape(-1, width)
        if together:
            single = np.ascontiguousarray(rows[:, 0])
            imagination.act(single, 1, noise.of_policy[:, 0], networks.actor, networks.settings, room)
            rows[...] = single[:, None]
            order, limits = np.arange(len(flat)).reshape(shape).T.ravel(), len(starts) * np.arange(samples + 1)
        else:
            # At depth 0 all samples are in one state, of which the actor says the same.
            of_policy = noise.of_policy.reshape(len(flat), -1)
            imagination.act(flat, 1 if depth else samples, of_policy, networks.actor, networks.settings, room)
            order, limits = noise.order, np.linspace(0, len(flat), len(networks) + 1).astype(np.int64)
            if plan.member_per == "step":
                limits = len(flat) * (np.arange(len(networks) + 1) > chosen)
        bounded, logits = np.empty(len(flat), bool), np.empty(len(flat), np.float32)
        imagination.predict(
            flat,
            order,
            limits,
            noise.of_model.reshape(len(flat), -1),
            networks.members,
            networks.bounds,
            networks.scales,
            bounded,
            logits,
            networks.settings,
            room,
        )
        flat[:, -1] = _ends(plan.termination, flat, logits, networks.spec, rng)
        yield Imagined(rows, alive, bounded.reshape(shape) & alive)
        observation, terminated = rows[..., -1 - o : -1], rows[..., -1] > 0
        if together:
            survives = rollout_dropout(rows[..., -2 - o], plan.alpha)
            survivor = np.argmax(rng.random(survives.shape, np.float32) + survives, axis=1)[:, None]
            observation = np.take_along_axis(observation, survivor[..., None], axis=1)
            terminated = np.take_along_axis(terminated, survivor, axis=1)
        alive = alive & ~terminated


def _ends(
    termination: Termination | None, rows: np.ndarray, logits: np.ndarray, spec: Spec, rng: np.random.Generator
) -> np.ndarray:
    """Where imagined episodes end: by the known rule, or drawn with the learned probability."""
    if termination is None:
        with np.errstate(over="ignore"):
            return rng.random(len(logits), np.float32) < 1 / (1 + np.exp(-logits))
    return np.asarray(_by_rule(rows, termination=termination, spec=spec))


@partial(jax.jit, static_argnames=("termination", "spec"))
def _by_rule(rows: jax.Array, *, termination: Termination, spec: Spec) -> jax.Array:
    transition = unpack(rows, spec)
    ended = termination(transition.observation, transition.action, transition.next_observation)
    return jax.numpy.broadcast_to(ended, rows.shape[:-1])
