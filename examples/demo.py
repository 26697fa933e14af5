"""`make demo`: train MBDP on the inverted pendulum, then see how far the policy can be trusted."""

import sys
from pathlib import Path

from mbdp.experiments.cli import main

ENV, STEPS = "InvertedPendulum-v5", "3000"


def demo() -> None:
    out = first_free_folder()
    run = out / "mbdp" / f"{ENV}_0"
    call("train", ENV, "--steps", STEPS, "--evaluate-every", "250", "--out", str(out))
    axes = ("--mass", "0.25,0.5,1,2,4,8,16", "--axis", "gear=0.1,0.25,0.5,1,2,4")
    call("robustness", str(run), *axes, "--episodes", "3", "--out", str(out / "robustness"))
    print(
        f"\nPictures: {run / 'learning_curve.png'} and {out / 'robustness' / 'heatmap.png'}."
        "\nNext, try: .venv/bin/mbdp train Hopper-v5 --prefer robust, or .venv/bin/mbdp --help."
    )


def call(*arguments: str) -> None:
    print(f"\n$ mbdp {' '.join(arguments)}", flush=True)
    if code := main(arguments):
        sys.exit(code)


def first_free_folder() -> Path:
    """A demo that was run before is not overwritten."""
    number = 1
    while (folder := Path("runs", f"demo_{number}")).exists():
        number += 1
    return folder


if __name__ == "__main__":  # the robustness evaluation starts worker processes, which import this file
    demo()
