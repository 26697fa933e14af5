"""How long one action of an exported policy takes, on one core: python -m benchmarks.export_latency.

Policies have the shape of the default preset's. Each call takes one observation, as on a robot.
"""

import itertools
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnxruntime

from mbdp.policies.export import export_onnx
from mbdp.policies.policy import Policy
from mbdp.presets import preset

FILE = Path(__file__).parent.parent / "results" / "export_latency.json"
SHAPES = {"Hopper-v5": (11, 3), "Walker2d-v5": (17, 6), "HalfCheetah-v5": (17, 6), "Ant-v5": (27, 8)}
CALLS, WARM_UP = 20_000, 1_000


def main() -> None:
    """Measure every shape, print a table and write the raw numbers."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    results = {}
    for env, (observations, actions) in SHAPES.items():
        width = preset("mbdp", env).width
        policy = random_policy(env, (observations, width, width, actions))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "policy.onnx"
            export_onnx(policy, file, np.zeros((0, observations)))
            session = _session(file)
        rows = np.random.default_rng(0).normal(size=(CALLS + WARM_UP, 1, observations)).astype(np.float32)
        ours = _microseconds(policy, rows)
        exported = _microseconds(lambda row, s=session: s.run(["action"], {"observation": row}), rows)  # type: ignore[misc]
        results[env] = {"width": width, "onnxruntime": exported, "numpy": ours}
        print(f"{env:16} onnxruntime {_shown(exported)}   NumPy {_shown(ours)}", flush=True)
    about = {"calls": CALLS, "machine": platform.machine(), "load": os.getloadavg()[0]}
    about |= {"versions": {name: version(name) for name in ("mbdp", "numpy", "onnx", "onnxruntime")}}
    FILE.write_text(
        json.dumps({"unit": "microseconds per action, one core"} | about | {"tasks": results}, indent=1) + "\n"
    )


def random_policy(env: str, sizes: tuple[int, ...]) -> Policy:
    """A policy of this shape, with weights as large as those of a new network."""
    rng = np.random.default_rng(0)
    shapes = list(itertools.pairwise(sizes))
    weights = tuple(rng.normal(size=shape) / np.sqrt(shape[0]) for shape in shapes)
    biases = tuple(np.zeros(size) for size in sizes[1:])
    return Policy(weights, biases, -np.ones(sizes[-1]), np.ones(sizes[-1]), hidden="silu", env=env, algo="mbdp")


def _session(file: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def _microseconds(act: Callable[[np.ndarray], object], rows: np.ndarray) -> dict[str, float]:
    times = []
    for row in rows:
        start = time.perf_counter_ns()
        act(row)
        times.append((time.perf_counter_ns() - start) / 1000)
    kept = times[WARM_UP:]
    return {f"p{percent}": round(float(np.percentile(kept, percent)), 2) for percent in (5, 50, 95, 99)}


def _shown(found: dict[str, float]) -> str:
    return f"median {found['p50']:6.1f} us, 99 % below {found['p99']:6.1f}"


if __name__ == "__main__":
    main()
