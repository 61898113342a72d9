"""A table run again: its figures are those of evaluations, averaged and compared."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sopool.data.sources.catalogue import load
from sopool.errors import DataError
from sopool.experiments.comparison import corrected_paired_test
from sopool.experiments.evaluation import Evaluator, Request
from sopool.experiments.executors.local import train_all
from sopool.experiments.reproduce.paper import PaperRow
from sopool.experiments.reproduce.reproducer import across, compare_cells
from sopool.experiments.reproduce.reproduction import Measured, Reproduction, TableCell, load_reproduction
from sopool.experiments.systems import run_control
from sopool.models.config import Setting
from sopool.training.protocols.protocols import PROTOCOLS, single_epoch
from sopool.training.runs.store import RunStore
from tests.helpers.goals import numbers
from tests.helpers.little_table import SMALL, little_table

BIMAP, DRAWN, SUM = "GIN-0 + SOPool_bimap", "GIN-0 + SOPool_bimap, random", "GIN-0 + Sum/Avg"
SEEDS = (0, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def found(folder):
    return little_table(folder, seeds=SEEDS, not_run={"PTC": "it is not here."}, datasets=["MUTAG", "PTC"]).run()


def test_figures_are_those_of_evaluations_averaged_over_seeds_within_folds(found, folder):
    each = []
    for seed in SEEDS:
        request = Request(["sopool-bimap"], ["fair", "per-fold-max"], settings=[Setting(4, 16)], seed=seed)
        request = Request(**vars(request) | {"epochs": 2, "folds": 2, "steps": 1, "preset": "paper"})
        (one,) = Evaluator(load("MUTAG"), request, RunStore(folder)).evaluate(train=nothing_to_train)
        each.append(one.outcomes)
    cell = found.cell(BIMAP, "MUTAG")
    for protocol in ("fair", "per-fold-max"):
        averaged = np.mean([outcomes[protocol].folds for outcomes in each], axis=0)
        assert cell.measured[protocol].folds == pytest.approx(averaged)
        assert cell.measured[protocol].std == pytest.approx(np.std(averaged))
    assert cell.model_epochs == 2 * (2 + 2 * 3) * 2  # seeds, looks at the test folds and final runs, epochs
    assert (cell.paper.mean, cell.paper.std) == (0.953, 0.044)


def nothing_to_train(store, runs, configs, *_):
    assert all(runs.load(config) for config in configs)
    return True


def test_a_second_time_nothing_is_trained(found, folder):
    again = little_table(folder, seeds=SEEDS, not_run={"PTC": "it is not here."}, datasets=["MUTAG", "PTC"])
    assert again.run(train=nothing_to_train) == found


def test_what_cannot_be_judged_is_left_out_and_told(found, folder, monkeypatch):
    def outcome(runs, labels, objective):
        if runs[0].config.seed == SEEDS[1]:
            raise DataError("single-epoch: there is none.")
        return single_epoch(runs, labels, objective)

    monkeypatch.setitem(PROTOCOLS, "single-epoch", replace(PROTOCOLS["single-epoch"], outcome=outcome))
    protocols = ("per-fold-max", "single-epoch")
    table = little_table(folder, seeds=SEEDS, protocols=protocols).run(train=nothing_to_train)
    assert list(table.cell(BIMAP, "MUTAG").measured) == ["per-fold-max"]
    assert f"{BIMAP} on MUTAG, seed {SEEDS[1]}: single-epoch: there is none." in table.notes


def test_controls_are_on_the_same_folds_and_mark_what_does_not_beat_them(found, folder):
    for name in ("majority", "wl"):
        each = [run_control(name, load("MUTAG"), 2, seed, folder).outcome.folds for seed in SEEDS]
        assert found.cell(name, "MUTAG").measured["fair"].folds == pytest.approx(np.mean(each, axis=0))
    controls = {row.name: found.cell(row.name, "MUTAG").measured["fair"].mean for row in found.rows if row.control}
    for name in (BIMAP, SUM, DRAWN):
        cell = found.cell(name, "MUTAG")
        assert cell.not_above == tuple(one for one, mean in controls.items() if mean >= cell.measured["fair"].mean)
    assert found.cell(SUM, "MUTAG").not_above  # after two steps of training


def test_comparisons_are_the_declared_ones_the_drawn_and_the_best_control(found):
    pairs = {(one.row, one.against, one.why) for one in found.comparisons}
    best = max(
        ("majority", "size", "histogram", "wl"), key=lambda name: found.cell(name, "MUTAG").measured["fair"].mean
    )
    assert pairs == {
        (BIMAP, SUM, "declared"),
        (BIMAP, DRAWN, "random"),
        (BIMAP, best, "control"),
        (SUM, best, "control"),
    }
    (declared,) = [one for one in found.comparisons if one.why == "declared" and one.protocol == "fair"]
    folds = [found.cell(name, "MUTAG").measured["fair"].folds for name in (BIMAP, SUM)]
    assert declared.comparison == corrected_paired_test(*folds, 2)
    assert {one.protocol for one in found.comparisons if one.why == "control"} == {"fair"}


def test_a_data_set_that_could_not_be_read_has_the_papers_figures_only(found):
    assert found.datasets == ("MUTAG", "PTC")
    assert found.not_run == {"PTC": "it is not here."}
    cell = found.cell(BIMAP, "PTC")
    assert (cell.paper.mean, cell.measured) == (0.750, {})
    assert all(one.datasets == ("MUTAG",) for one in found.across)


def test_it_is_kept_and_read_again(found, tmp_path):
    path = found.save(tmp_path)
    assert path.match("reproduce-table2-*.json")
    assert found.save(tmp_path) == path
    assert load_reproduction(path) == found
    assert found.cell("no such line", "MUTAG") == TableCell("no such line", "MUTAG")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 0}'])
def test_what_is_no_reproduction_is_refused(tmp_path, text):
    (tmp_path / "reproduce-table2.json").write_text(text)
    with pytest.raises(ValueError, match="is not a reproduced table"):
        load_reproduction(tmp_path / "reproduce-table2.json")
    with pytest.raises(ValueError, match="cannot be read"):
        load_reproduction(tmp_path / "elsewhere.json")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda plain: plain["cells"][0]["measured"]["fair"].update(folds=[1.0, 1.0]), "the digest differs"),
        (lambda plain: plain.update(notes=None), "the digest differs"),
        (lambda plain: plain.update(across="x", digest=None), "the table.across is 'x', expected a list"),
        (
            lambda plain: plain.update(digest=None) or plain["cells"][0].update(measured=None),
            "measured is None, expected",
        ),
    ],
)
def test_what_was_changed_by_hand_is_refused(found, tmp_path, change, says):
    path = found.save(tmp_path)
    plain = json.loads(path.read_text())
    change(plain)
    path.write_text(json.dumps(plain))
    with pytest.raises(DataError, match=f"{path.name}: .*{says}.* Run sopool reproduce again"):
        load_reproduction(path)


def test_figures_of_an_earlier_version_have_no_digest(found, tmp_path):
    (tmp_path / "figures.json").write_text(json.dumps(found.to_json()))
    assert load_reproduction(tmp_path / "figures.json") == found


def test_where_it_cannot_be_written(found, tmp_path):
    with pytest.raises(
        ValueError, match=r"the reproduced table cannot be written: .*reproduce-table2-\w+\.json: No such file"
    ):
        found.save(tmp_path / "nowhere")


def test_an_infinite_t_survives(found):
    cells = [
        TableCell(name, "x", measured={"fair": Measured((score, score), (), {})})
        for name, score in (("a", 0.9), ("b", 0.8))
    ]
    rows = (PaperRow("a", pool="sopool", against="b", datasets=("x",)), PaperRow("b", pool="sum", datasets=("x",)))
    compared = tuple(compare_cells(rows, cells))
    assert compared[0].comparison.t == np.inf
    changed = Reproduction(**vars(found) | {"comparisons": compared})
    assert Reproduction.from_json(json.loads(json.dumps(changed.to_json()))).comparisons == compared


def test_networks_of_one_data_set_are_trained_together(tmp_path):
    asked = []

    def train(store, runs, configs, *how):
        asked.append(len(configs))
        return train_all(store, runs, configs, *how)

    little_table(tmp_path, seeds=SEEDS, controls=False).run(train=train)
    assert asked == [2 * 2 * 2, 2 * 2 * 2 * 3]  # seeds, pools, folds; then three final runs of each


def test_stopped_it_gives_nothing_and_goes_on_later(tmp_path):
    seen = []
    assert little_table(tmp_path, controls=False).run(report=seen.append, stop=lambda: len(seen) > 1) is None
    table = little_table(tmp_path, controls=False)
    seen.clear()
    assert table.run(report=seen.append) is not None
    assert sum(one.models * one.epochs for one in seen) == table.total_epochs
    assert sum(one.finished for one in seen) == table.total_runs


def test_ranks_are_of_models_only(found):
    (fair,) = [one for one in found.across if one.protocol == "fair"]
    assert set(fair.ranks) == {BIMAP, SUM}
    assert [(test.row, test.against) for test in fair.declared] == [(BIMAP, SUM)]
    assert across(found.rows, found.cells, "fair") == fair


def test_hierarchies_run_with_blocks(tmp_path):
    from sopool.experiments.reproduce.paper import read_tables
    from sopool.experiments.reproduce.reproducer import Reproducer
    from sopool.experiments.reproduce.selection import TableSelection

    few = SMALL | {"datasets": ["PROTEINS"], "pools": None, "protocols": ["per-fold-max"], "controls": False}
    selection = TableSelection(read_tables()["table5"], **few)
    with pytest.raises(DataError, match="PROTEINS has no classes, but the tables of the paper are about classif"):
        Reproducer(selection, {"PROTEINS": numbers()}, RunStore(tmp_path))
    found = Reproducer(selection, {"PROTEINS": load("MUTAG")}, RunStore(tmp_path)).run()
    assert all(found.cell(f"{number} block{'s' * (number > 1)}", "PROTEINS").measured for number in (1, 2, 3))
    assert {info.config.model.blocks for info in RunStore(tmp_path).list()} == {1, 2, 3}
    assert {info.config.model.head for info in RunStore(tmp_path).list()} == {"per-block"}
