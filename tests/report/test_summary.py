import csv
import io
import json
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sopool.data.sources.catalogue import load
from sopool.errors import SettingError
from sopool.experiments import summary as module
from sopool.experiments.comparison import Comparison, corrected_paired_test
from sopool.experiments.reproduce.merge import read_reproductions
from sopool.experiments.reproduce.paper.tables import Figure, PaperRow
from sopool.experiments.reproduce.reproduction import Measured, Reproduction, TableCell
from sopool.experiments.summary import summarise
from sopool.experiments.systems import run_control
from sopool.experiments.systems.run import read_controls
from sopool.report.grid import Cell, Grid, interval_words, points
from sopool.report.grids.store import confusion_grid, cost_grid, gains_grid, scores_grid
from sopool.report.page.charts import POINTS, curves_chart, groups, label, thin
from sopool.report.page.html import page
from sopool.report.papers import tidy
from sopool.training.runs.store import RunStore
from tests.helpers.run_saver import checkpoint_facts
from tests.helpers.stores import ODD, PROTOCOLS, facts, fill

SETUP = {
    "preset": "paper",
    "head": None,
    "settings": [{"hidden": 8, "batch_size": 32, "lr": 0.01, "dropout": 0.5}],
    "epochs": 6,
    "steps": 50,
    "folds": 2,
    "seeds": [0],
    "device": "cpu",
    "sopool": "1",
}


def test_gains_are_over_sum_on_the_same_data_set(summary):
    assert len(summary.gains) == 2 * 2 * 3
    for gain in summary.gains:
        assert gain.reference.pool == "sum"
        assert gain.reference.data == gain.entry.data
        folds = [one.outcomes[gain.protocol].folds for one in (gain.entry, gain.reference)]
        assert gain.comparison == corrected_paired_test(*folds, 4)


def test_the_reference_is_the_papers_rule_or_what_is_asked_for(tmp_path):
    pools = (("sum", 0.6), ("mean", 0.6), ("covpool", 0.7))
    store = fill(tmp_path, pools=pools, looks=("test",), hidden=(8,), encoder="DegreeEncoder()")
    assert {gain.reference.pool for gain in summarise(store).gains} == {"mean"}
    assert {gain.reference.pool for gain in summarise(store, reference="covpool").gains} == {"covpool"}
    with pytest.raises(SettingError, match="no stored pooling 'diffpool'"):
        summarise(store, reference="diffpool")


def test_what_the_papers_rule_comes_to_is_told(summary, tmp_path):
    told = "sum-avg is listed as the pooling that the paper's rule selects: "
    assert f"{told}sum on TOY, {ODD}." in scores_grid(summary).notes
    without = fill(tmp_path, pools=(("mean", 0.6), ("covpool", 0.7)), looks=("test",), hidden=(8,))
    assert told not in " ".join(scores_grid(summarise(without)).notes)


def test_ranks_over_the_data_sets(summary):
    assert [one.across.protocol for one in summary.ranks] == list(PROTOCOLS)
    for one in summary.ranks:
        assert set(one.across.ranks) == {"sum-avg", "sopool-bimap", "covpool"}
        assert sum(one.across.ranks.values()) == pytest.approx(6)
        assert {test.row for test in one.across.declared} == {"sopool-bimap", "covpool"}


def test_confusion_counts_every_test_graph_once_and_agrees_with_accuracy(summary):
    labels = facts().labels
    for entry in summary.entries:
        for protocol, table in entry.confusion.items():
            np.testing.assert_allclose(table.sum(1), np.bincount(labels))
            # All folds are of one size, so that their mean is the share of all graphs.
            assert np.trace(table) / len(labels) == pytest.approx(entry.outcomes[protocol].mean)
    grid = confusion_grid(summary.entries[0], "fair")
    assert [row[0].text for row in grid.rows] == ["no", "yes"]


def test_what_it_cost(summary):
    runs = 4 * (2 + 2 + 3 * 2)
    for entry, row in zip(summary.entries, cost_grid(summary.entries).rows, strict=True):
        assert (entry.cost.runs, entry.cost.model_epochs, entry.cost.seconds) == (runs, 6 * runs, 1.5 * runs)
        assert row[-1].text == "3.0 MB"


def test_what_tells_lines_apart_is_said(tmp_path):
    fill(tmp_path, pools=[("sum", 0.7)], looks=("test",), hidden=(8,))
    store = fill(tmp_path, pools=[("sum", 0.7)], looks=("test",), hidden=(8,), epochs=7)
    assert [entry.variant for entry in summarise(store).entries] == ["epochs 6", "epochs 7"]


