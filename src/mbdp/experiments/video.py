"""A film of a policy, as a GIF, drawn off screen."""

import os
from pathlib import Path

from mbdp.policies.policy import Policy
from mbdp.types import BadInput


def film(policy: Policy, file: Path, *, seed: int) -> None:
    """One episode of the policy, at most ten seconds of it, written to `file`."""
    if file.suffix.lower() != ".gif":
        raise BadInput(f"--video writes a GIF: {file} must end in .gif")
    os.environ.setdefault("MUJOCO_GL", "egl")
    import numpy as np
    from PIL import Image

    from mbdp.envs.tasks import make

    try:
        env = make(policy.env, render_mode="rgb_array")
        frames: list[Image.Image] = []
        observation, over = env.reset(seed=seed)[0], False
        while not over and len(frames) < 500:
            frames.append(Image.fromarray(np.asarray(env.render())))
            observation, _, terminated, truncated, _ = env.step(policy(observation[None])[0])
            over = terminated or truncated
    except Exception as error:  # whatever a machine without OpenGL raises, and there are many ways
        raise BadInput(f"--video: this machine cannot draw {policy.env} ({type(error).__name__}: {error})") from error
    frames[0].save(file, save_all=True, append_images=frames[2::2], duration=40, loop=0)
