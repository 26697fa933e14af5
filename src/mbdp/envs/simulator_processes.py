"""Starting and ending the processes that simulators run in, so that none is left behind and Ctrl-C reaches none."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker

import gymnasium
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from mbdp.types import BadInput

PATIENCE = 0.3  # seconds until the end of a process is known, and a signal that ended it has reached this one too
GUARD = 'a script needs `if __name__ == "__main__":` around its calls'


def start(makers: Sequence[Callable[[], gymnasium.Env]], name: str) -> AsyncVectorEnv:
    """A process for each environment, which begins its next episode by itself."""
    others = set(multiprocessing.active_children())
    try:
        with _out_of_reach_of_ctrl_c():
            # Not forked: JAX has threads, and a copy of their locks may be locked for ever.
            return AsyncVectorEnv(makers, shared_memory=False, context="spawn", autoreset_mode=AutoresetMode.DISABLED)
    except BaseException as error:
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
        if isinstance(error, EOFError | OSError):
            why = f"{GUARD}, and its env must be importable in another process"
            raise BadInput(f"{name}: {len(makers)} processes could not be started: {why}") from error
        if isinstance(error, Exception):
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadInput(f"{name} cannot be sent to another process, so envs must be 1: {said:.200}") from error
        raise


def end(vector: AsyncVectorEnv) -> None:
    """Let every simulator close itself, and end its process."""
    try:
        vector.close()
    except (EOFError, OSError):
        kill(vector)


def kill(vector: AsyncVectorEnv) -> str:
    """End all processes at once, whatever they are doing; how one had ended before, if any had."""
    time.sleep(PATIENCE)
    ended = [f"of env {i} ended {_how(p.exitcode)}" for i, p in enumerate(vector.processes) if p.exitcode is not None]
    for process, pipe in zip(vector.processes, vector.parent_pipes, strict=True):
        process.kill()
        process.join()
        if pipe is not None:
            pipe.close()
    vector.closed = True
    return ended[0] if ended else "of an env does not answer"


def _how(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


@contextmanager
def _out_of_reach_of_ctrl_c() -> Iterator[None]:
    """Processes started in this block never see SIGINT: the run finishes its step, saves itself and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would unblock the signal if it were started later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
