"""The commit and the digest of the learning code in versions.json."""

import subprocess
from pathlib import Path

import pytest

from mbdp.experiments.versions import commit, learner_digest, versions


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", *who, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("1\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def test_the_commit_of_a_checkout_is_recorded(checkout):
    assert commit(checkout) == git(checkout, "rev-parse", "HEAD")


@pytest.mark.parametrize("file", ["code.py", "new.py"])
def test_code_that_was_changed_or_added_since_is_dirty(checkout, file):
    (checkout / "src" / file).write_text("2\n")
    assert commit(checkout) == git(checkout, "rev-parse", "HEAD") + "-dirty"


def test_notes_beside_the_code_are_not_dirty(checkout):
    (checkout / "notes.txt").write_text("2\n")
    assert commit(checkout) == git(checkout, "rev-parse", "HEAD")


def test_a_package_inside_of_another_projects_checkout_has_no_commit(checkout):
    assert commit(checkout / "src") is None


def test_without_git_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit(Path(__file__).parents[2]) is None
    assert versions()["commit"] is None


@pytest.mark.parametrize(
    ("file", "changes"), [("agents/sac.py", True), ("algorithm.py", True), ("analysis/runs.py", False)]
)
def test_the_digest_changes_with_the_learning_code_and_with_nothing_else(tmp_path, file, changes):
    for name in ("agents/sac.py", "algorithm.py", "analysis/runs.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n")
    before = learner_digest(tmp_path)
    (tmp_path / file).write_text("2\n")
    assert (learner_digest(tmp_path) != before) == changes


def test_comments_and_docstrings_do_not_change_the_digest(tmp_path):
    file = tmp_path / "algorithm.py"
    file.write_text('"""What it does."""\n\n\ndef f(x):\n    """Double."""\n    return 2 * x\n')
    before = learner_digest(tmp_path)
    file.write_text('"""In other words."""\n\n\ndef f(x):\n    """Twice."""  # or so\n    return 2 * x\n')
    assert learner_digest(tmp_path) == before
    file.write_text('"""In other words."""\n\n\ndef f(x):\n    """Twice."""\n    return 3 * x\n')
    assert learner_digest(tmp_path) != before
