"""MuJoCo's warnings: a simulation that it has reset, and one message that no user can act on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import mujoco

# MuJoCo's warnings of a simulation that it has reset because its numbers were no longer sane.
UNSTABLE = slice(int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADQACC) + 1)
# Gymnasium's model of HalfCheetah has this attribute, and MuJoCo says at every compilation that it is deprecated.
NOT_OURS_TO_FIX = "attribute 'settotalmass' is deprecated"


@contextmanager
def without_settotalmass_warning() -> Iterator[None]:
    """Models compiled in this block do not print the warning, nor write it to MUJOCO_LOG.TXT; others are printed."""
    before = mujoco.get_mju_user_warning()

    def show(message: str) -> None:
        if NOT_OURS_TO_FIX in message:
            return
        if before is not None:
            before(message)
        else:
            print(f"WARNING: {message}", file=sys.stderr, flush=True)

    mujoco.set_mju_user_warning(show)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
