"""Check that the tables in docs/results follow from the files beside them."""

import importlib
from pathlib import Path

import pytest

from benchmarks import (
    attributed,
    bridge,
    calibration,
    epochs_rule,
    features,
    multi_head_scale,
    pages,
    pairs_choice,
    pairs_final,
    search_page,
    systems,
)
from sopool.estimator.fitting import schedule_for
from sopool.report.papers import grid_markdown

ROOT = Path(__file__).resolve().parents[1]


PAIRS = ROOT / "docs" / "results" / "pairs.md"
JOINED = {"table2_full": "table2"}
"""Files whose tables are on the page of another."""


@pytest.mark.parametrize("figures", sorted(ROOT.glob("docs/results/table*.json")), ids=lambda path: path.stem)
def test_page_has_the_accuracies_and_gains_of_its_file(figures):
    found = pages.read([figures])
    shown = page_of(figures).read_text()
    assert block(pages.fair_grid(found, controls=False)) in shown
    assert block(pages.gains_grid(found)) in shown
    assert rows(pages.details(found))


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/results/table*.md")), ids=lambda path: path.stem)
def test_every_row_of_a_page_follows_from_its_files(page):
    files = [path for path in ROOT.glob("docs/results/table*.json") if page_of(path) == page]
    made = {row for path in files for row in rows(pages.page(pages.read([path])))}
    assert set(rows(page.read_text())) <= made


def test_page_of_the_search_has_the_tables_of_its_files():
    assert rows((ROOT / "docs" / "results" / "search.md").read_text()) == search_rows()
    assert rows(search_page.page())


def test_table_of_the_search_follows_the_figures(monkeypatch):
    original = search_page.read

    def changed(name):
        figures = original(name)
        for one in figures.values():
            one["folds"] = [fold + 0.01 * (one["form"] == search_page.TESTED[-1]) for fold in one["folds"]]
        return figures

    before = search_rows()
    monkeypatch.setattr(search_page, "read", changed)
    assert search_rows() != before


@pytest.mark.parametrize(("script", "page"), [("best", "best.md"), ("overview", "results/index.md")])
def test_page_has_the_table_of_the_nine_sets(script, page):
    pytest.importorskip("matplotlib")
    module = importlib.import_module(f"benchmarks.{script}")
    made = rows(grid_markdown(module.grid(module.figures())))
    assert made
    assert set(made) <= set(rows((ROOT / "docs" / page).read_text()))


def test_page_of_hierarchies_has_the_comparison_of_normalizations():
    made = rows(grid_markdown(multi_head_scale.grid(multi_head_scale.figures())))
    assert made
    assert set(made) <= set(rows((ROOT / "docs" / "hierarchy.md").read_text()))


def test_page_of_the_classifier_has_the_rules_of_epochs():
    found = epochs_rule.figures()
    shown = (ROOT / "docs" / "classifier.md").read_text()
    assert block(epochs_rule.grid(found)) in shown
    assert len(rows(block(epochs_rule.grid(found)))) == len(found) + 2


def test_page_of_the_classifier_has_the_ways_to_calibrate():
    shown = (ROOT / "docs" / "classifier.md").read_text()
    made = rows(block(calibration.grid(calibration.figures())))
    assert len(made) == 7 + 2
    assert set(made) <= set(rows(shown))


def test_the_rule_of_epochs_is_the_one_that_was_chosen():
    chosen = [row for row in epochs_rule.figures() if row["rule"] == "twice the root"]
    assert {row["dataset"] for row in chosen} == set(epochs_rule.DATASETS)
    for row in chosen:
        used = schedule_for(row["graphs"], 32)._asdict()
        assert used == {name: row[name] for name in used}
    said = (ROOT / "docs" / "classifier.md").read_text()
    assert f": {', '.join(map(str, schedule_for(25_600, 32)[1:3]))} and {schedule_for(25_600, 32).halve_every}" in said


def test_pages_of_attributed_graphs_and_of_features_have_their_tables():
    found = attributed.figures()
    assert block(attributed.grid(found)) in attributed.FIGURES.with_suffix(".md").read_text()
    assert len(rows(block(attributed.grid(found)))) == len(found) / len(attributed.POOLS) + 2
    found = features.figures()
    assert len(found) == len(features.SPLITS) * len(features.LEVELS)
    for part in ("held", "test"):
        assert block(features.grid(found, part)) in features.FIGURES.with_suffix(".md").read_text()


def test_page_of_systems_has_its_tables():
    found = systems.figures(systems.FIGURES)
    shown = systems.FIGURES.with_suffix(".md").read_text()
    for data in ("MUTAG", "PTC"):
        assert block(systems.grid(found, data)) in shown


def test_page_of_pairs_has_the_bridge_and_the_setting_that_was_chosen():
    shown = PAIRS.read_text()
    assert block(bridge.summary(bridge.figures())) in shown
    chosen, *_ = pairs_choice.grid(bridge.figures(pairs_choice.FIGURES), ["PROTEINS", "NCI1"]).rows
    accuracies = (cell.text.split(" ")[0] for cell in chosen[3:])
    assert f"| chosen | {' | '.join(accuracies)} |" in shown


@pytest.mark.slow  # 10,000 samples of molecules
def test_page_of_pairs_has_the_declared_comparisons():
    assert block(pairs_final.grid(bridge.figures(pairs_final.FIGURES))) in PAIRS.read_text()


def page_of(figures):
    return figures.with_name(f"{JOINED.get(figures.stem, figures.stem)}.md")


def block(grid):
    return "\n".join(rows(grid_markdown(grid)))


def search_rows():
    return [row for grid in search_page.summary() for row in rows(grid_markdown(grid))]


def rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]
