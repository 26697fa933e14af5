import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mbdp.analysis.curves import draw_curves, read_curve, smoothed
from mbdp.types import BadInput


def run_with(folder: Path, returns: list[float]) -> Path:
    """A run directory that was evaluated every 1,000 env steps, with a line between that says nothing of returns."""
    folder.mkdir(parents=True)
    lines = [{"step": 1_000 * (i + 1), "eval/mean_reward": value} for i, value in enumerate(returns)]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, [{"step": 250, "model/bias": 1.0}, *lines])))
    return folder


def test_a_curve_is_what_the_evaluations_say(tmp_path):
    steps, returns = read_curve(run_with(tmp_path / "Task_0", [1.0, 4.0]))
    assert (steps.tolist(), returns.tolist()) == ([1_000, 2_000], [1.0, 4.0])


def test_a_run_that_was_never_evaluated_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"Task_0.*no evaluation"):
        read_curve(run_with(tmp_path / "Task_0", []))


def test_smoothing_takes_the_mean_of_the_last_env_steps():
    steps = np.array([1_000, 2_000, 3_000, 4_000])
    assert smoothed(steps, np.array([0.0, 2.0, 4.0, 9.0]), 2_000).tolist() == [0.0, 1.0, 3.0, 6.5]


@pytest.mark.parametrize("window", [None, 2_000])
def test_curves_of_several_seeds_are_drawn(tmp_path, window):
    runs = [run_with(tmp_path / f"Task_{seed}", [1.0, 2.0, 3.0 + seed]) for seed in range(2)]
    draw_curves(runs, tmp_path / "curves.png", labels=["one", "one"], window=window)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


DRAW = """
import sys
from pathlib import Path
import matplotlib
matplotlib.use("svg")  # a choice of the user's, and neither our own nor the default
before = dict(matplotlib.rcParams)
import numpy as np
from mbdp.analysis.curves import draw_curves
from mbdp.analysis.heatmap import draw_grid
folder = Path(sys.argv[1])
draw_curves([folder], folder / "curves.png")
for axes in ({"mass": [0.5, 1.0]}, {"mass": [0.5, 1.0], "friction": [1.0, 2.0]}):
    returns = np.arange(2.0 * 2 ** len(axes)).reshape(1, *[2] * len(axes), 2)
    draw_grid({"one": returns}, axes, dict.fromkeys(axes, 1.0), folder / f"{len(axes)}.png", "Task", "zero-shot")
assert dict(matplotlib.rcParams) == before
assert matplotlib.get_backend() == "svg"
assert "matplotlib.pyplot" not in sys.modules
"""


def test_drawing_leaves_the_users_backend_and_settings_of_matplotlib_alone(tmp_path):
    run = run_with(tmp_path / "Task_0", [1.0, 2.0])
    subprocess.run([sys.executable, "-c", DRAW, str(run)], check=True)
    assert all((run / name).read_bytes().startswith(b"\x89PNG") for name in ("curves.png", "1.png", "2.png"))
