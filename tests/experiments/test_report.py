"""`mbdp report`, as the console script calls it; what a browser makes of the page is tested in tests/browser."""

import base64
import json
import re

import numpy as np
import pytest

from mbdp.experiments.cli import main
from tests.analysis.made_up import make_robustness, make_run

DATA = re.compile(r'<script type="application/json" id="page-data">(.*?)</script>')


@pytest.fixture
def runs(tmp_path):
    for seed in range(2):
        for alpha in (0.0, 0.2):
            folder = tmp_path / "runs" / f"alpha_{alpha}" / f"Hopper-v5_{seed}"
            make_run(folder, [1.0, 2.0 + seed], alpha=alpha, bias=[[0.3, 0.1], [0.2, 0.4]])
    make_robustness(tmp_path / "runs" / "robustness")
    return tmp_path / "runs"


def report(*arguments) -> str:
    out = arguments[0].parent / "report.html"
    assert main(["report", *map(str, arguments), "--out", str(out)]) == 0
    return out.read_text()


def test_the_page_has_every_section(runs):
    page = report(runs)
    names = re.findall(r'<section id="(\w+)"', page)
    assert names == ["overview", "curves", "model", "dropout", "robustness", "settings", "runs", "data"]
    charts = json.loads(DATA.search(page)[1])["charts"]
    assert [chart["kind"] for chart in charts] == ["curves", "bias", "kept", "effect", "map", "map"]


def test_the_page_loads_nothing(runs):
    page = report(runs)
    before_plotly = page[: page.index('<script type="application/json"')]
    links = re.findall(r'(?:src|href)="([^"]*)"', before_plotly)
    assert [link for link in links if not link.startswith(("data:", "#"))] == []
    assert "default-src 'none'" in page


def test_the_numbers_in_a_chart_are_those_of_the_runs(runs):
    curve, other = json.loads(DATA.search(report(runs))[1])["charts"][0]["methods"]
    assert (curve["x"], curve["mean"]) == ([1000, 2000], [1, 2.5])
    assert [seed["y"] for seed in other["seeds"]] == [[1, 2], [1, 3]]


def test_dropped_members_are_empty_cells(runs):
    kept = json.loads(DATA.search(report(runs))[1])["charts"][2]["runs"][0]
    assert kept["z"] == [[None, 0.2], [0.1, None]]


def test_the_raw_data_can_be_downloaded(runs):
    links = dict(re.findall(r'download="([\w.]+)" href="data:text/csv;base64,([^"]+)"', report(runs)))
    assert set(links) == {"evaluations.csv", "refits.csv", "runs.csv", "worlds.csv"}
    lines = base64.b64decode(links["evaluations.csv"]).decode().splitlines()
    assert lines[0] == "method,algo,env,seed,step,return,seconds"
    assert len(lines) == 1 + 8


def test_broken_runs_are_named_on_the_page_and_on_the_terminal(runs, capsys):
    (runs / "alpha_0.2" / "Hopper-v5_7").mkdir()
    assert "1 folder is broken" in report(runs)
    assert "Hopper-v5_7: there is no metrics.jsonl" in capsys.readouterr().out


def test_text_from_files_cannot_become_markup(tmp_path):
    make_run(tmp_path / "runs" / "Hopper-v5_0", [1.0], algo="<script>alert(1)</script>", bias=[[0.1, 0.2]])
    make_run(tmp_path / "runs" / "sub" / "Hopper-v5_1", [1.0], group="<img src=x>")
    page = report(tmp_path / "runs")
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_runs_of_stable_baselines3_stand_beside_ours(runs, tmp_path):
    folder = tmp_path / "logs" / "sac" / "Hopper-v5_1"
    folder.mkdir(parents=True)
    np.savez(folder / "evaluations.npz", timesteps=[100, 200], results=[[1.0, 3.0], [5.0, 7.0]])
    methods = [
        one["method"] for one in json.loads(DATA.search(report(runs, tmp_path / "logs"))[1])["charts"][0]["methods"]
    ]
    assert methods == ["mbdp alpha 0.0", "mbdp alpha 0.2", "sac"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: there is no such folder"),
        (["."], "no run directory in .: each has config.json and metrics.jsonl"),
        ([".", "--at", "0"], "--at must be an env step above 0"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"mbdp: {message}")
