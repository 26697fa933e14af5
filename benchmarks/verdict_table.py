"""Write what the runs say of the paper's claims into docs/evidence.md, from results/evidence.

python -m benchmarks.verdict_table
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.marks import fill

from mbdp.analysis.figure_ablation import robustness_scores
from mbdp.analysis.learning import area_under_curve, final_return
from mbdp.analysis.robustness_results import robustness_of
from mbdp.analysis.run_groups import RunGroup, group_runs
from mbdp.analysis.runs import Run, find_runs
from mbdp.analysis.statistics import Estimate, paper_corners
from mbdp.analysis.verdicts import judge

Measure = Literal["efficiency", "final return", "robustness"]
Direction = Literal["higher", "lower"]
Values = Mapping[tuple[str, str], Sequence[float]]  # (measure, method) -> one number for each training seed


class Claim(NamedTuple):
    """One sentence of the paper as a comparison of two methods."""

    text: str
    measure: Measure
    first: str
    claimed: Direction
    second: str


ARMS = (
    Claim("alpha makes policies more robust", "robustness", "alpha-only", "higher", "no-dropout"),
    Claim("the same, with beta", "robustness", "mbdp", "higher", "beta-only"),
    Claim("alpha costs efficiency", "efficiency", "alpha-only", "lower", "no-dropout"),
    Claim("the same, with beta", "efficiency", "mbdp", "lower", "beta-only"),
    Claim("beta makes policies less robust", "robustness", "beta-only", "lower", "no-dropout"),
    Claim("the same, with alpha", "robustness", "mbdp", "lower", "alpha-only"),
    Claim("beta buys efficiency", "efficiency", "beta-only", "higher", "no-dropout"),
    Claim("the same, with alpha", "efficiency", "mbdp", "higher", "alpha-only"),
    Claim("both beat no dropout in efficiency", "efficiency", "mbdp", "higher", "no-dropout"),
    Claim("both beat no dropout in robustness", "robustness", "mbdp", "higher", "no-dropout"),
    Claim("both end higher than no dropout", "final return", "mbdp", "higher", "no-dropout"),
)
RIVALS = ("mbpo", "sac", "steve", "slbo")


def write_verdicts(root: Path) -> None:
    """Into docs/evidence.md of the project in this folder."""
    results = root / "results/evidence"
    fill(root / "docs/evidence.md", "arms", verdicts(_groups(results, "arms"), ARMS))
    curves = _groups(results, "learning", "systems")
    claims = [
        Claim(f"MBDP learns faster than {rival.upper()}", "efficiency", "mbdp", "higher", rival) for rival in RIVALS
    ]
    fill(root / "docs/evidence.md", "curves", verdicts(curves, claims))


def verdicts(methods: Sequence[RunGroup], claims: Sequence[Claim]) -> str:
    """One claim a row, for every environment that has runs of both methods."""
    lines = [
        "| the paper claims | task | measured | seeds | difference (95 % interval) | P(higher) | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for env in dict.fromkeys(method.env for method in methods):
        here = [method for method in methods if method.env == env]
        values = _values(here)
        for claim in claims:
            first, second = (values.get((claim.measure, name), ()) for name in (claim.first, claim.second))
            if first and second:
                lines.append(_row(claim, env, first, second))
    return "\n".join(lines) if len(lines) > 2 else "No runs yet."


def _values(methods: Sequence[RunGroup]) -> Values:
    """Measures of every seed; methods are compared up to the env step that all finished runs have reached."""
    until = min(float(run.steps[-1]) for method in methods for run in method.runs)
    measures: dict[str, Callable[[Run], float]] = {
        "efficiency": lambda run: area_under_curve(run, until),
        "final return": lambda run: final_return(run, until),
    }
    values = {
        (name, method.name): [measure(run) for run in method.runs]
        for name, measure in measures.items()
        for method in methods
    }
    tried = [one for one in robustness_of(methods) if paper_corners(one.axes, one.neutral).any()]
    scores = robustness_scores(tried)
    for method in methods:
        values["robustness", method.name] = [score for (_, name, _), score in scores.items() if name == method.name]
    return values


def _row(claim: Claim, env: str, first: Sequence[float], second: Sequence[float]) -> str:
    found = judge(first, second, claim.claimed)
    word: str = found.word
    if word == "undecided" and found.needed:
        word = f"undecided; about {found.needed:,} seeds of each would decide"
    cells = (
        claim.text,
        env,
        f"{claim.measure}, {claim.first} against {claim.second}",
        f"{found.seeds[0]}, {found.seeds[1]}",
        _with_interval(found.effect, "{:+,.0f}"),
        _with_interval(found.probability, "{:.2f}"),
        word,
    )
    return "| " + " | ".join(cells) + " |"


def _with_interval(estimate: Estimate, form: str) -> str:
    value = form.format(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({form.format(estimate.low)} to {form.format(estimate.high)})"


def _groups(results: Path, *sweeps: str) -> list[RunGroup]:
    folders = [results / sweep for sweep in sweeps if (results / sweep).is_dir()]
    return group_runs([run for run in find_runs(folders)[0] if (run.folder / "finished.json").exists()])


if __name__ == "__main__":
    write_verdicts(Path(__file__).parent.parent)
