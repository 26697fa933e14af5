"""Shell completion, as bash asks for it: the documented line, then a line that is being typed."""

import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

from mbdp.experiments.completion import IDS

BIN = Path(sys.executable).parent
SCRIPT = """
eval "$(register-python-argcomplete mbdp)"
COMP_LINE="$1"; COMP_POINT=${#1}; COMP_TYPE=9
COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
_python_argcomplete mbdp
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(line: str, folder: Path) -> set[str]:
    """What bash would offer after a line that is being typed."""
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", SCRIPT, "bash", line], capture_output=True, text=True, cwd=folder, env=environment, check=True
    )
    return {word.strip() for word in done.stdout.splitlines()} - {""}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mbdp re", {"resume", "report", "reproduce"}),
        ("mbdp train Half", {"HalfCheetah-v5"}),
        ("mbdp train Hopper-v5 --algo st", {"steve"}),
        ("mbdp train Hopper-v5 --model-", {"--model-width", "--model-depth", "--model-learning-rate"}),
        ("mbdp reproduce heatmaps --reading ", {"zero-shot", "retrained"}),
        ("mbdp sweep ", {"runs/", "spec.toml"}),
        ("mbdp resume ", {"runs/"}),
    ],
)
def test_what_could_follow_is_offered(tmp_path, line, expected):
    (tmp_path / "runs").mkdir()
    (tmp_path / "spec.toml").touch()
    assert expected <= offered(line, tmp_path)


def test_a_file_is_not_offered_where_a_folder_is_needed(tmp_path):
    (tmp_path / "spec.toml").touch()
    assert "spec.toml" not in offered("mbdp resume ", tmp_path)


def test_every_task_that_is_offered_exists():
    from mbdp.envs import toy  # noqa: F401 (registers the point mass)

    assert set(IDS) <= set(gymnasium.registry)
