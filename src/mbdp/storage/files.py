"""Files that are there whole or not at all, and a folder that one process at a time writes to."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
    opened = os.open(path, os.O_RDONLY)
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
    try:
        stream = (folder / ".lock").open("a+")
    except OSError as error:
        raise BadInput(f"{folder} cannot be written to ({error.strerror})") from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stream.seek(0)
            raise BadInput(f"{folder} is in use by another process (pid {stream.read().strip() or '?'})") from None
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        yield


def _forget(file: Path) -> None:
    with suppress(OSError):  # it will be tried again at the next start
        file.unlink(missing_ok=True)
