"""Video files: an MP4 through ffmpeg, or a GIF through Pillow."""

import importlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbdp.types import BadInput

if TYPE_CHECKING:
    import numpy as np

    from mbdp.experiments.film import Scene

MOST_PER_SECOND = {".mp4": 30.0, ".gif": 25.0}  # pictures; a GIF counts in hundredths of a second


def check_video(file: Path) -> None:
    """BadInput unless such a file can be written here: known before anything is computed."""
    if file.suffix.lower() not in MOST_PER_SECOND:
        raise BadInput(f"--video: {file} must end in .mp4 or .gif")
    if not file.parent.is_dir() or file.is_dir():
        raise BadInput(f"--video: {file} cannot be written: there is no folder {file.parent}, or it is one itself")
    if file.suffix.lower() != ".mp4":
        return
    try:
        importlib.import_module("imageio_ffmpeg")
    except ImportError:
        need = "an .mp4 needs the package imageio-ffmpeg (pip install 'mbdp[video]'); a .gif does not"
        raise BadInput(f"--video: {need}") from None


def write_video(scenes: "Sequence[Scene]", file: Path) -> None:
    """Film the scenes side by side into `file`, which is there as a whole or not at all."""
    from mbdp.experiments.film import film

    check_video(file)
    kind = file.suffix.lower()
    pictures, rate = film(scenes, MOST_PER_SECOND[kind])
    partial = file.with_name(f".{file.stem}.partial{kind}")
    try:
        (_write_mp4 if kind == ".mp4" else _write_gif)(partial, pictures, rate)
        partial.replace(file)
    except OSError as error:
        raise BadInput(f"--video: {file} cannot be written ({error.strerror or error})") from error
    finally:
        partial.unlink(missing_ok=True)
        for scene in scenes:
            scene.env.close()


def _write_mp4(file: Path, pictures: "Iterator[np.ndarray]", rate: float) -> None:
    import imageio_ffmpeg
    import numpy as np

    first = next(pictures)
    size = first.shape[1], first.shape[0]
    writer: Any = imageio_ffmpeg.write_frames(str(file), size, fps=rate, quality=7, macro_block_size=2)
    writer.send(None)
    try:
        for picture in chain([first], pictures):
            writer.send(np.ascontiguousarray(picture))
    finally:
        writer.close()


def _write_gif(file: Path, pictures: "Iterator[np.ndarray]", rate: float) -> None:
    from PIL import Image

    images = (Image.fromarray(picture).quantize(128) for picture in pictures)
    next(images).save(file, save_all=True, append_images=images, duration=round(100 / rate) * 10, loop=0)
