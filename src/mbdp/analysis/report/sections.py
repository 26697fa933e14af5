"""The tables of the report as HTML; every text that comes from a file is escaped."""

import json
import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from mbdp.analysis.learning import SOLVED, STUCK, Scale, Summary, final_return, probability_of_improvement
from mbdp.analysis.report.markup import NONE, digits, duration, interval, interval_picture, pairs, percent, shown, table
from mbdp.analysis.robustness_report import SHARES, STATISTICS
from mbdp.analysis.robustness_results import Robustness
from mbdp.analysis.run_groups import RunGroup, differing
from mbdp.analysis.runs import BrokenRun
from mbdp.analysis.statistics import Estimate

MOST_ROWS = 12  # of a table that is open at first
HEADER = {
    "method": "",
    "seeds": "training seeds",
    "steps": "env steps that all seeds of the method have reached",
    "final return": "mean and standard deviation among seeds; each seed's is the mean of its last tenth of evaluations",
    "IQM [95 %]": "interquartile mean of the seeds' final returns, with the bootstrap interval over seeds",
    "": "the same interval, on one scale for the environment",
    "over training": "area under the curve per env step, up to the step that all methods reached: IQM [95 %]",
    "steps to goal": "median over seeds, and how many reached it",
    "time to goal": "the same in time",
    "stuck": "seeds that ended below half of the way to the best method",
    "time per run": "mean over seeds",
}


def overview(methods: Sequence[RunGroup], summaries: Sequence[Summary], scale: Scale, threshold: float | None) -> str:
    """The table of one environment."""
    head = "".join(f'<th scope="col" title="{escape(why)}">{escape(name)}</th>' for name, why in HEADER.items())
    bounds = [number for s in summaries for number in s.iqm if number is not None]
    low, high = min(bounds), max(bounds)
    rows = "".join(_overview_row(m, s, low, high) for m, s in zip(methods, summaries, strict=True))
    goal = scale.level(SOLVED) if threshold is None else threshold
    words = f"Goal: {goal:,.4g}" + (
        f", {SOLVED:.0%} of the way from the lowest return to the best." * (threshold is None)
    )
    words += f" Stuck: below {scale.level(STUCK):,.4g}. Over training: up to step {scale.common:,.0f}."
    if any(1 < len(m.runs) < 5 for m in methods):
        words += " Intervals from fewer than five seeds are too narrow."
    return table(f"Overview of {methods[0].env}", f"<tr>{head}</tr>", rows) + f'<p class="note">{words}</p>'


def improvement(methods: Sequence[RunGroup], scale: Scale) -> str:
    """Probability of improvement of each method (row) over each other (column), at the step that all reached."""
    final = [[final_return(run, scale.common) for run in method.runs] for method in methods]
    head = "<th></th>" + "".join(f'<th scope="col">{escape(method.name)}</th>' for method in methods)
    rows = ""
    for i, method in enumerate(methods):
        cells = [
            f"<td>{NONE}</td>" if i == j else f"<td>{percent(probability_of_improvement(final[i], final[j]))}</td>"
            for j in range(len(methods))
        ]
        rows += f"<tr>{_name(method)}{''.join(cells)}</tr>"
    title = f"Probability that a seed of the row beats one of the column at step {scale.common:,.0f}"
    return f"<details><summary>{title}</summary>{table(title, f'<tr>{head}</tr>', rows)}</details>"


def broken_runs(broken: Sequence[BrokenRun]) -> str:
    """What could not be used, first of all: nothing is left out in silence."""
    if not broken:
        return ""
    rows = "".join(f"<li><code>{escape(str(run.folder))}</code>: {escape(run.reason)}</li>" for run in broken)
    count = f"{len(broken)} folder{'s are' if len(broken) > 1 else ' is'}"
    return (
        f'<section class="warning" id="broken"><h2>{count} broken and not in this report</h2><ul>{rows}</ul></section>'
    )


