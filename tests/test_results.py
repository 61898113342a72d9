"""Check that the tables in docs/results follow from the files beside them."""

import importlib
from pathlib import Path

import pytest

from benchmarks import pages, search_page
from sopool.report.papers import grid_markdown

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("figures", sorted(ROOT.glob("docs/results/table*.json")), ids=lambda path: path.stem)
def test_page_has_the_tables_of_its_figures(figures):
    found = pages.read([figures])
    assert rows(figures.with_suffix(".md").read_text()) == rows(pages.page(found))
    assert rows(pages.details(found))


def test_page_of_the_search_has_the_table_of_its_figures():
    assert rows((ROOT / "docs" / "results" / "search.md").read_text()) == rows(grid_markdown(search_page.summary()))
    assert rows(search_page.page())


def test_table_of_the_search_follows_the_figures(monkeypatch):
    original = search_page.read

    def changed(name):
        figures = original(name)
        for one in figures.values():
            one["folds"] = [fold + 0.01 * (one["form"] == search_page.TESTED[-1]) for fold in one["folds"]]
        return figures

    before = rows(grid_markdown(search_page.summary()))
    monkeypatch.setattr(search_page, "read", changed)
    assert rows(grid_markdown(search_page.summary())) != before


@pytest.mark.parametrize(("script", "page"), [("best", "best.md"), ("overview", "results/index.md")])
def test_page_has_the_table_of_the_nine_sets(script, page):
    pytest.importorskip("matplotlib")
    module = importlib.import_module(f"benchmarks.{script}")
    made = rows(grid_markdown(module.grid(module.figures())))
    assert made
    assert set(made) <= set(rows((ROOT / "docs" / page).read_text()))


def rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]
