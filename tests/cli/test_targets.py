"""Labels and numbers to predict, from the command line."""

import json
from pathlib import Path

import pytest

from sopool.data.formats.jsonl import write_jsonl
from tests.cli.conftest import TINY
from tests.helpers.goals import STORES

SAID = {
    "multi-label": "Task: multi-label classification of 2 labels: target 1, target 2. Chosen and compared by ROC-AUC.",
    "regression": "Task: regression of 2 targets: target 1, target 2. Chosen and compared by RMSE.",
    "one": "Task: regression of 1 target: target. Chosen and compared by RMSE.",
}


@pytest.fixture
def source(tmp_path):
    def write(kind):
        store = STORES[kind]()
        path = tmp_path / f"{store.name}.jsonl"
        write_jsonl(store, path)
        return path

    return write


@pytest.mark.parametrize("kind", STORES)
def test_the_task_is_found_and_said(call, source, kind):
    path = source(kind)
    table = call("evaluate", path, "--pool", "sopool-bimap,sum", *TINY)
    assert table.code == 0, table.err
    assert SAID[kind] in " ".join(table.err.split())
    title = "ROC-AUC" if kind == "multi-label" else "RMSE"
    assert f"{title} by cross-validation" in table.out
    assert (f"{title} of each target" in table.out) == (kind != "one")
    assert ("reduction of the RMSE" in table.out) == (title == "RMSE")
    assert f"held-out {title}" in table.err
    controls = call("controls", path, "--folds", "2", "--controls", "majority,size")
    assert controls.code == 0, controls.err
    assert f"Controls under fair, {title}" in controls.out
    report = call("report", "-o", "r.html")
    assert report.code == 0, report.err
    assert call("runs").code == 0


def test_metric_metrics_loss_and_task(call, source):
    path = source("multi-label")
    given = ["--task", "regression", "--loss", "huber", "--metric", "r2", "--metrics", "r2,mae"]
    shown = call("evaluate", path, "--pool", "sum", *TINY, *given, "-o", "found.json")
    assert shown.code == 0, shown.err
    assert "R2 by cross-validation" in shown.out
    assert "MAE" in shown.out
    (found,) = json.loads(Path("found.json").read_text())
    assert (found["task"], found["protocols"]["fair"]["metric"]) == ("regression", "r2")
    controls = call("controls", path, "--folds", "2", "--controls", "size", "--task", "regression", "--metric", "mae")
    assert "MAE" in controls.out
    text = call("report", "-o", "-", "--format", "md", "--metrics", "spearman").out
    assert "Spearman" in text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--metric", "rocauc"], "no metric 'rocauc'. Did you mean 'roc_auc'?"),
        (["--metric", "accuracy"], "no metric 'accuracy'"),
        (["--metrics", "rmse,aces"], "no metric 'aces'"),
        (["--metrics", "rmse,roc_auc"], "no metric 'roc_auc'"),
        (["--task", "multi-label"], "targets other than 0 and 1"),
        (["--task", "numbers"], "--task"),
        (["--loss", "cubic"], "--loss"),
        (["--target-columns", "a,,b"], "--target-columns a,,b: '' is not a name"),
        (["--target-columns", "edges,spread"], "--target-columns edges,spread was given"),
    ],
)
def test_mistakes(call, source, options, says):
    shown = call("evaluate", source("regression"), *TINY, *options)
    assert shown.code == 2
    assert says in " ".join(shown.err.replace("│", " ").split())


def test_classes_have_no_targets(call):
    shown = call("evaluate", "MUTAG", *TINY, "--loss", "huber")
    assert shown.code == 2
    assert "only a regression has a choice of losses" in " ".join(shown.err.split())
