"""Tables, charts and files of labels and numbers."""

import csv
import io
import json
import re

import numpy as np
import pytest

from sopool.cli.output import SafeConsole
from sopool.experiments.entries import Predicted
from sopool.experiments.summary import summarise
from sopool.report.figures.curves import plot_curves
from sopool.report.grids.controls import controls_grid
from sopool.report.grids.results import comparison_grid, results_grid, targets_grid
from sopool.report.grids.runs import pair_grid
from sopool.report.grids.store import details_grid, gains_grid, scores_grid
from sopool.report.page.charts import DOTS, curves_chart, gains_chart, predicted_chart, scores_chart
from sopool.report.page.html import page
from sopool.report.papers import latex, markdown, tidy
from sopool.training.runs.store import RunStore
from tests.helpers.goals import STORES, evaluated, fill_with_goals, number


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill_with_goals(tmp_path_factory.mktemp("goals"))


@pytest.fixture(scope="module")
def summary(store):
    return summarise(store)


@pytest.fixture(scope="module")
def found(store):
    return {kind: evaluated(make(), store.folder).evaluate() for kind, make in STORES.items()}


def shown(grid, width=80):
    console = SafeConsole(width=width, file=io.StringIO())
    console.print(grid)
    return console.file.getvalue()


def of(summary, data):
    return next(entry for entry in summary.entries if (entry.data, entry.pool) == (data, "sum"))


@pytest.mark.parametrize(("kind", "title"), [("multi-label", "ROC-AUC"), ("regression", "RMSE"), ("one", "RMSE")])
def test_tables_of_an_evaluation_have_the_title_of_the_metric_and_fit_80_columns(found, kind, title):
    rows = found[kind].results()
    text = shown(results_grid(rows))
    assert text.startswith(f"{title} by cross-validation{', percent' if kind == 'multi-label' else ''}: ")
    assert "accuracy" not in text
    compared = shown(comparison_grid(found[kind].compare("sum")))
    assert ("reduction of the RMSE" in compared) == (title == "RMSE")
    assert ("in points" in compared) == (title == "ROC-AUC")
    assert all(len(line) <= 80 for line in (text + compared).splitlines())
    assert "…" not in text + compared


def test_further_metrics_are_further_columns(found):
    grid = results_grid(found["regression"].results(), metrics=["rmse", "mae", "r2"])
    assert [name for name in grid.columns if name.isupper()] == ["RMSE", "MAE", "R2"]
    outcome = found["regression"].results()[0].outcome
    cell = grid.rows[0][list(grid.columns).index("R2")]
    assert cell.value == pytest.approx(np.mean(outcome.scores["r2"]))


def test_each_target_has_a_row(found):
    rows = [row for row in found["regression"].results() if row.outcome.protocol == "fair"]
    grid = targets_grid(rows)
    assert [row[0].text for row in grid.rows] == ["edges", "spread"]
    assert list(grid.columns)[1:] == [row.pool for row in rows]
    assert targets_grid(found["one"].results()[:1]) is None


def test_a_report_tells_the_metric_where_there_are_several(summary):
    grid = scores_grid(summary)
    assert grid.title == "Score"
    metrics = [row[list(grid.columns).index("metric")].text for row in grid.rows]
    assert set(metrics) == {"ROC-AUC", "RMSE"}
    for protocol in summary.protocols:
        gains = [gain for gain in summary.gains if gain.protocol == protocol]
        assert "metric" in gains_grid(gains, protocol).columns
        assert "Gain: reduction of the RMSE." in gains_grid(gains, protocol).notes
    details = details_grid(summary.entries, "fair")
    assert {"MAE", "R2", "average precision"} <= set(details.columns)


def test_controls_of_several_tasks_stand_in_one_table(summary):
    grid = controls_grid(summary.controls)
    assert "metric" in grid.columns
    assert "ridge regression" in shown(grid, 200)
    assert "logistic regression" in shown(grid, 200)
    assert "score" in grid.columns


def test_what_is_not_above_a_control_has_a_larger_error(summary):
    for entry in summary.entries:
        (control,) = (one for one in summary.controls if one.fingerprint == entry.shared.fingerprint)
        ours, theirs = entry.outcomes["fair"].mean, control.outcome.mean
        worse = ours >= theirs if entry.shared.metric == "rmse" else ours <= theirs
        assert summary.not_above(entry) == (["size"] if worse else [])


