import shutil
from pathlib import Path

import pytest

from tests.faults.runs import train


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing happened to; not to be changed."""
    return train(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def finished(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may damage."""
    return shutil.copytree(whole, tmp_path / "finished")
