"""A process for each run: on one core, with one thread, and gone when the process that started it is gone."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from filelock import lock_descriptor

# Where a process cannot be kept on one core, these keep XLA and the libraries below NumPy from starting more threads.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NPROC": "1"}
XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


def start(module: str, request: dict[str, Any], **streams: Any) -> subprocess.Popen[str]:
    """Start `python -m module`, which finds the request in its standard input.

    The other end of that pipe stays open as long as this process lives: see `follow_parent`. A session of its own
    keeps the terminal's Ctrl-C from the child: it gets the signal once, from whoever manages it.
    """
    child = subprocess.Popen(
        [sys.executable, "-m", module],
        env=os.environ | ONE_THREAD | {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {XLA_ONE_THREAD}".strip()},
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **streams,
    )
    assert child.stdin is not None
    with suppress(BrokenPipeError):  # it is dead already, as its exit code will say
        child.stdin.write(json.dumps(request) + "\n")
        child.stdin.flush()
    return child


def exit_code(child: subprocess.Popen[str]) -> int | None:
    """How the child ended, None while it goes on."""
    code = child.poll()
    if code is not None and child.stdin is not None:
        child.stdin.close()
    return code


def stop(children: list[subprocess.Popen[str]], number: int) -> None:
    """Send a signal to all, and wait until they have written their checkpoints."""
    for child in children:
        child.send_signal(number)  # does nothing to one that has ended
    for child in children:
        child.wait()
        exit_code(child)


def received() -> dict[str, Any]:
    """In the child: what it is asked to do."""
    return json.loads(sys.stdin.readline())


def follow_parent() -> None:
    """In the child: end as after SIGTERM, with a checkpoint, when the parent is gone, however it went."""

    def watch() -> None:
        while os.read(0, 1024):  # not sys.stdin, whose lock a thread must not hold when the process ends
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def take_a_core() -> IO[str] | None:
    """In the child: stay on a core that no other run of this user has, whichever sweep it is of.

    The core is ours as long as the returned file is open. Where all are taken, one is shared.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    allowed = sorted(os.sched_getaffinity(0))
    for core in allowed:
        try:
            stream = _core_file(core).open("a")
        except OSError:
            break
        if not lock_descriptor(stream.fileno(), blocking=False):
            stream.close()
            continue
        os.sched_setaffinity(0, {core})
        return stream
    os.sched_setaffinity(0, {allowed[os.getpid() % len(allowed)]})
    return None


def _core_file(core: int) -> Path:
    folder = Path(tempfile.gettempdir()) / f"mbdp-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / str(core)
