"""Environments that no preset knows, trained without a setting: what is learned, and what is not.

    python -m benchmarks.unknown_envs [ENV ...] [--steps 10000]

Each run's metrics.jsonl, config.json and versions.json are copied to results/own_environment/ENV_0 when it is finished,
and results/own_environment.png shows all that are there. Hours of one core: after any interruption the same command
goes on. An environment whose package is not installed is left out, which is said.
"""

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
from benchmarks.resumable_runs import run_of
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from mbdp.analysis.curves import read_curve
from mbdp.analysis.figure_style import COLOURS, PAGE, style, thousands
from mbdp.envs.tasks import make
from mbdp.experiments.evaluate import evaluate
from mbdp.types import BadInput

ENVS = ("Pusher-v5", "HumanoidStandup-v5", "Humanoid-v5", "MountainCarContinuous-v0", "BipedalWalker-v3")
OPTIONAL = (  # with a package of their own, see docs/own_environment.md
    "gymnasium_robotics:PointMaze_UMazeDense-v3",
    "shimmy:dm_control/cartpole-swingup-v0",
)
KEPT = ("metrics.jsonl", "config.json", "versions.json")
RESULTS = Path(__file__).parent.parent / "results"
RANDOM = "random.json"  # beside the others: what random actions return
EPISODES = 10
COLUMNS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("envs", nargs="*", metavar="ENV", default=[*ENVS, *OPTIONAL], help="only these")
    parser.add_argument("--steps", type=int, default=10_000, metavar="N", help="env steps of each run")
    parser.add_argument("--runs", type=Path, default=Path("runs/unknown_envs"), metavar="DIR")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR")
    args = parser.parse_args()
    for env in args.envs:
        try:
            make(env).close()
        except BadInput as error:
            print(f"left out: {error}", flush=True)
            continue
        keep(run_of(args.runs / f"{args.steps}_steps", env, 0, args.steps), env, args.out / "own_environment")
        draw(args.out / "own_environment", args.out / "own_environment.png")


def keep(run: Path, env: str, folder: Path) -> None:
    """Copy what a run says of itself, and measure what random actions return."""
    kept = folder / name_of(run)
    kept.mkdir(parents=True, exist_ok=True)
    returns = random_returns(env) if not (kept / RANDOM).exists() else None
    for name in KEPT:
        shutil.copyfile(run / name, kept / name)
    if returns is not None:
        (kept / RANDOM).write_text(json.dumps({"episodes": EPISODES, "returns": returns}) + "\n")


def name_of(run: Path) -> str:
    """The folder without the module that an id imports."""
    return run.name.rpartition(":")[2]


def random_returns(env: str) -> list[float]:
    """Of whole episodes with uniformly random actions, from the seeds that evaluations have."""
    space, rng = make(env).action_space, np.random.default_rng(0)

    def act(observations: np.ndarray) -> np.ndarray:
        return rng.uniform(space.low, space.high, (len(observations), *space.shape)).astype(space.dtype)

    return [round(float(one), 3) for one in evaluate(act, [make(env) for _ in range(EPISODES)]).returns]


def draw(folder: Path, picture: Path) -> None:
    """A small panel for each environment; dashed: random actions."""
    runs = sorted(run for run in folder.iterdir() if (run / "metrics.jsonl").exists())
    columns = min(len(runs), COLUMNS)
    rows = -(-len(runs) // columns)
    with style():
        figure = Figure(figsize=(PAGE, 1.6 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, run in zip(panels, runs, strict=False):
            steps, returns = read_curve(run)
            axes.plot(steps, returns, color=COLOURS[0], marker=".", markersize=3)
            if (run / RANDOM).exists():
                level = np.mean(json.loads((run / RANDOM).read_text())["returns"])
                axes.axhline(level, color=COLOURS[6], linestyle="--", linewidth=1)
            axes.set_title(run.name.rpartition("_")[0], fontsize=7)
            axes.set_xlim(left=0)
            axes.xaxis.set_major_formatter(FuncFormatter(thousands))
        for axes in panels[len(runs) :]:
            axes.set_axis_off()
        figure.supxlabel("env steps (dashed: return of random actions)", fontsize=8)
        figure.supylabel("return", fontsize=8)
        figure.savefig(picture)


if __name__ == "__main__":
    main()
