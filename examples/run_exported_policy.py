"""Run an exported policy where neither JAX nor mbdp is installed: python run_exported_policy.py policy.onnx."""

import sys
import time

import numpy as np
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1  # a small network is fastest on one core
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
about = session.get_modelmeta().custom_metadata_map
print(f"a policy for {about['env']} by {about['algo']}, mbdp {about['mbdp']}")

observation = np.zeros((1, int(about["observation_size"])), np.float32)  # here come your sensors, in the env's units
start = time.perf_counter()
for _ in range(1000):
    (action,) = session.run(["action"], {"observation": observation})
print(f"action {action[0]}, {1e3 * (time.perf_counter() - start):.1f} microseconds per action")
