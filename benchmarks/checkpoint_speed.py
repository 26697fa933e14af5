"""How long it takes to save and load the state of a Hopper run after 100,000 steps, at the size of its buffers.

python benchmarks/checkpoint_speed.py        writes results/checkpoint_speed.json
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from mbdp import MBDP
from mbdp.replay import Replay

STEPS, REPEATS = 100_000, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/checkpoint_speed.json"))
    args = parser.parse_args()
    agent = hopper_after(STEPS)
    seconds: dict[str, list[float]] = {"save": [], "load": []}
    with tempfile.TemporaryDirectory(dir=".") as folder:  # not in memory, where a temporary folder may be
        file = Path(folder) / "hopper.mbdp"
        for _ in range(REPEATS):
            began = time.perf_counter()
            agent.save(file)
            saved = time.perf_counter()
            MBDP.load(file)
            seconds["save"].append(round(saved - began, 2))
            seconds["load"].append(round(time.perf_counter() - saved, 2))
        megabytes = round(file.stat().st_size / 1e6, 1)
    rows = {name: len(getattr(agent.learner, name)) for name in ("d_env", "d_model")}
    result = {"megabytes": megabytes, "rows": rows, "seconds": seconds}
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


def hopper_after(steps: int) -> MBDP:
    """An agent with the default networks, and buffers full of random rows."""
    agent = MBDP("Hopper-v5", steps=steps)
    rng, spec = np.random.default_rng(0), agent.world.spec
    agent.learner.d_model = Replay(agent.config.d_model_capacity(agent.config.horizon_at(steps)), spec)
    for buffer in (agent.learner.d_env, agent.learner.d_model):
        buffer.add(rng.normal(size=(buffer.capacity, spec.row_width)).astype(np.float32))
    agent.learner.step = steps
    agent.config = replace(agent.config, steps=steps)
    return agent


if __name__ == "__main__":
    main()
