"""Files and locks on systems unlike this one; tests/faults has those that need a run."""

import os
import subprocess
import sys

import pytest

from mbdp.storage.files import locked, replace_file, sync
from mbdp.types import BadInput

WITHOUT_FCNTL = """
import sys
sys.modules["fcntl"] = None  # as on Windows
import mbdp.storage.checkpoint, mbdp.storage.files
"""


def test_storage_can_be_imported_where_there_is_no_fcntl():
    subprocess.run([sys.executable, "-c", WITHOUT_FCNTL], check=True)


def test_a_system_that_opens_no_folders_can_write_files(tmp_path, monkeypatch):
    """As Windows, which also flushes no file that was opened for reading only."""
    opened = os.open

    def open_as_windows(path, flags, *more, **options):
        if os.path.isdir(path) or not flags & (os.O_RDWR | os.O_WRONLY):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", open_as_windows)
    replace_file(tmp_path / "file", b"new")
    sync(tmp_path / "file")
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_lock_excludes_a_second_one_and_is_free_afterwards(tmp_path):
    with (
        locked(tmp_path),
        pytest.raises(BadInput, match=f"in use by another process .pid {os.getpid()}"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        pass


def test_an_error_in_the_block_is_not_taken_for_one_of_the_lock(tmp_path):
    with pytest.raises(OSError, match="of the block"), locked(tmp_path):
        raise OSError("of the block")