def test_csv_has_the_metrics_and_targets(summary):
    rows = list(csv.DictReader(io.StringIO(tidy(summary))))
    one = [row for row in rows if row["data"] == "number"]
    assert {row["target"] for row in one} == {""}
    assert all(row["metric"] == "rmse" and row["rmse"] and not row["roc_auc"] for row in one)
    several = [row for row in rows if row["data"] == "numbers"]
    assert {row["target"] for row in several} == {"", "edges", "spread"}
    entry = of(summary, "numbers")
    mine = [row for row in several if (row["pool"], row["protocol"], row["target"]) == ("sum", "fair", "edges")]
    assert [float(row["mae"]) for row in mine] == list(entry.outcomes["fair"].targets["edges"]["mae"])


def test_papers_name_the_metric(summary):
    for text in (markdown(summary, ["r2"]), latex(summary, ["r2"])):
        assert "RMSE" in text
        assert "R2" in text
        assert "reduction of the RMSE" in text


def test_curves_have_the_axis_of_their_metric(summary):
    entry = of(summary, "number")
    chart = curves_chart(entry, ["fair"])
    assert chart["layout"]["yaxis"]["title"]["text"] == "RMSE"
    lines = {trace.get("name"): trace for trace in chart["data"]}
    np.testing.assert_allclose(lines["train, mean over folds"]["y"], entry.curves["fair"]["train"].mean, rtol=1e-4)
    text = json.dumps(chart)
    assert "%{y:.3g}" in text
    assert " %" not in text.replace("%{", "")
    assert scores_chart([entry], "rmse")["layout"]["xaxis"]["title"]["text"] == "test RMSE"
    gains = [gain for gain in summary.gains if gain.entry.data == "number"]
    assert "reduction of the RMSE" in gains_chart(gains, ["a"] * len(gains), "rmse")["layout"]["xaxis"]["title"]["text"]
    assert curves_chart(of(summary, "labels"), ["fair"])["layout"]["yaxis"]["title"]["text"] == "ROC-AUC, %"


def test_predicted_numbers_stand_against_true_ones():
    true = np.array([[1.0], [np.nan], [3.0], [10.0]])
    found = Predicted(true, np.array([[2.0], [5.0], [3.0], [9.0]]))
    line, dots = predicted_chart(found, 0, "<b>")["data"]
    assert (dots["x"], dots["y"]) == ([1.0, 3.0, 10.0], [2.0, 3.0, 9.0])
    assert line["x"] == line["y"] == [1.0, 10.0]
    line, dots = predicted_chart(found, 0, "<b>", residuals=True)["data"]
    assert (dots["x"], dots["y"], line["y"]) == ([1.0, 3.0, 10.0], [1.0, 0.0, -1.0], [0.0, 0.0])
    assert "&lt;b&gt;" in json.dumps(predicted_chart(found, 0, "<b>"))
    many = Predicted(np.arange(5000.0)[:, None], np.arange(5000.0)[:, None])
    assert len(predicted_chart(many, 0, "x")["data"][1]["x"]) == DOTS


def test_the_page_has_what_belongs_to_each_task(summary):
    text = page(summary, ["mae"])
    assert "Confusion matrices" not in text
    assert "Each target" in text
    assert "predicted against true values" in text
    assert "residual (predicted - true) spread" in text
    assert not re.search("NaN|Infinity", text[text.rindex("</style>") : text.index("<script>")])
    for script in re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL):
        json.loads(script, parse_constant=lambda name: pytest.fail(name))


def test_figures_have_the_axis_of_their_metric(found, tmp_path):
    plot_curves(found["one"].reported_runs("fair"), tmp_path / "c.svg")
    text = (tmp_path / "c.svg").read_text()
    assert "<!-- RMSE -->" in text
    assert "RMSE at the last epoch -->" in text
    assert "accuracy" not in text


def test_two_runs_are_compared_by_their_own_metric(store):
    infos = [info for info in store.list() if info.config.data == "number" and info.config.looks == "test"][:2]
    runs = [store.load(info.config) for info in infos]
    text = shown(pair_grid(*infos, store.compare(infos[0].key, infos[1].key), *runs), 200)
    best = runs[0].curves["test_rmse"].argmin() + 1
    assert re.search(rf"best test RMSE +\S+ in epoch {best}", text)


def test_a_store_of_one_metric_has_no_column_for_it(tmp_path):
    evaluated(number(), tmp_path, ["sum"], ["per-fold-max"]).evaluate()
    grid = scores_grid(summarise(RunStore(tmp_path)))
    assert grid.title == "RMSE"
    assert "metric" not in grid.columns
