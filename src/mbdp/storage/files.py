"""Files that are there whole or not at all, and a folder that one process at a time writes to."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import lock_descriptor

from mbdp.types import BadInput


def replace_file(file: Path, content: bytes) -> None:
    """Write a file so that at any moment, power cuts included, either the old or the new one is there, whole."""
    partial = file.with_name(f".{file.name}.partial")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)
        sync(file.parent)
    except OSError as error:
        _forget(partial)
        raise BadInput(f"{file} cannot be written ({error.strerror or error}); what was there is as it was") from error


def sync(path: Path) -> None:
    """Return when a file's content, or a folder's list of names, has reached the disk."""
    folder = path.is_dir()
    try:
        opened = os.open(path, os.O_RDONLY if folder else os.O_RDWR)  # Windows flushes only what may be written
    except PermissionError:
        if folder:  # Windows opens none, and keeps its lists of names by itself
            return
        raise
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def remove_partials(folder: Path) -> None:
    """Remove what a process that died while writing has left."""
    for partial in folder.glob(".*.partial"):
        _forget(partial)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from writing to a folder; the system releases the lock of a process that has died."""
    pid = folder / ".pid"  # beside the lock, because on Windows nobody else can read a file that is locked
    with ExitStack() as stack:
        try:
            stream = stack.enter_context((folder / ".lock").open("a"))
            free = lock_descriptor(stream.fileno(), blocking=False)
            if free:
                pid.write_text(str(os.getpid()))
        except OSError as error:
            raise BadInput(f"{folder} cannot be written to ({error.strerror})") from None
        if not free:
            holder = pid.read_text() if pid.exists() else ""
            raise BadInput(f"{folder} is in use by another process (pid {holder or '?'})")
        yield


def _forget(file: Path) -> None:
    with suppress(OSError):  # it will be tried again at the next start
        file.unlink(missing_ok=True)
