"""Episodes as pictures with the return so far written into them, one alone or two side by side."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from mbdp.experiments.drawing import follow_robot, prepare_off_screen
from mbdp.experiments.training_world import Coefficients, make_judging_world
from mbdp.robustness.processes import one_line
from mbdp.types import BadInput

if TYPE_CHECKING:
    import gymnasium

MOST_SECONDS = 60.0  # of an episode that are shown
USUAL_RATE = 30.0  # pictures per second of an environment that does not say how fast it is
BAR, TEXT, MARGIN = 26, 16, 8  # pixels
NARROWEST = 400  # pixels that a picture must have for the words above it
WHITE, GREY, BLACK = (255, 255, 255), (170, 170, 170), (0, 0, 0)


class Shot(NamedTuple):
    """One picture (height, width, 3) of an episode, and how it stands."""

    picture: np.ndarray
    total: float
    step: int
    over: bool


class Film(NamedTuple):
    """Pictures of one episode, or of several side by side, and their rate in real time."""

    pictures: Iterator[np.ndarray]
    rate: float


class Scene(NamedTuple):
    """A policy in an environment that was made with render_mode="rgb_array", what to call it, and the reset's seed."""

    policy: Callable[[np.ndarray], np.ndarray]
    env: "gymnasium.Env"
    title: str
    seed: int


def drawable(env_id: str, perturb: Coefficients) -> "gymnasium.Env":
    """The environment, made so that it can be filmed."""
    try:
        return make_judging_world(env_id, perturb, render_mode="rgb_array")
    except Exception as error:  # an environment without pictures refuses the argument in a way of its own
        raise BadInput(f"{env_id} cannot be filmed: {one_line(error)}") from error


def film(scenes: Sequence[Scene], most_per_second: float) -> Film:
    """The scenes side by side, until the last of them is over; its last picture stays for a second."""
    rate = float(scenes[0].env.metadata.get("render_fps") or USUAL_RATE)
    every = max(1, round(rate / most_per_second))
    shown = rate / every

    def pictures() -> Iterator[np.ndarray]:
        last: list[Shot | None] = [None] * len(scenes)
        for shots in itertools.zip_longest(*(_shots(scene, every, rate) for scene in scenes)):
            last = [new or old for new, old in zip(shots, last, strict=True)]
            picture = _side_by_side([_captioned(shot, s.title) for shot, s in zip(last, scenes, strict=True) if shot])
            yield picture
        yield from itertools.repeat(picture, round(shown))

    return Film(pictures(), shown)


def _shots(scene: Scene, every: int, rate: float) -> Iterator[Shot]:
    """Every so many steps of an episode, and the last."""
    env = scene.env
    prepare_off_screen(env)
    follow_robot(env)
    observation, over, total, step = env.reset(seed=scene.seed)[0], False, 0.0, 0
    while True:
        if over or step % every == 0:
            yield Shot(_draw(env), total, step, over)
        if over or step >= MOST_SECONDS * rate:
            return
        observation, reward, terminated, truncated, _ = env.step(scene.policy(observation[None])[0])
        total, step, over = total + float(reward), step + 1, bool(terminated or truncated)


def _draw(env: "gymnasium.Env") -> np.ndarray:
    name = env.spec.id if env.spec else type(env.unwrapped).__name__
    # Several environments share one OpenGL, and the last one that drew has it.
    viewer: Any = getattr(getattr(env.unwrapped, "mujoco_renderer", None), "viewer", None)
    try:
        if viewer is not None:
            viewer.make_context_current()
        picture = np.asarray(env.render())
    except Exception as error:  # the environment's own code, or OpenGL, and there are many ways
        raise BadInput(f"{name} cannot be drawn: {one_line(error)}") from error
    if picture.ndim != 3 or picture.shape[-1] != 3 or picture.dtype != np.uint8:
        raise BadInput(f"{name}: render() must give a picture (height, width, 3) of uint8; it gave {picture.shape}")
    return picture


def _captioned(shot: Shot, title: str) -> np.ndarray:
    """The picture under a bar that says what it shows, the return so far, and whether it is over."""
    factor = math.ceil(NARROWEST / shot.picture.shape[1])
    picture = shot.picture.repeat(factor, axis=0).repeat(factor, axis=1)
    image = Image.new("RGB", (picture.shape[1], picture.shape[0] + BAR), BLACK)
    image.paste(Image.fromarray(picture), (0, BAR))
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(TEXT)
    words = f"return {shot.total:,.1f}  {'ended at ' * shot.over}step {shot.step}"
    width = pen.textlength(words, font=font)
    pen.text((MARGIN, BAR / 2), title, WHITE, font, anchor="lm")
    pen.rectangle((image.width - width - 2 * MARGIN, 0, image.width, BAR - 1), BLACK)
    pen.text((image.width - MARGIN, BAR / 2), words, GREY if shot.over else WHITE, font, anchor="rm")
    return np.asarray(image)


def _side_by_side(pictures: list[np.ndarray]) -> np.ndarray:
    """All in one row, with even sizes, which H.264 needs."""
    height = max(picture.shape[0] for picture in pictures)
    level = [np.pad(picture, ((0, height - len(picture)), (0, 0), (0, 0))) for picture in pictures]
    row = np.concatenate(level, axis=1)
    return np.pad(row, ((0, height % 2), (0, row.shape[1] % 2), (0, 0)))
