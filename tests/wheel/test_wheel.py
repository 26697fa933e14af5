"""The wheel in an empty environment, away from the clone: what a user has after `pip install`."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED = [match[1] for one in PROJECT["classifiers"] if (match := re.search(r"Python :: (3\.\d+)$", one))]
QUIET = ("--quiet", "--disable-pip-version-check")
TINY = [
    "--steps",
    "60",
    "--random-steps",
    "40",
    "--model-width",
    "16",
    "--width",
    "16",
    "--rollouts",
    "40",
    "--fit-steps",
    "5",
    "--first-fit-steps",
    "10",
    "--batch",
    "16",
    "--evaluate-every",
    "60",
    "--episodes",
    "1",
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    call(Path(sys.executable), "-m", "pip", "wheel", *QUIET, "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


def find_python(version: str) -> Path | None:
    """A Python of this version: the one that runs the tests, one on the path, or one that pyenv has."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [sys.executable, shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
    return next((Path(file) for file in found if file and version_of(file) == version), None)


def version_of(file: str | Path) -> str:
    """As the file itself says, because pyenv puts a `python3.12` on the path that only says it is not installed."""
    code = "import sys; print(*sys.version_info[:2], sep='.')"
    return subprocess.run([file, "-c", code], capture_output=True, text=True).stdout.strip()


# The oldest Python that is declared is always tested, the others where the machine has them.
TESTED = [DECLARED[0], *filter(find_python, DECLARED[1:])]


@pytest.fixture(scope="module", params=TESTED)
def python(request, tmp_path_factory, wheel):
    """The interpreter of an environment that holds the wheel and what it depends on, and nothing else."""
    base = find_python(request.param)
    assert base, f"there is no Python {request.param}, which must be tested"
    folder = tmp_path_factory.mktemp("empty")
    call(base, "-m", "venv", str(folder))
    executable = folder / "bin" / "python"
    call(executable, "-m", "pip", "install", *QUIET, "--constraint", str(ROOT / "constraints.txt"), str(wheel))
    return executable


def call(executable: Path, *arguments: str, cwd: Path | None = None) -> str:
    environment = {name: x for name, x in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(executable), *arguments], capture_output=True, text=True, cwd=cwd or Path("/"), env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_the_types_and_the_specs_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {"mbdp/py.typed", "mbdp/specs/curves_smoke.toml", "mbdp/analysis/report/page.html"} <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"mbdp"}


def test_the_oldest_python_that_pip_accepts_is_declared_and_so_is_the_one_that_runs_the_tests():
    assert PROJECT["requires-python"] == f">={DECLARED[0]}"
    assert version_of(sys.executable) in DECLARED


def test_a_policy_is_trained_evaluated_and_tried_in_other_worlds(python, tmp_path):
    mbdp = python.with_name("mbdp")
    assert "mbdp" in call(mbdp, "--version")
    call(mbdp, "train", "InvertedPendulum-v5", *TINY, cwd=tmp_path)
    run = "runs/mbdp/InvertedPendulum-v5_0"
    assert "mean return" in call(mbdp, "evaluate", run, "--episodes", "1", cwd=tmp_path)
    call(mbdp, "robustness", run, "--grid", "0.8,1.2", "--episodes", "1", "--workers", "1", cwd=tmp_path)
    assert (tmp_path / "runs/robustness/InvertedPendulum-v5/heatmap.png").exists()


def test_a_figure_finds_its_spec_without_a_clone(python, tmp_path):
    code = "from mbdp.experiments.reproduce_command import spec_of; print(spec_of('heatmaps_retrained', 'paper'))"
    assert "site-packages" in call(python, "-c", code, cwd=tmp_path)


def test_a_type_checker_sees_the_types(python, tmp_path):
    (tmp_path / "user.py").write_text("from mbdp import MBDP\nagent: MBDP = MBDP('Hopper-v5', seed='zero')\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", str(python), "user.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert 'Argument "seed" to "MBDP" has incompatible type "str"; expected "int"' in done.stdout


def test_pip_install_of_a_clone_works_in_the_same_environment(python, tmp_path):
    call(python, "-m", "pip", "install", *QUIET, "--no-deps", "--force-reinstall", str(ROOT))
    assert "site-packages" in call(python, "-c", "import mbdp; print(mbdp.__file__)", cwd=tmp_path)