def differences(methods: Sequence[RunGroup]) -> str:
    """Settings that the methods of one environment do not share."""
    found = differing([method.runs[0] for method in methods])
    # What only one kind of method has cannot differ; it stands in the list of that method's settings.
    columns = {name: column for name, column in found.items() if len({str(x) for x in column if x is not None}) > 1}
    if not columns:
        return "<p>All settings that they share are the same.</p>"
    head = "<th>setting</th>" + "".join(f'<th scope="col">{escape(method.name)}</th>' for method in methods)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{shown(value)}</td>" for value in column)}</tr>'
        for name, column in columns.items()
    )
    title = f"Settings that differ between methods: {len(columns)}"
    is_open = " open" * (len(columns) <= MOST_ROWS)
    return f"<details{is_open}><summary>{title}</summary>{table(title, f'<tr>{head}</tr>', rows)}</details>"


def settings(method: RunGroup) -> str:
    """Everything that is known about how the runs of a method were made."""
    first = method.runs[0]
    made_with = dict.fromkeys(json.dumps(dict(run.versions), sort_keys=True) for run in method.runs)
    lists = pairs(first.settings) if first.settings else "<p>These runs do not say their settings.</p>"
    for text in made_with:
        seeds = [str(run.seed) for run in method.runs if json.dumps(dict(run.versions), sort_keys=True) == text]
        lists += f"<p>Versions, seed {escape(', '.join(seeds))}</p>{pairs(json.loads(text))}"
    within = differing(method.runs)
    if within:
        words = "; ".join(f"{name}: {', '.join(map(str, column))}" for name, column in within.items())
        lists += (
            f"<p>Differs between its seeds ({', '.join(str(run.seed) for run in method.runs)}): {escape(words)}</p>"
        )
    name = f"{method.env}: {method.name}"
    return f"<details><summary>{escape(name)}</summary>{lists}</details>"


def run_list(methods: Sequence[RunGroup]) -> str:
    """A row for every run."""
    names = ("method", "environment", "seed", "last step", "final return", "time", "notes", "folder")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(
        f"<tr>{_name(method)}<td>{escape(run.env)}</td><td>{run.seed}</td><td>{run.steps[-1]:,.0f}</td>"
        f"<td>{digits(final_return(run))}</td><td>{duration(float(run.seconds[-1]))}</td>"
        f"<td class=text>{escape('; '.join(run.notes))}</td>"
        f"<td class=text><code>{escape(str(run.folder))}</code></td></tr>"
        for method in methods
        for run in method.runs
    )
    return table("Runs", f"<tr>{head}</tr>", rows)


def robustness_table(result: Robustness) -> str:
    """The statistics of `mbdp robustness`, a column per method."""
    head = "<th>return</th>" + "".join(f'<th scope="col">{escape(method)}</th>' for method in result.table)
    rows = ""
    for name, words in STATISTICS.items():
        cells = [_estimate(numbers.get(name), share=name in SHARES) for numbers in result.table.values()]
        rows += f'<tr><th scope="row">{words}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
    return table(f"Robustness in {result.env}", f"<tr>{head}</tr>", rows)


def _overview_row(method: RunGroup, summary: Summary, low: float, high: float) -> str:
    seconds = float(np.mean([run.seconds[-1] for run in method.runs]))
    spread = f" ± {digits(summary.sd)}" if summary.sd is not None else ""
    reached = sum(map(math.isfinite, summary.steps_to))
    steps, time = float(np.median(summary.steps_to)), float(np.median(summary.seconds_to))
    cells = [
        str(len(method.runs)),
        f"{summary.until:,.0f}",
        digits(summary.mean) + spread,
        interval(summary.iqm),
        interval_picture(summary.iqm, low, high),
        interval(summary.area),
        f"{f'{steps:,.0f}' if math.isfinite(steps) else NONE} <small>({reached}/{len(method.runs)})</small>",
        duration(time),
        f"{summary.stuck:.0%}",
        duration(seconds),
    ]
    return f"<tr>{_name(method)}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _name(method: RunGroup) -> str:
    return f'<th scope="row" data-method="{escape(method.name)}">{escape(method.name)}</th>'


def _estimate(numbers: Any, share: bool) -> str:
    try:
        estimate = Estimate(numbers["value"], numbers["low"], numbers["high"])
        return percent(estimate) if share else interval(estimate)
    except (TypeError, KeyError, ValueError):
        return NONE
