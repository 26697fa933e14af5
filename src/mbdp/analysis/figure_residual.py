"""Figure "residual": the gain that Proposition 3.4 promises at each evaluation, as Appendix C draws it.

Drawn from what a run logs as `theory/*`: epsilon_k - epsilon_alpha with the printed bound, and beside it
epsilon_k - 2 epsilon_alpha with the corrected one. A run without `theory/*` has one estimate from its evaluations: V
from the discounted returns, imagined V_alpha from the critics, which are trained on what dropout leaves, and the bound
from the kept members' bias. epsilon_alpha is part of the bound, so it cancels.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mbdp.analysis.figure_style import COLOURS, COLUMN, PAGE, save, style, thousands
from mbdp.analysis.run_groups import RunGroup
from mbdp.analysis.runs import Run
from mbdp.theory import discrepancy_bound, update_residual
from mbdp.types import BadInput

StepsAndValues = tuple[np.ndarray, np.ndarray]  # env steps, values
READINGS = {
    "theory/improvement_printed": r"as printed: $\epsilon_k - \epsilon_\alpha$",
    "theory/improvement": r"corrected: $\epsilon_k - 2\epsilon_\alpha$",
}
LINES = ("-", (0, (4, 1.5)), ":")  # two curves of one shape are seen both
ESTIMATE = r"estimated: $\epsilon_k - \epsilon_\alpha$"


def draw_residual(
    methods: Sequence[RunGroup], folder: Path, *, lipschitz: float = 1.0, name: str = "residual"
) -> list[Path]:
    """A panel per task: every seed thin, their mean thick, each reading scaled so that its largest value is 1."""
    envs = list(dict.fromkeys(method.env for method in methods))
    with style():
        size = COLUMN if len(envs) == 1 else PAGE, 2.4
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(1, len(envs), squeeze=False, sharey=True)
        for panel, env in zip(panels[0], envs, strict=True):
            runs = [run for method in methods if method.env == env for run in method.runs]
            readings = [readings_of(run, lipschitz) for run in runs]
            for number, label in enumerate(dict.fromkeys(label for own in readings for label in own)):
                _draw(panel, [own[label] for own in readings if label in own], label, COLOURS[number], LINES[number])
            panel.axhline(0, color="0.3", ls="--", lw=0.9)
            panel.set_title(f"{env} ({len(runs)} seed{'s' * (len(runs) > 1)})")
            panel.set_xlabel("env steps")
            panel.set_xlim(left=0)
            panel.xaxis.set_major_formatter(thousands)
            panel.legend(loc="best")
        panels[0, 0].set_ylabel("promised gain, scaled")
        return save(figure, folder, name)


def readings_of(run: Run, lipschitz: float) -> dict[str, StepsAndValues]:
    """The promised gain over env steps by what it is called, logged or else estimated with a value this smooth."""
    logged = {label: run.series(metric) for metric, label in READINGS.items()}
    logged = {label: curve for label, curve in logged.items() if len(curve[0])}
    return logged or {ESTIMATE: _estimated(run, lipschitz)}


def _draw(panel: Any, curves: Sequence[StepsAndValues], label: str, colour: str, line: Any) -> None:
    largest = max(float(np.abs(values).max()) for _, values in curves) or 1.0
    for steps, values in curves:
        panel.plot(steps, values / largest, color=colour, lw=0.5, alpha=0.5)
    shared, mean = _mean(curves)
    above = np.mean([np.mean(values > 0) for _, values in curves])
    size = f"{largest:,.0f}" if largest >= 100 else f"{largest:.3g}"
    panel.plot(shared, mean / largest, color=colour, ls=line, label=f"{label}; 1 = {size}; above 0: {above:.0%}")


def _estimated(run: Run, lipschitz: float) -> StepsAndValues:
    found = [(line["step"], _estimate(run, line, lipschitz)) for line in run.lines if "eval/mean_discounted" in line]
    pairs = [(step, value) for step, value in found if np.isfinite(value)]
    if not pairs:
        raise BadInput(
            f"{run.folder}: its metrics have neither theory/improvement, nor eval/mean_discounted, "
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


def _mean(curves: Sequence[StepsAndValues]) -> StepsAndValues:
    last = min(steps[-1] for steps, _ in curves)
    shared = min((steps[steps <= last] for steps, _ in curves), key=len)
    return shared, np.mean([np.interp(shared, steps, values) for steps, values in curves], axis=0)
