"""`mbdp reproduce FIGURE --scale smoke` as a user calls it: real training, real worlds, real figures."""

from mbdp.analysis.runs import find_runs
from mbdp.experiments.cli import main

RUNS = {"curves": 6, "heatmaps": 4, "ablation": 4, "residual": 2}


def test_every_figure_is_made_from_the_runs_to_the_pdf(tmp_path, capfd):
    for figure, count in RUNS.items():  # in one test, because they share what XLA has compiled, and that takes longest
        out = tmp_path / figure
        assert main(["reproduce", figure, "--scale", "smoke", "--out", str(out), "--workers", "1"]) == 0
        runs, broken = find_runs([out / "runs"])
        assert (len(runs), broken) == (count, [])
        assert (out / f"{figure}.pdf").read_bytes().startswith(b"%PDF")
        assert (out / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / "evaluations.csv").read_text().count("\n") == 1 + sum(len(run.steps) for run in runs)
    arguments = ["--reading", "retrained", "--out", str(tmp_path / "retrained"), "--workers", "1"]
    assert main(["reproduce", "heatmaps", *arguments]) == 0
    assert len(find_runs([tmp_path / "retrained" / "runs"])[0]) == 8
    assert (tmp_path / "retrained" / "heatmaps_retrained.png").read_bytes().startswith(b"\x89PNG")
    assert "core-hours" not in capfd.readouterr().out  # of a few steps there is nothing to announce
