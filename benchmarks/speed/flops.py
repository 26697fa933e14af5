"""How many multiplications and additions the parts of the algorithm need."""

from collections.abc import Sequence
from itertools import pairwise

from mbdp.types import Spec


def forward(sizes: Sequence[int], rows: int) -> int:
    """A pass through dense layers."""
    return 2 * rows * sum(m * n for m, n in pairwise(sizes))


def backward(sizes: Sequence[int], rows: int, *, weights: bool = True, inputs: bool = False) -> int:
    """The gradient of the weights, and of what went into each layer, the first one's only if it is asked for."""
    products = 2 * rows * sum(m * n for m, n in pairwise(sizes))
    first = 2 * rows * sizes[0] * sizes[1]
    return weights * products + products - (not inputs) * first


def sac_update(spec: Spec, *, width: int, depth: int, batch: int, actor_every: int = 1) -> float:
    """A critic update, and its share of an actor update."""
    hidden = [width] * depth
    actor = [spec.observation_size, *hidden, 2 * spec.action_size]
    critic = [spec.observation_size + spec.action_size, *hidden, 1]
    of_critic = forward(actor, batch) + 4 * forward(critic, batch) + 2 * backward(critic, batch)
    of_actor = forward(actor, batch) + backward(actor, batch)
    # Both critics judge an action, and the lower one of a row passes its gradient back.
    of_actor += 2 * forward(critic, batch) + backward(critic, batch, weights=False, inputs=True)
    return of_critic + of_actor / actor_every


def ensemble_step(spec: Spec, *, members: int, width: int, depth: int, batch: int) -> int:
    """A gradient step of every member."""
    sizes = model_sizes(spec, width=width, depth=depth)
    return members * (forward(sizes, batch) + backward(sizes, batch))


def imagination(spec: Spec, rows: int, actions: int, *, model: tuple[int, int], policy: tuple[int, int]) -> int:
    """So many imagined rows and policy's actions; `model` and `policy` are (width, depth)."""
    actor = [spec.observation_size, *[policy[0]] * policy[1], 2 * spec.action_size]
    return forward(model_sizes(spec, width=model[0], depth=model[1]), rows) + forward(actor, actions)


def model_sizes(spec: Spec, *, width: int, depth: int) -> list[int]:
    """Layers of a member: mean and log-variance of next observation and reward, and termination."""
    inputs, targets = spec.observation_size + spec.action_size, spec.observation_size + 1
    return [inputs, *[width] * depth, 2 * targets + 1]
