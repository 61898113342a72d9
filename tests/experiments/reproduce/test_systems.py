"""The first table with a kernel and a pooling side by side."""

import json
from dataclasses import replace

import pytest

from sopool.data.sources.catalogue import load
from sopool.errors import DataError
from sopool.experiments.evaluation import Evaluator, Request
from sopool.experiments.reproduce.merge import merge
from sopool.experiments.reproduce.paper import Figure, PaperRow, read_tables
from sopool.experiments.reproduce.plan import plan_reproduction
from sopool.experiments.reproduce.reproducer import Reproducer
from sopool.experiments.reproduce.reproduction import Reproduction, load_reproduction
from sopool.experiments.reproduce.selection import TableSelection
from sopool.report.grids.reproduction import reproduction_grid, reproduction_grids
from sopool.training.runs.store import RunStore
from tests.helpers.little_table import SMALL

PROTOCOLS = ("per-fold-max", "single-epoch", "fair")


TABLE = read_tables()["table1"]


def table(folder, not_run=None, **changes):
    few = SMALL | {"pools": ["sum-avg"], "systems": ["gk", "wl"]} | changes
    return Reproducer(TableSelection(TABLE, **few), {"MUTAG": load("MUTAG")}, RunStore(folder), not_run)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def found(folder):
    return table(folder, TABLE.unavailable, datasets=["MUTAG", "REDDIT-MULTI-5K"]).run()


def cells(grid, name):
    """The texts of the line of a grid that starts with a name."""
    (row,) = [row for row in grid.rows if row[0].text == name]
    return [cell.text for cell in row]


def test_a_system_is_evaluated_under_all_protocols(found, folder):
    request = Request(["gk"], PROTOCOLS, epochs=2, folds=2, steps=1, preset="paper")
    evaluator = Evaluator(load("MUTAG"), request, RunStore(folder))
    assert all(RunStore(folder).load(run) for run in [*evaluator.first_runs(), *evaluator.final_runs()])
    outcomes = evaluator.judge("gk").outcomes
    cell = found.cell("GK [2009]", "MUTAG")
    assert {name: one.folds for name, one in cell.measured.items()} == {
        name: outcomes[name].folds for name in PROTOCOLS
    }
    assert cell.paper == Figure(0.814, 0.017)
    assert found.cell("RW [2010]", "MUTAG").measured == {}


def test_the_kernel_that_is_a_control_is_run_once(found):
    assert [row.name for row in found.rows if row.control == "wl"] == ["WL [2011]"]
    assert tuple(found.cell("WL [2011]", "MUTAG").measured) == PROTOCOLS
    (pair,) = found.compared("control")
    rows = {row.name: found.cell(row.name, "MUTAG").measured["fair"].mean for row in found.rows if row.control}
    assert rows[pair.against] == max(rows.values())
    assert "WL [2011]" in found.cell("GIN-0 + Sum/Avg", "MUTAG").not_above  # after two steps of training
    assert set(found.across[0].ranks) <= {"GIN-0 + Sum/Avg"}


def test_the_protocol_of_a_quoted_figure_is_named(found):
    shown, sources, other, others, *_ = reproduction_grids(found)
    assert cells(shown, "GK [2009]")[2] == "fair"
    assert cells(shown, "GK [2009]")[-2].startswith(("+", "-"))
    assert cells(shown, "AWE [2018]")[2] == "none of ours"
    assert cells(sources, "GK [2009]")[1] == "gk"
    assert cells(sources, "GK [2009]")[-1].startswith("yes, fair; ")
    assert cells(sources, "WL [2011]")[-1] == "yes, single-epoch"
    assert cells(sources, "RW [2010]")[-1].startswith("not run here")
    assert cells(sources, "AWE [2018]")[-1] == "no; its protocol lies between fair and single-epoch"
    assert cells(sources, "DCNN [2016]")[3] == "one random split into thirds for training, validation and test"
    assert cells(other, "WL [2011]")[-2:] == ["", "quoted, see below"]
    assert cells(others, "WL [2011]")[-1] == "not run here"
    together = reproduction_grid(found)
    (row,) = [row for row in together.rows if [cell.text for cell in row[:2]] == ["MUTAG", "DiffPool [2018]"]]
    assert [cell.text for cell in row[2:5]] == [
        "quoted: EigenGCN paper's rerun of DiffPool",
        "ten random splits 80/10/10",
        "fair",
    ]


