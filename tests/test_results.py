"""The tables in docs/results are those of the figures beside them."""

import importlib
from pathlib import Path

import pytest

from benchmarks import pages, search_page
from sopool.report.papers import grid_markdown

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("figures", sorted(ROOT.glob("docs/results/table*.json")), ids=lambda path: path.stem)
def test_page_has_the_tables_of_its_figures(figures):
    made = pages.page(pages.read([figures]))
    assert rows(figures.with_suffix(".md").read_text()) == rows(made)


def test_page_of_the_search_has_the_tables_of_its_figures():
    assert rows((ROOT / "docs" / "results" / "search.md").read_text()) == rows(search_page.page())


@pytest.mark.parametrize(("script", "page"), [("best", "best.md"), ("overview", "results/index.md")])
def test_page_has_the_table_of_the_nine_sets(script, page):
    pytest.importorskip("matplotlib")
    module = importlib.import_module(f"benchmarks.{script}")
    made = rows(grid_markdown(module.grid(module.figures())))
    assert made
    assert set(made) <= set(rows((ROOT / "docs" / page).read_text()))


def rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]
