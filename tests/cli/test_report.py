import sys
from dataclasses import replace

import numpy as np
import pytest

from sopool.models.config import ModelConfig
from sopool.training.runs.store import RunStore
from tests.cli.conftest import TINY
from tests.helpers.stores import configs, facts, fill, made_up


@pytest.fixture
def store(tmp_path):
    return fill(tmp_path / "runs", looks=("test",), hidden=(8,))


def test_a_page(store, call, tmp_path):
    shown = call("report", "runs", "-o", "report.html")
    assert shown.code == 0, shown.err
    assert shown.out.startswith("Wrote a report of 8 runs of 2 experiments to report.html (")
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")


FORMS = [("md", "## Accuracy"), ("tex", r"\begin{table}"), ("csv", "data,fingerprint")]


@pytest.mark.parametrize(("form", "begins"), FORMS)
def test_tables_by_name_or_by_ending(store, call, tmp_path, form, begins):
    shown = call("report", "runs", "-o", "-", "--format", form)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(begins)
    call("report", "runs", "-o", f"table.{form}")
    assert (tmp_path / f"table.{form}").read_text("utf-8") == shown.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "this folder of runs does not exist"),
        (["runs", "-o", "-"], "an HTML page cannot be written"),
        (["runs", "-o", "nowhere/report.html"], "the folder nowhere does not exist"),
        (["empty"], "no complete run"),
        (["runs", "--format", "pdf"], "--format"),
        (["runs", "-o", "report.pdf"], "must end in .html, .md, .tex or .csv, or --format must name"),
        (["runs", "--reference", "summ"], "Did you mean 'sum'?"),
        (["runs", "--reference", "covpool"], "there is no stored pooling 'covpool'. Known: "),
    ],
)
def test_mistakes(store, call, tmp_path, arguments, says):
    (tmp_path / "empty").mkdir()
    shown = call("report", *arguments)
    assert shown.code == 2
    assert says in " ".join(shown.err.split())
    assert not (tmp_path / "report.html").exists()


def test_a_reference_says_which_one_it_is_where_there_are_several(store, call):
    fill(store.folder, pools=(("sum", 0.7), ("covpool", 0.8)), looks=("test",), hidden=(8,), epochs=4)
    text = call("report", "runs", "-o", "-", "--format", "md").out
    assert "| covpool | sum, epochs 4 |" in text
    assert "| sopool-bimap | sum, epochs 6 |" in text


@pytest.mark.filterwarnings("ignore:.*counts as missing")
def test_damaged_runs_are_left_out_and_told(store, call, tmp_path):
    """Also where no run of a pooling is whole, or none at all."""
    for pool, left in (("sopool-bimap", "Wrote a report of 4 runs of 1 experiment"), ("sum", None)):
        for info in store.list():
            if info.config.model.pool == pool:
                path = store.folder / info.key / "predictions.safetensors"
                path.write_bytes(path.read_bytes()[:-9])
        shown = call("report", "runs", "-o", "table.md")
        if left is None:
            assert (shown.code, "every complete run in this folder is damaged" in shown.err) == (2, True)
        else:
            assert shown.out.startswith(left)
            assert "4 unreadable runs are left out." in (tmp_path / "table.md").read_text("utf-8")


def test_a_class_that_no_graph_has_may_be_predicted(call, tmp_path):
    data = replace(facts(classes=("no", "yes", "never")), labels=np.arange(40) % 2)
    store = RunStore(tmp_path / "runs")
    store.save_dataset(data)
    for config in configs(data, ModelConfig(pool="sum"), ("test",), (8,), 4, 6):
        store.save(made_up(config, data, 0.7))
    shown = call("report", "runs", "-o", "page.html")
    assert shown.code == 0, shown.err
    assert "predicted never" in (tmp_path / "page.html").read_text("utf-8")


def test_an_older_store_is_judged_by_the_data_set_of_that_name(call, tmp_path):
    """One without classes; MUTAG is in the package."""
    call("evaluate", "MUTAG", "--pool", "sum", "--protocol", "per-fold-max", *TINY)
    assert len(RunStore(tmp_path / "runs").list()) == 2
    with_facts = call("report", "runs", "-o", "-", "--format", "csv").out
    (kept,) = (tmp_path / "runs" / "data").iterdir()
    kept.unlink()
    assert call("report", "runs", "-o", "-", "--format", "csv").out == with_facts
    assert with_facts.count("\n") == 1 + 2 * 2


@pytest.mark.parametrize("module", ["jinja2", "plotly"])
def test_what_is_not_installed_is_missed_before_anything_is_read(module, call, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("sopool.experiments.summary.summarise", lambda *_: pytest.fail("runs were read"))
    (tmp_path / "runs").mkdir()
    shown = call("report", "runs", "-o", "r.html")
    assert shown.code == 2
    assert f"writing an HTML page needs {module}, which is not installed: pip install 'sopool[report]'." in shown.err
