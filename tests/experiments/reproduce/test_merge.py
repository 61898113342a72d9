"""A table that was run in parts says what it would say at once."""

from dataclasses import replace

import pytest

from sopool.data.sources.catalogue import load
from sopool.experiments.reproduce.merge import merge
from sopool.experiments.reproduce.paper import read_tables
from sopool.experiments.reproduce.reproducer import Reproducer
from sopool.experiments.reproduce.selection import TableSelection
from sopool.training.runs.store import RunStore
from tests.helpers.little_table import SMALL


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The table's parts, of MUTAG under two names: nothing here depends on the graphs."""
    store = RunStore(tmp_path_factory.mktemp("runs"))
    stores = {"MUTAG": load("MUTAG"), "PTC": load("MUTAG")}

    def one(**changes):
        selection = TableSelection(read_tables()["table2"], **SMALL | changes)
        return Reproducer(selection, {name: stores[name] for name in selection.data}, store).run()

    return one


PARTS = (
    {"datasets": ["PTC"], "pools": ["sopool-bimap"]},
    {"datasets": ["PTC"], "pools": ["sum-avg", "covpool"], "controls": False},
    {"datasets": ["MUTAG"], "pools": ["covpool"]},
    {"datasets": ["MUTAG"], "pools": ["sopool-bimap", "sum-avg"], "protocols": ["fair"]},
    {"datasets": ["MUTAG"], "pools": ["sum-avg", "sopool-bimap"], "protocols": ["per-fold-max", "single-epoch"]},
)


def test_parts_are_as_the_whole(run):
    whole = run(datasets=["MUTAG", "PTC"], pools=["sum-avg", "sopool-bimap", "covpool"])
    (found,) = merge([run(**part) for part in PARTS])
    for name in ("table", "datasets", "protocols", "rows", "comparisons", "across", "notes", "not_run", "training"):
        assert getattr(found, name) == getattr(whole, name), name

    def plain(cells):
        return [replace(cell, seconds=0.0, model_epochs=0) for cell in cells]

    assert plain(found.cells) == plain(whole.cells)


def test_the_last_one_counts_and_nothing_is_there_twice(run):
    whole = run()
    part = run(pools=["sum-avg"])
    assert merge([whole]) == [whole]
    (found,) = merge([whole, part])
    assert found.cells == whole.cells
    changed = replace(part, cells=tuple(replace(cell, seconds=99.0) for cell in part.cells))
    (found,) = merge([whole, changed])
    assert found.cell("GIN-0 + Sum/Avg", "MUTAG").seconds == 99.0
    assert found.cell("GIN-0 + SOPool_bimap", "MUTAG") == whole.cell("GIN-0 + SOPool_bimap", "MUTAG")


def test_what_was_trained_otherwise_stays_apart(run):
    tables = [run(), run(epochs=1), run(seeds=[1]), run(hidden=[4, 8]), run(hidden=[8, 4], pools=["sum-avg"])]
    assert [len(one.cells) for one in merge(tables)].count(len(tables[0].cells)) == 4
    assert {one.setup["epochs"] for one in merge(tables)} == {1, 2}


def test_a_data_set_that_was_read_later_is_run(run):
    lacking = replace(run(datasets=["PTC"]), cells=(), not_run={"PTC": "it is not here."})
    (found,) = merge([lacking, run(datasets=["PTC"])])
    assert found.not_run == {}
    (found,) = merge([lacking, run()])
    assert found.not_run == {"PTC": "it is not here."}
