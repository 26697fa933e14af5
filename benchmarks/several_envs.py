"""What `--envs 4` buys where a step of the simulator takes 10 ms: python -m benchmarks.several_envs.

One agent has one environment, another has four. They step in turn, so that whatever else the machine does hits both.
Only collecting is timed: actions are random, and nothing is learned. Writes results/several_envs.json.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from benchmarks.speed.measure import Way, in_turn, machine, quartiles

from mbdp.api import MBDP
from mbdp.envs.toy import PointMass

SLEEP, ENVS = 0.01, (1, 4)
FILE = Path(__file__).parent.parent / "results" / "several_envs.json"
NEVER = 10**6
COLLECTING = {"random_steps": NEVER}


class SlowSimulator(PointMass):
    """Each step takes 10 ms in which the processor is free, as where a machine or another computer answers."""

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        time.sleep(SLEEP)
        return super().step(action)


def slow_simulator() -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(SlowSimulator(), 200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, metavar="N")
    parser.add_argument("--stretch", type=int, default=400, metavar="N", help="env steps in a round")
    parser.add_argument("--out", type=Path, default=FILE, metavar="FILE")
    args = parser.parse_args()
    before = machine()
    agents = {envs: MBDP(slow_simulator, envs=envs, **COLLECTING) for envs in ENVS}
    ways = {f"envs_{envs}": Way(stretches(agent, args.stretch), args.stretch) for envs, agent in agents.items()}
    seconds = in_turn(ways, args.rounds)
    for agent in agents.values():
        agent.close()
    one, several = (seconds[name] for name in ways)
    ratios = quartiles([a / b for a, b in zip(one, several, strict=True)])
    report = {"sleep_seconds": SLEEP, "stretch": args.stretch, "ratio_quartiles": ratios, "machine": before}
    args.out.write_text(json.dumps(report | {"seconds_per_env_step": seconds}, indent=1) + "\n")
    for name, values in seconds.items():
        print(f"{name}: {1000 * np.median(values):.2f} ms per env step")
    print(f"ratio {ratios[1]:.2f} (quartiles {ratios[0]:.2f} to {ratios[2]:.2f})")


def stretches(agent: MBDP, stretch: int) -> Callable[[], Any]:
    """A function of which each call takes so many env steps."""
    going = agent.iterate(NEVER)

    def take() -> None:
        until = agent.learner.step + stretch
        while agent.learner.step < until:
            next(going)

    return take


if __name__ == "__main__":
    main()
