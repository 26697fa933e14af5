"""The versions that a result was made with."""

import ast
import hashlib
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

# What a run learns does not depend on these parts of the package.
OUTSIDE_THE_LEARNER = (
    "analysis",
    "experiments",
    "policies",
    "robustness",
    "storage",
    "api.py",
    "callbacks.py",
    "theory.py",
)
PACKAGES = ("mbdp", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco")


def versions() -> dict[str, str | None]:
    """Packages, Python, platform, a digest of the learning code, and its commit if it runs from a checkout, by name."""
    return {name: version(name) for name in PACKAGES} | {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "learner": learner_digest(Path(__file__).parents[1]),
        "commit": commit(Path(__file__).parents[3]),
    }


def learner_digest(package: Path) -> str:
    """A digest of the code that decides what a run learns, without docstrings and lines of comments."""
    files = sorted(file.relative_to(package).as_posix() for file in package.rglob("*.py"))
    digest = hashlib.sha256()
    for name in files:
        if not name.startswith(OUTSIDE_THE_LEARNER):
            digest.update(f"{name}\0{_what_it_does((package / name).read_text())}".encode())
    return digest.hexdigest()[:12]


def _what_it_does(source: str) -> str:
    """A module's lines without docstrings, lines of comments and empty ones: the same on every version of Python."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            first, last = node.body[0].lineno - 1, node.body[0].end_lineno
            lines[first:last] = [""] * len(lines[first:last])
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def commit(root: Path) -> str | None:
    """The commit of the checkout at `root`, with "-dirty" if its src/ has changed since; None where there is none."""
    top = _git(root, "rev-parse", "--show-toplevel")
    if not top or Path(top) != root.resolve():  # an installed package can lie inside of another project's checkout
        return None
    head, changes = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain", "--", "src")
    return None if head is None or changes is None else head + "-dirty" * bool(changes)


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints, or None if it cannot."""
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