def test_seeds_are_averaged_within_folds(tmp_path):
    """One line for each pooling, the curves and counts of all seeds behind it; CSV has each seed."""
    each = {seed: summarise(fill(tmp_path / str(seed), seed=seed)) for seed in (0, 3)}
    for seed in each:
        store = fill(tmp_path / "all", seed=seed)
    found = summarise(store)
    assert [(entry.pool, entry.variant, list(entry.seeds)) for entry in found.entries] == [
        ("sum", "", [0, 3]),
        ("sopool-bimap", "", [0, 3]),
    ]
    for number, entry in enumerate(found.entries):
        alone = [one.entries[number] for one in each.values()]
        for protocol, outcome in entry.outcomes.items():
            outcomes = [one.outcomes[protocol] for one in alone]
            assert list(entry.seeds.values()) == [one.outcomes for one in alone]
            assert outcome.folds == pytest.approx(np.mean([one.folds for one in outcomes], axis=0))
            assert outcome.repeats == sum(one.repeats for one in outcomes)
            assert np.shape(outcome.epochs) == (4, outcome.repeats)
            np.testing.assert_allclose(entry.confusion[protocol], sum(one.confusion[protocol] for one in alone) / 2)
            part = "validation" if protocol == "fair" else "test"
            curves = [one.curves[protocol][part].mean for one in alone]
            np.testing.assert_allclose(entry.curves[protocol][part].mean, np.mean(curves, axis=0))
        assert entry.cost.runs == sum(one.cost.runs for one in alone)
    assert {gain.comparison.folds for gain in found.gains} == {4}
    assert len(found.gains) == 3
    grid = scores_grid(found)
    assert [row[grid.columns.index("seeds")].text for row in grid.rows] == ["0, 3", "0, 3"]
    assert "seeds" not in scores_grid(each[0]).columns
    assert [row["seed"] for row in csv.DictReader(io.StringIO(tidy(found)))].count("3") == 2 * 3 * 4
    assert "all folds at epoch" in page(found)


@pytest.mark.parametrize(
    ("ours", "theirs", "told"), [((0, 3), (0,), "0"), ((0,), (0, 3), "0"), ((3,), (0,), "3 against 0")]
)
def test_differences_are_over_the_seeds_that_both_lines_have(tmp_path, ours, theirs, told):
    alone = summarise(fill(tmp_path / "alone")).gains
    for pool, seeds in ((("sopool-bimap", 0.75), ours), (("sum", 0.7), theirs)):
        for seed in seeds:
            store = fill(tmp_path / "all", pools=[pool], seed=seed)
    found = summarise(store).gains
    if told == "0":
        assert [gain.comparison for gain in found] == [gain.comparison for gain in alone]
    grid = gains_grid(found, "fair")
    assert {row[grid.columns.index("seeds")].text for row in grid.rows} == {told}
    assert "seeds" not in gains_grid(alone, "fair").columns


def test_optimism_is_over_the_seeds_that_have_both_protocols(tmp_path):
    store = fill(tmp_path, pools=[("sum", 0.7)])
    alone = scores_grid(summarise(store))
    fill(tmp_path, pools=[("sum", 0.7)], looks=("validation", "chosen"), seed=1)
    found = scores_grid(summarise(store))
    shown, expected = (dict(zip(grid.columns, grid.rows[0], strict=True)) for grid in (found, alone))
    assert shown["optimism, points"] == expected["optimism, points"]
    assert shown["fair"] != expected["fair"]
    assert shown["seeds"].text == "per-fold-max, single-epoch: 0; fair: 0, 1"
    assert "Optimism: per-fold-max minus fair, in points, over the seeds that have both." in found.notes
    assert "Optimism: per-fold-max minus fair, in points." in alone.notes


def test_no_optimism_without_a_seed_that_has_both_protocols(tmp_path):
    fill(tmp_path, pools=[("sum", 0.7)], looks=("test",))
    grid = scores_grid(summarise(fill(tmp_path, pools=[("sum", 0.7)], looks=("validation", "chosen"), seed=1)))
    shown = dict(zip(grid.columns, grid.rows[0], strict=True))
    assert (shown["optimism, points"].text, shown["seeds"].text) == ("-", "per-fold-max, single-epoch: 0; fair: 1")


def test_what_one_seed_lacks_is_said(tmp_path):
    fill(tmp_path, pools=[("sum", 0.7)])
    store = fill(tmp_path, pools=[("sum", 0.7)], looks=("test", "validation"), seed=1)
    found = summarise(store)
    assert found.entries[0].outcomes["fair"].repeats == 3
    assert found.entries[0].outcomes["single-epoch"].repeats == 2
    assert any("fair: with seed 1: the final runs are not there yet." in note for note in found.notes)


def test_notes(tmp_path):
    store = fill(tmp_path, ("NOWHERE",), pools=[("sum", 0.7)], looks=("test",), hidden=(8,), keep=False)
    info = store.list()[0]
    store.save_checkpoint(replace(info.config, seed=9), {"a": np.zeros(1)}, checkpoint_facts(1))
    found = summarise(store)
    assert "1 interrupted run is left out." in found.notes
    run = store.load(info.config)
    curves = {name: np.where(np.arange(6) < 3, curve, np.nan) for name, curve in run.curves.items()}
    run.predictions["test_logits"][3:] = np.nan
    store.save(replace(run, curves=curves, stopped=3))
    store.save_dataset(facts("NOWHERE"))
    assert any("1 run was stopped because the loss" in note for note in summarise(store).notes)


def test_nothing_to_report(tmp_path):
    with pytest.raises(ValueError, match="no complete run"):
        summarise(RunStore(tmp_path))


