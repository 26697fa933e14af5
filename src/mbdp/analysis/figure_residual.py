"""Figure "residual": how far each policy is above its guarantee, epsilon_k - epsilon_alpha, as in Appendix C.

A run that logs `theory/residual` and `theory/eps_alpha` is drawn from them. Otherwise both sides of Eq. 3.12 are
estimated from its evaluations: V from the discounted returns, imagined V_alpha from the critic, which is trained on
what dropout leaves, and the bound D from the kept members' bias. epsilon_alpha is part of D, so it cancels.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mbdp.analysis.figure_style import COLOURS, COLUMN, PAGE, save, style, thousands
from mbdp.analysis.run_groups import RunGroup
from mbdp.analysis.runs import Run
from mbdp.theory import discrepancy_bound, update_residual
from mbdp.types import BadInput


def draw_residual(
    methods: Sequence[RunGroup], folder: Path, *, lipschitz: float = 1.0, name: str = "residual"
) -> list[Path]:
    """A panel per task: every seed's residual thin, their mean thick, all scaled so that the largest is 1."""
    envs = list(dict.fromkeys(method.env for method in methods))
    with style():
        size = COLUMN if len(envs) == 1 else PAGE, 2.2
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(1, len(envs), squeeze=False, sharey=True)
        for panel, env in zip(panels[0], envs, strict=True):
            curves = [residual_of(run, lipschitz) for method in methods if method.env == env for run in method.runs]
            largest = max(np.abs(values).max() for _, values in curves) or 1.0
            for steps, values in curves:
                panel.plot(steps, values / largest, color=COLOURS[0], lw=0.5, alpha=0.5)
            shared, mean = _mean(curves)
            panel.plot(shared, mean / largest, color=COLOURS[0])
            panel.axhline(0, color="0.3", ls="--", lw=0.9)
            above = np.mean([np.mean(values > 0) for _, values in curves])
            panel.set_title(f"{env} ({len(curves)} seed{'s' * (len(curves) > 1)}; above 0: {above:.0%})")
            panel.set_xlabel("env steps")
            panel.set_xlim(left=0)
            panel.xaxis.set_major_formatter(thousands)
        panels[0, 0].set_ylabel(r"$\epsilon_k - \epsilon_\alpha$ (scaled)")
        return save(figure, folder, name)


def residual_of(run: Run, lipschitz: float) -> tuple[np.ndarray, np.ndarray]:
    """Env steps and epsilon_k - epsilon_alpha of a run, logged or else estimated with a value function this smooth."""
    steps, residual = run.series("theory/residual")
    eps_steps, eps = run.series("theory/eps_alpha")
    if len(steps) and len(eps_steps):
        return steps, residual - np.interp(steps, eps_steps, eps)
    found = [(line["step"], _estimate(run, line, lipschitz)) for line in run.lines if "eval/mean_discounted" in line]
    pairs = [(step, value) for step, value in found if np.isfinite(value)]
    if not pairs:
        raise BadInput(
            f"{run.folder}: its metrics have neither theory/residual and theory/eps_alpha, nor eval/mean_discounted, "
            "eval/expected_discounted and model/bias"
        )
    steps, values = np.array(pairs).T
    return steps, values


def _estimate(run: Run, line: object, lipschitz: float) -> float:
    assert isinstance(line, dict)
    value, imagined = line["eval/mean_discounted"], line.get("eval/expected_discounted")
    bias = _latest_bias(run, line["step"])
    if value is None or imagined is None or not len(bias):
        return float("nan")
    gamma, beta = float(run.settings.get("discount", 0.99)), float(run.settings.get("beta", 0.0))
    # Rewards without a range leave D's other part, which cancels against epsilon_alpha, out of both.
    bound = discrepancy_bound(bias, alpha=0, beta=beta, gamma=gamma, lipschitz=lipschitz, r_max=0, r_min=0)
    return update_residual(value, imagined, bound)


def _latest_bias(run: Run, step: int) -> np.ndarray:
    fits = [line for line in run.lines if "model/bias_0" in line and line["step"] <= step]
    members = [value for name, value in fits[-1].items() if name.startswith("model/bias_")] if fits else []
    return np.array([value for value in members if value is not None], float)


def _mean(curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    last = min(steps[-1] for steps, _ in curves)
    shared = min((steps[steps <= last] for steps, _ in curves), key=len)
    return shared, np.mean([np.interp(shared, steps, values) for steps, values in curves], axis=0)
