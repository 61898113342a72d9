"""The tables in docs/results are those of the figures beside them."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("figures", sorted(ROOT.glob("docs/results/table*.json")), ids=lambda path: path.stem)
def test_page_has_the_tables_of_its_figures(figures):
    pages = runpy.run_path(str(ROOT / "benchmarks" / "pages.py"))
    made = pages["page"](pages["read"]([figures]))
    assert rows(figures.with_suffix(".md").read_text()) == rows(made)


def test_page_of_the_search_has_the_tables_of_its_figures(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    made = runpy.run_path(str(ROOT / "benchmarks" / "search_page.py"))["page"]()
    assert rows((ROOT / "docs" / "results" / "search.md").read_text()) == rows(made)


@pytest.mark.parametrize(("script", "page"), [("best.py", "best.md"), ("overview.py", "results/index.md")])
def test_page_has_the_table_of_the_nine_sets(script, page, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    module = runpy.run_path(str(ROOT / "benchmarks" / script))
    made = rows(module["grid_markdown"](module["grid"](module["figures"]())))
    assert made
    assert set(made) <= set(rows((ROOT / "docs" / page).read_text()))


def rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]
