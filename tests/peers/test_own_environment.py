"""The example of an own environment, run as a user runs it: it learns, and goes all the way to the exported file."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_learns_is_robust_to_its_own_parameter_and_runs_from_onnx(tmp_path):
    file = tmp_path / "crane.onnx"
    command = [sys.executable, str(ROOT / "examples" / "own_environment.py"), "--out", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    returns = {float(x): float(y) for x, y in re.findall(r"cable x ([\d.]+) +return +([\d.]+)", done.stdout)}
    assert list(returns) == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert returns[1.0] > 70  # doing nothing gives 42
    assert f"its return is {returns[1.0]}" in done.stdout
    assert file.exists()
