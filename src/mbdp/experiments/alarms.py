"""Warnings while a run goes on, each given once."""

from typing import Any

import numpy as np

from mbdp.algorithm import Progress
from mbdp.api import MBDP
from mbdp.replay import unpack
from mbdp.user_functions import NOTED_ERROR

BEYOND = 10  # times the largest value that any policy could have


class Alarms:
    """Watches a run for models and critics that diverge, and for faults of the world."""

    def __init__(self, agent: MBDP):
        self.agent = agent
        self.said: set[str] = set()

    def raised_by(self, progress: Progress) -> list[str]:
        """Sentences about what has gone wrong since they were last asked for."""
        found = {
            "model": self._model(progress.metrics),
            "critic": self._critic(progress.metrics),
            "member": self._member(progress.metrics),
            "rule": self._rule(progress.metrics),
            "reward": self._reward(progress.metrics),
            "world": "the environment has gone wrong; rollout/faults counts such steps"
            if self.agent.world.faults
            else "",
        }
        new = {kind: sentence for kind, sentence in found.items() if sentence and kind not in self.said}
        self.said |= set(new)
        return list(new.values())

    def _model(self, metrics: dict[str, Any]) -> str:
        if metrics.get("model/kept", [0]):
            return ""
        return "every member of the model has diverged; nothing is imagined until one is sane again"

    def _member(self, metrics: dict[str, Any]) -> str:
        if not (recreated := metrics.get("model/recreated")):
            return ""
        return f"members {recreated} of the model had diverged and begin anew (metric model/recreated)"

    def _rule(self, metrics: dict[str, Any]) -> str:
        if not (rate := metrics.get("model/termination_mismatch", 0.0)):
            return ""
        return f"the termination rule disagrees with the environment in {rate:.2%} of all real steps"

    def _reward(self, metrics: dict[str, Any]) -> str:
        if (error := metrics.get("model/reward_mismatch", 0.0)) <= NOTED_ERROR:
            return ""
        return f"the reward function is wrong by {error:.2g} deviations of the real rewards, on average"

    def _critic(self, metrics: dict[str, Any]) -> str:
        q = float(metrics.get("train/q_mean", 0.0))
        if abs(q) <= BEYOND * self.largest_value():
            return ""
        return f"the critic has exploded: its mean is {q:.3g}, and no return can be beyond {self.largest_value():.3g}"

    def largest_value(self) -> float:
        """The discounted sum of the largest reward seen so far, plus as much again for the bonus on entropy."""
        rows = self.agent.learner.d_env.newest(len(self.agent.learner.d_env))
        rewards = np.abs(np.asarray(unpack(rows, self.agent.world.spec).reward))
        steps = 1 / max(1 - self.agent.discount, 1e-3)
        return (float(rewards.max(initial=0.0)) + 1.0) * 2 * steps