def test_a_figure_that_cannot_be_compared_has_no_difference(found):
    (row,) = [row for row in found.rows if row.name == "GK [2009]"]
    cell = found.cell(row.name, "MUTAG")
    apart = replace(cell, source=replace(cell.source, comparable=False, remark="it is another kernel"))
    changed = replace(found, cells=tuple(apart if one == cell else one for one in found.cells))
    shown, sources, *_ = reproduction_grids(changed)
    assert cells(shown, row.name)[-2] == ""
    assert cells(sources, row.name)[-1] == "no; it is another kernel"
    other = {name: one for name, one in cell.measured.items() if name != "fair"}
    changed = replace(found, cells=(replace(cell, measured=other),))
    assert cells(reproduction_grids(changed)[1], row.name)[-1] == "no; there is no result of ours under fair"


def test_it_is_kept_with_its_sources_and_read_without(found, tmp_path):
    assert load_reproduction(found.save(tmp_path)) == found
    plain = json.loads(json.dumps(found.to_json()))
    assert all(("source" in cell) == (cell["row"] in sourced(found)) for cell in plain["cells"] if cell["paper"])
    for cell in plain["cells"]:
        if not cell["measured"]:  # earlier versions had neither sources nor results for quoted rows
            cell.pop("source", None)
    earlier = Reproduction.from_json(plain)
    assert cells(reproduction_grids(earlier)[0], "DCNN [2016]")[2] == "not known"
    plain["cells"][0]["source"] = {"paper": "somewhere"}
    with pytest.raises(DataError, match="source lacks judged"):
        Reproduction.from_json(plain)


def sourced(found):
    return {row.name for row in found.rows if row.sources}


def test_parts_with_different_systems_are_merged(found, folder, tmp_path):
    parts = [table(folder, systems=[name], pools=None).run() for name in ("gk", "wl")]
    assert len({part.save(tmp_path) for part in parts}) == 2
    (both,) = merge(parts)
    assert {row.name for row in both.rows if row.kind == "system"} == {"GK [2009]", "WL [2011]"}
    for name in ("GK [2009]", "WL [2011]"):
        assert both.cell(name, "MUTAG").measured == found.cell(name, "MUTAG").measured
        assert both.cell(name, "MUTAG").source == found.cell(name, "MUTAG").source


def test_a_plan_counts_systems_and_does_not_time_them(found, folder, tmp_path):
    (systems, _) = plan_reproduction(table(folder))
    assert (systems.network, systems.pools, systems.left) == ("-", ("gk", "wl"), 0)
    assert systems.runs == systems.found
    (fresh,) = plan_reproduction(table(tmp_path, pools=None))
    assert (fresh.left, fresh.found, fresh.seconds) == (systems.model_epochs, 0, 0)
    assert fresh.left == table(tmp_path, pools=None).total_epochs


def test_an_earlier_control_with_data_sets_stays_a_control():
    assert PaperRow("wl", control="wl", datasets=("MUTAG",)).kind == "control"


def test_a_plan_times_networks_at_their_own_settings(tmp_path):
    """Together with kernels, which are not timed, and with several settings to choose from."""
    few = {"systems": ["dcnn", "wl"], "pools": None, "epochs": 1}
    reproducer = table(tmp_path, **few)
    (fresh,) = plan_reproduction(reproducer, workers=1)
    assert (fresh.network, fresh.pools, fresh.found) == ("-", ("wl", "dcnn"), 0)
    assert (fresh.runs, fresh.left) == (reproducer.total_runs, reproducer.total_epochs)
    (kernel,) = plan_reproduction(table(tmp_path, **few | {"systems": ["wl"]}), workers=1)
    assert fresh.seconds > kernel.seconds == 0
    assert table(tmp_path, **few).run() is not None
    (after,) = plan_reproduction(table(tmp_path, **few), workers=1)
    assert (after.found, after.left, after.seconds) == (fresh.runs, 0, 0)
