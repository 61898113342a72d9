"""The tables in docs/results are those of the figures beside them."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("figures", sorted(ROOT.glob("docs/results/table*.json")), ids=lambda path: path.stem)
def test_page_has_the_tables_of_its_figures(figures):
    pages = runpy.run_path(str(ROOT / "benchmarks" / "pages.py"))
    made = "\n".join(pages["page"](pages["read"]([figures])))
    page = figures.with_suffix(".md").read_text()
    assert rows(page) == rows(made)


def rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]
