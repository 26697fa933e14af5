"""What drawing needs from the system: a way to draw off the screen, or a screen. What is missing is named."""

import functools
import os
import subprocess
import sys
import warnings
from ctypes.util import find_library
from typing import TYPE_CHECKING, Any

from mbdp.types import BadInput

if TYPE_CHECKING:
    import gymnasium

# Ways to draw without a screen, and for each the libraries that it takes, with Debian's packages of them.
OFF_SCREEN = {
    "egl": {"EGL": "libegl1", "EGL_mesa": "libegl-mesa0", "OpenGL": "libopengl0"},
    "osmesa": {"OSMesa": "libosmesa6"},
}
PROBE = """
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><light/><geom size='1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 32, 32) as renderer:
    renderer.update_scene(data)
    assert renderer.render().any(), "the picture is black"
"""


def prepare_off_screen(env: "gymnasium.Env") -> None:
    """Choose a way to draw a MuJoCo environment off the screen, or BadInput that names the missing packages."""
    if not is_mujoco(env) or sys.platform != "linux":  # elsewhere the system has one way, and MuJoCo knows it
        return
    asked = os.environ.get("MUJOCO_GL")
    tried = {name: failure(name) for name in ([asked] if asked else OFF_SCREEN)}
    working = [name for name, reason in tried.items() if not reason]
    if not working:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in tried.items())
        raise BadInput(f"this machine cannot draw off the screen; {advice(tried)} ({reasons})")
    os.environ["MUJOCO_GL"] = working[0]


@functools.cache
def failure(way: str) -> str:
    """Why MuJoCo cannot draw in this way, tried in a process of its own because some drivers end it; or nothing."""
    environment = os.environ | {"MUJOCO_GL": way}
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(" ")]
    errors = [line for line in lines if "Error" in line.split(":")[0]]
    return (errors or lines or [f"the process ended with {done.returncode}"])[-1][:200]


def advice(tried: Any) -> str:
    """The packages that are missing for the first of these ways, as far as that can be seen."""
    for way in tried:
        libraries = OFF_SCREEN.get(way, {})
        if missing := [package for library, package in libraries.items() if not find_library(library)]:
            return f"on Debian: apt-get install {' '.join(missing)}"
    return f"MUJOCO_GL can be {' or '.join(OFF_SCREEN)}; on Debian: apt-get install libegl-mesa0 libosmesa6"


def check_screen(env: "gymnasium.Env | None" = None) -> None:
    """BadInput unless a window can be opened; for a MuJoCo environment that is tried."""
    instead = "mbdp evaluate RUN --video FILE writes a video instead"
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise BadInput(f"there is no screen to open a window on (DISPLAY is not set); {instead}")
    if env is None or not is_mujoco(env):
        return
    import glfw

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opened = glfw.init() and glfw.get_primary_monitor()
    if not opened:
        reason = " ".join(str(caught[-1].message).split()) if caught else "no monitor was found"
        raise BadInput(f"no window can be opened on this screen ({reason}); {instead}")


def follow_robot(env: "gymnasium.Env") -> None:
    """Let MuJoCo's camera go with the robot where its model has a camera for that; Gymnasium 1.4 leaves it behind."""
    import mujoco

    if not is_mujoco(env):
        return
    renderer: Any = env.unwrapped.mujoco_renderer  # type: ignore[attr-defined]
    camera = mujoco.mj_name2id(renderer.model, mujoco.mjtObj.mjOBJ_CAMERA, "track")
    if camera < 0:
        return
    renderer.camera_id = camera  # of pictures
    if renderer.viewer is not None and env.render_mode == "human":
        view = renderer.viewer.cam
        view.type, view.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, renderer.model.cam_bodyid[camera]


def is_mujoco(env: "gymnasium.Env") -> bool:
    """Whether MuJoCo draws this environment."""
    return hasattr(env.unwrapped, "mujoco_renderer")
