"""One self-contained HTML page about many runs: it needs no network and no server."""

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from mbdp.analysis import tables
from mbdp.analysis.learning import scale_of, summarise
from mbdp.analysis.report import charts, sections
from mbdp.analysis.robustness_results import Robustness
from mbdp.analysis.run_groups import RunGroup
from mbdp.analysis.runs import BrokenRun
from mbdp.types import BadInput

MOST_COMPARED = 12  # methods in a table of pairs


def build_page(
    methods: Sequence[RunGroup],
    robustness: Sequence[Robustness] = (),
    broken: Sequence[BrokenRun] = (),
    *,
    title: str = "Training runs",
    at: float | None = None,
    threshold: float | None = None,
) -> str:
    """The page as text; methods are compared at env step `at`, and `threshold` is the return to reach."""
    data: list[charts.Chart] = []
    every = [_overview(methods, at, threshold), _curves(methods, data), _model(methods, data)]
    every += [_effects(methods, data), _robustness(robustness, data), _settings(methods), _runs(methods)]
    every += [_downloads(methods, robustness, broken)]
    parts = [part for part in every if part]
    names = list(dict.fromkeys(method.name for method in methods))
    count = sum(len(method.runs) for method in methods)
    envs = dict.fromkeys([method.env for method in methods] + [result.env for result in robustness])
    return Template(_file("page.html")).substitute(
        title=escape(title),
        subtitle=escape(f"{count} runs of {len(names)} methods in {', '.join(envs)}"),
        navigation="".join(f'<a href="#{part[0]}">{part[1]}</a>' for part in parts),
        broken=sections.broken_runs(broken),
        sections="".join(f'<section id="{name}"><h2>{words}</h2>{text}</section>' for name, words, text in parts),
        style=_file("page.css"),
        data=_inline({"methods": names, "charts": data}),
        plotly=plotly_js(),
        script=_file("page.js"),
    )


def plotly_js() -> str:
    """The drawing library's own text, which its Python package carries."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise BadInput("mbdp report needs Plotly: pip install 'mbdp[report]'") from None
    return str(get_plotlyjs()).replace("</script", "<\\/script")


Part = tuple[str, str, str]  # id, heading, HTML


def _overview(methods: Sequence[RunGroup], at: float | None, threshold: float | None) -> Part | None:
    text = ""
    for env, here in charts.by_env(methods).items():
        scale = scale_of(here, at)
        text += f"<h3>{escape(env)}</h3>"
        text += sections.overview(here, [summarise(m, scale, at, threshold) for m in here], scale, threshold)
        if 1 < len(here) <= MOST_COMPARED:
            text += sections.improvement(here, scale)
    return ("overview", "Overview", text) if text else None


def _curves(methods: Sequence[RunGroup], data: list[charts.Chart]) -> Part | None:
    if not methods:
        return None
    return "curves", "Learning curves", _file("curve_controls.html") + _places(charts.learning_curves(methods), data)


def _model(methods: Sequence[RunGroup], data: list[charts.Chart]) -> Part | None:
    text = ""
    if found := charts.bias_curves(methods):
        text += "<p>Bias of the members that were kept, mean over seeds.</p>" + _places(found, data)
    if kept := charts.kept_members(methods):
        names = "".join(f'<option value="{i}">{run["name"]}</option>' for i, run in enumerate(kept["runs"]))
        text += (
            "<h3>Members kept</h3><p>Colour is a kept member's bias; an empty cell is a member that was dropped.</p>"
        )
        text += f'<p class="controls"><label>Run <select id="kept-run">{names}</select></label></p>'
        text += _places([kept], data)
    return ("model", "The model", text) if text else None


def _effects(methods: Sequence[RunGroup], data: list[charts.Chart]) -> Part | None:
    found = charts.effects(methods, "alpha", "beta") + charts.effects(methods, "beta", "alpha")
    words = "<p>Final return of every seed; lines join the means.</p>"
    return (
        ("dropout", "Effect of alpha and beta", f'{words}<div class="maps">{_places(found, data)}</div>')
        if found
        else None
    )


def _robustness(results: Sequence[Robustness], data: list[charts.Chart]) -> Part | None:
    text = ""
    for result in results:
        text += (
            f"<h3>{escape(result.env)}, {escape(result.protocol)}</h3><p><code>{escape(str(result.folder))}</code></p>"
        )
        mine = [chart for chart in charts.robustness_maps(results) if chart["folder"] == str(result.folder)]
        text += sections.robustness_table(result) + f'<div class="maps">{_places(mine, data)}</div>'
    return ("robustness", "Robustness", text) if text else None


def _settings(methods: Sequence[RunGroup]) -> Part | None:
    text = ""
    for env, here in charts.by_env(methods).items():
        text += f"<h3>{escape(env)}</h3>"
        text += sections.differences(here) if len(here) > 1 else ""
        text += "".join(map(sections.settings, here))
    return ("settings", "Settings and versions", text) if text else None


def _runs(methods: Sequence[RunGroup]) -> Part | None:
    return ("runs", "Runs", sections.run_list(methods)) if methods else None


def _downloads(methods: Sequence[RunGroup], robustness: Sequence[Robustness], broken: Sequence[BrokenRun]) -> Part:
    worlds = [row for result in robustness for row in _worlds(result)]
    files: dict[str, list[dict[str, Any]]] = {
        "evaluations.csv": tables.evaluations(methods),
        "refits.csv": tables.refits(methods),
        "runs.csv": tables.runs(methods, broken),
        "worlds.csv": worlds,
    }
    links = "".join(
        f"<li>{_link(name, tables.to_csv(rows))} ({len(rows):,} rows)</li>" for name, rows in files.items() if rows
    )
    return "data", "Data", f"<ul>{links}</ul>"


def _worlds(result: Robustness) -> list[dict[str, Any]]:
    return [
        {"env": result.env, "protocol": result.protocol, "method": method, "seed": result.seeds[method][index[0]]}
        | {name: result.axes[name][i] for name, i in zip(result.axes, index[1:], strict=True)}
        | {"return": float(array[index].mean())}
        for method, array in result.returns.items()
        for index in np.ndindex(array.shape[:-1])
    ]


def _link(name: str, text: str) -> str:
    # Long tables are compressed, so that a report of a hundred runs can be sent by mail.
    long = len(text) > 1_000_000
    content = gzip.compress(text.encode(), mtime=0) if long else text.encode()
    name, kind = (f"{name}.gz", "application/gzip") if long else (name, "text/csv")
    return f'<a download="{name}" href="data:{kind};base64,{base64.b64encode(content).decode()}">{name}</a>'


def _places(found: Sequence[charts.Chart], data: list[charts.Chart]) -> str:
    """Append charts to the page's data, and leave an empty figure for the script to draw each into."""
    text = ""
    for chart in found:
        heading = f"<figcaption>{chart['title']}</figcaption>" if "title" in chart else ""
        text += (
            f'<figure class="chart {chart["kind"]}" data-chart="{len(data)}">{heading}<div class="plot"></div></figure>'
        )
        data.append(chart)
    return text


def _inline(data: Mapping[str, Any]) -> str:
    """JSON that can stand in a script element whatever its strings hold."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")


def _file(name: str) -> str:
    return (resources.files(__package__) / name).read_text()