def test_columns_that_say_nothing_are_left_out():
    grid = Grid("t", ["a", "b", "c"], [[Cell("x"), Cell(""), Cell("1")]], words=2)
    assert grid.without_empty().columns == ["a", "c"]
    assert grid.without_empty().words == 1


def test_no_minus_before_nothing_but_at_the_end_of_an_interval():
    assert (points(-0.0001), points(-0.012), points(0.0)) == ("+0.0", "-1.2", "+0.0")
    assert interval_words(Comparison(0.0, 0.0, 1.0, -0.02, -0.0001, 10)) == "-2.0 to -0.0"


def test_groups_that_cannot_be_told_apart():
    assert groups([1.0, 1.5, 2.5, 4.0], 1.6) == [(0, 2), (2, 3)]
    assert groups([1.0, 3.0], 1.0) == []
    assert groups([1.0, 1.0], None) == []


def test_curves_are_thinned_and_keep_their_ends():
    assert thin(5).tolist() == [0, 1, 2, 3, 4]
    kept = thin(10_000)
    assert len(kept) == POINTS
    assert (kept[0], kept[-1]) == (0, 9_999)


def test_marks_are_at_the_epochs_that_a_protocol_picks(summary):
    entry = summary.entries[0]
    chart = curves_chart(entry, ["per-fold-max", "single-epoch"])
    marks = {trace["marker"]["color"]: trace for trace in chart["data"] if trace["mode"] == "markers"}
    best = entry.outcomes["per-fold-max"]
    one = entry.outcomes["single-epoch"]
    assert marks["per-fold-max"]["x"] == list(best.epochs)
    assert marks["per-fold-max"]["y"] == pytest.approx([100 * fold for fold in best.folds], abs=0.01)
    assert marks["single-epoch"]["x"] == [one.epochs]
    assert marks["single-epoch"]["y"] == pytest.approx([100 * one.mean], abs=0.01)
    assert label("<b>&") == "&lt;b&gt;&amp;"


def test_controls_mark_what_is_not_above_them(tmp_path):
    graphs = load("MUTAG")
    for seed in (0, 1):
        run_control("majority", graphs, folds=4, seed=seed, runs_folder=tmp_path)
    (control,) = read_controls(tmp_path)
    assert (control.outcome.repeats, len(control.outcome.folds)) == (2, 4)
    store = fill(tmp_path, pools=[("sum", 0.2)])
    found = summarise(store)
    assert [found.not_above(entry) for entry in found.entries] == [[]]  # another data set
    own = replace(control, fingerprint=facts().fingerprint)
    found = replace(found, controls=[own])
    assert found.not_above(found.entries[0]) == ["majority"]
    assert scores_grid(found).columns[-1] == "not above"
    assert "Controls under fair" in page(found)


def test_a_reproduced_table_stands_beside(tmp_path):
    measured = Measured((0.9, 0.8), (1, 2, 3), {"hidden 8": 2})
    cell = TableCell("Sum <b>", "TOY", Figure(0.75, 0.05), {"single-epoch": measured}, ("wl",))
    figures = {"TOY": Figure(0.75, 0.05)}
    row = PaperRow("Sum <b>", "gin-0", "sum", protocol="single-epoch", quoted="elsewhere", figures=figures)
    table = Reproduction(
        "table2", "Poolings", ("TOY",), ("single-epoch",), (row,), (cell,), (), (), ("A note.",), setup=SETUP
    )
    store = fill(tmp_path, looks=("test",), hidden=(8,))
    table.save(tmp_path)
    (tmp_path / "reproduce-table3.json").write_text(json.dumps({"format": 99}))
    with pytest.warns(UserWarning, match="reproduce-table3.json.*left out"):
        assert read_reproductions(tmp_path) == [table]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        text = page(summarise(store))
    words = ("The paper&#39;s table 2", "6 epochs of 50 batches", "Sum &lt;b&gt;", "quoted: elsewhere", "A note.")
    assert all(shown in text for shown in (*words, "75.0 ± 5.0", "85.0 ± 5.0", "+10.0"))


def test_one_experiment_in_memory_at_a_time(tmp_path, monkeypatch):
    """A store of any size is read run by run; what stays of an experiment has no predictions."""
    store = fill(tmp_path, ("A", "B", "C"), looks=("test",), hidden=(8,))
    seen = SimpleNamespace(alive=0, most=0)
    real = module.load_runs

    class Counted(dict):
        def __init__(self, runs):
            super().__init__(runs)
            seen.alive += 1
            seen.most = max(seen.most, seen.alive)

        def __del__(self):
            seen.alive -= 1

    monkeypatch.setattr(module, "load_runs", lambda *given: Counted(real(*given)))
    summarise(store)
    assert seen.most == 1


def test_a_note_tells_a_protocol_once(tmp_path):
    store = fill(tmp_path, pools=[("sum", 0.7)], looks=("chosen",), hidden=(8,))
    store.remove([next(info.key for info in store.list() if info.config.fold == 2)])
    (note,) = summarise(store).notes
    assert note.count("fair:") == 1
    assert "are missing: fold 3" in note
