"""`mbdp watch`: a trained policy in a window."""

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbdp.experiments.drawing import check_screen, follow_robot
from mbdp.experiments.evaluate import FIRST_SEED
from mbdp.types import BadInput

if TYPE_CHECKING:
    import gymnasium

EXAMPLES = """\
examples:
  mbdp watch runs/mbdp/Hopper-v5_0
  mbdp watch runs/mbdp/Hopper-v5_0 --episodes 1 --seed 7

The window needs a screen. Close it, or press Ctrl-C, to end. Without a screen: mbdp evaluate RUN --video FILE.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--env", metavar="ID", help="needed for an id that imports a module: files import no code")
    parser.add_argument("--episodes", type=int, default=5, metavar="N", help="how many (default: 5)")
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help=f"of the first episode (default: {FIRST_SEED})")


def run(args: argparse.Namespace) -> None:
    from mbdp.envs.tasks import registered
    from mbdp.experiments.training_world import make_judging_world, world_of
    from mbdp.policies.policy import load_policy

    if args.episodes < 1 or args.seed < 0:
        raise BadInput("--episodes must be at least 1 and --seed at least 0")
    policy = load_policy(args.run)
    check_screen()
    env = make_judging_world(
        args.env or registered(policy.env, args.run), world_of(args.run).perturb, render_mode="human"
    )
    check_screen(env)
    try:
        for episode in range(args.episodes):
            if not _show(env, policy, args.seed + episode):
                print("the window was closed")
                break
    finally:
        close(env)


def _show(env: "gymnasium.Env", policy: Any, seed: int) -> bool:
    """One episode, drawn by the environment itself at its own pace; False if the user closed the window."""
    observation, over, total, length = env.reset(seed=seed)[0], False, 0.0, 0
    follow_robot(env)
    while not over:
        if is_closed(env):
            return False
        observation, reward, terminated, truncated, _ = env.step(policy(observation[None])[0])
        total, length, over = total + float(reward), length + 1, bool(terminated or truncated)
    print(f"seed {seed}  return {total:10.2f}  length {length}", flush=True)
    return True


def is_closed(env: "gymnasium.Env") -> bool:
    """Whether MuJoCo's window is gone, or about to; Gymnasium would draw into it nevertheless."""
    viewer: Any = getattr(getattr(env.unwrapped, "mujoco_renderer", None), "viewer", None)
    if viewer is None:
        return False
    import glfw

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return bool(glfw.window_should_close(viewer.window))
        except glfw.GLFWError:  # after Escape there is no GLFW any more
            return True


def close(env: "gymnasium.Env") -> None:
    """Close the environment and its window, if the user has not done so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GLFW's of a window that is gone
        env.close()
