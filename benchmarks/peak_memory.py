"""Peak resident memory of the default preset after 100,000 env steps, printed as JSON.

python -m benchmarks.peak_memory ENV      one env step with a fit, its rollouts and the updates after it
"""

import json
import resource
import sys

from benchmarks.filled import filled_agent, take


def main() -> None:
    env = sys.argv[1]
    # Few steps of the fit: how many there are costs time and no memory.
    agent, samples = filled_agent(env, "default", 100_000, steps=101_000, fit_steps=10, first_fit_steps=10)
    take(agent.iterate(agent.config.steps), 11)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rows = {name: len(getattr(agent.learner, name)) for name in ("d_env", "d_model")}
    print(json.dumps({"gigabytes": peak, "samples": samples, "rows": rows}))


if __name__ == "__main__":
    main()
