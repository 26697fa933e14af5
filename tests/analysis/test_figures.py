"""Each figure is drawn from made-up runs; how it looks is for a person to judge."""

import json

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from mbdp.analysis import figure_heatmaps
from mbdp.analysis.figure_ablation import draw_ablation, robustness_scores
from mbdp.analysis.figure_curves import draw_learning_curves
from mbdp.analysis.figure_heatmaps import draw_heatmaps
from mbdp.analysis.figure_residual import draw_residual, readings_of
from mbdp.analysis.published import read_published
from mbdp.analysis.robustness_results import find_robustness, read_robustness
from mbdp.analysis.run_groups import group_runs
from mbdp.analysis.runs import find_runs, read_run
from mbdp.types import BadInput
from tests.analysis.made_up import make_robustness, make_run

CSV = """method,updates_per_step,task,version,env_steps,mean_return,source
SAC,1,Hopper,v4,2000,7,a table
SAC,1,Hopper,v4,1000,5,a table
"""


def methods_in(folder):
    return group_runs(find_runs([folder])[0])


def are_figures(files):
    pdf, png = files
    return pdf.read_bytes().startswith(b"%PDF") and png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("band", ["sd", "interval"])
def test_learning_curves_with_published_ones_beside_them(tmp_path, band):
    for env in ("Hopper-v5", "Ant-v5"):
        for seed in range(2):
            make_run(tmp_path / "runs" / f"{env}_{seed}", [1.0, 2.0 + seed, 3.0])
    (tmp_path / "published.csv").write_text(CSV)
    published = read_published(tmp_path / "published.csv")
    assert are_figures(
        draw_learning_curves(methods_in(tmp_path / "runs"), tmp_path, published=published, band=band, window=2_000)
    )


def test_published_points_are_sorted_and_can_be_chosen(tmp_path):
    (tmp_path / "published.csv").write_text(CSV)
    (curve,) = read_published(tmp_path / "published.csv", ["SAC"])
    assert (curve.steps.tolist(), curve.returns.tolist()) == ([1000, 2000], [5, 7])
    with pytest.raises(BadInput, match=r"no method 'SAQ'; it has SAC"):
        read_published(tmp_path / "published.csv", ["SAQ"])


def test_a_csv_of_something_else_is_refused(tmp_path):
    (tmp_path / "published.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match=r"published\.csv: no table of published returns"):
        read_published(tmp_path / "published.csv")


def test_heat_maps_of_several_tasks(tmp_path):
    for env in ("Hopper-v5", "Walker2d-v5"):
        make_robustness(tmp_path / "robustness" / env, env=env)
    results, broken = find_robustness([tmp_path / "robustness"])
    assert broken == []
    assert are_figures(draw_heatmaps(results, tmp_path))


def test_the_title_of_a_single_heat_map_is_not_cut_off(tmp_path, monkeypatch):
    make_robustness(tmp_path / "results", ["mbdp"])
    drawn = []
    monkeypatch.setattr(figure_heatmaps, "save", lambda figure, folder, name: drawn.append(figure))
    draw_heatmaps(find_robustness([tmp_path / "results"])[0], tmp_path)
    (figure,) = drawn
    FigureCanvasAgg(figure).draw()
    title = figure.texts[0].get_window_extent()
    assert title.x0 >= 0
    assert title.x1 <= figure.bbox.width


def test_robustness_is_the_mean_over_the_papers_four_worlds(tmp_path):
    result = read_robustness(make_robustness(tmp_path))
    scores = robustness_scores([result])
    assert scores["Hopper-v5", "mbdp", 1] == pytest.approx(result.returns["mbdp"][1].mean())


def test_missing_episodes_of_a_robustness_result_are_noticed(tmp_path):
    file = make_robustness(tmp_path / "here") / "episodes.csv"
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")
    results, (broken,) = find_robustness([tmp_path])
    assert results == []
    assert "every episode" in broken.reason


def ablation_runs(folder):
    for alpha, beta in ((0.0, 0.2), (0.2, 0.2), (0.2, 0.0), (0.0, 0.0)):
        for seed in range(2):
            make_run(folder / f"{alpha}_{beta}" / f"Hopper-v5_{seed}", [1.0, 2.0 + alpha], alpha=alpha, beta=beta)
    return methods_in(folder)


def test_ablation_sets_robustness_beside_efficiency(tmp_path):
    methods = ablation_runs(tmp_path / "runs")
    result = read_robustness(make_robustness(tmp_path / "robustness", [method.name for method in methods]))
    assert are_figures(draw_ablation(methods, [result], tmp_path))


def test_a_seed_without_robustness_result_is_named(tmp_path):
    methods = ablation_runs(tmp_path / "runs")
    result = read_robustness(make_robustness(tmp_path / "robustness", [method.name for method in methods[:2]]))
    with pytest.raises(BadInput, match=r"no robustness result has seed 0 of 'mbdp alpha 0.2, beta 0.0'"):
        draw_ablation(methods, [result], tmp_path)


def test_the_residual_is_drawn_from_what_the_theory_logged_as_printed_and_as_corrected(tmp_path):
    extra = {"theory/improvement_printed": 3.0, "theory/improvement": 5.0}
    run = read_run(make_run(tmp_path / "runs" / "Hopper-v5_0", [1.0, 2.0], extra=extra))
    assert [values.tolist() for _, values in readings_of(run, 1.0).values()] == [[3.0, 3.0], [5.0, 5.0]]
    assert are_figures(draw_residual(methods_in(tmp_path / "runs"), tmp_path))


def test_the_residual_is_estimated_where_nothing_was_logged(tmp_path):
    extra = {"eval/mean_discounted": 10.0, "eval/expected_discounted": 12.0}
    folder = make_run(
        tmp_path / "Hopper-v5_0", [1.0, 2.0], extra=extra, bias=[[0.1, 0.3, 0.5]], beta=0.34, discount=0.5
    )
    ((steps, values),) = readings_of(read_run(folder), lipschitz=4.0).values()
    # V - V_alpha + gamma L / (1 - gamma) times the bias of the two members that are kept, from the first fit on.
    assert steps.tolist() == [2_000]
    assert values == pytest.approx([10 - 12 + 4 * np.mean([0.1, 0.3])])


def test_a_run_that_cannot_give_a_residual_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"Hopper-v5_0: its metrics have neither theory/improvement"):
        readings_of(read_run(make_run(tmp_path / "Hopper-v5_0", [1.0])), 1.0)


def test_a_forged_table_of_a_robustness_result_is_refused(tmp_path):
    about = {"env": "a", "protocol": "b", "axes": {}, "neutral": {}, "episodes": 1, "methods": {}}
    (make_robustness(tmp_path) / "table.json").write_text(json.dumps(about))
    with pytest.raises(BadInput, match="at least one axis"):
        read_robustness(tmp_path)
