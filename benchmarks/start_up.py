"""Seconds from the start of `mbdp train` to its first env step and to its first update, printed as JSON.

python -m benchmarks.start_up BEGAN ENV      BEGAN is the time at which whoever asks started this process
"""

import json
import os
import sys
import tempfile
import time

from mbdp.experiments import cli
from mbdp.experiments.display import Display

FIRST_UPDATE = "train/critic_loss"


def main() -> None:
    began, env = float(sys.argv[1]), sys.argv[2]
    seconds = {}

    def show(display: Display, progress: object) -> None:
        seconds.setdefault("first_env_step", time.time() - began)
        if FIRST_UPDATE in progress.metrics:
            float(progress.metrics[FIRST_UPDATE])  # it may still be computed
            print("\n" + json.dumps(seconds | {"first_update": time.time() - began}), flush=True)
            os._exit(0)

    Display.show = show
    with tempfile.TemporaryDirectory() as folder:
        cli.main(["train", env, "--out", folder, "--quiet"])


if __name__ == "__main__":
    main()
