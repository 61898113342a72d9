import pytest

from sopool.errors import SettingError
from sopool.experiments.reproduce.paper import read_tables
from sopool.experiments.reproduce.selection import TableSelection
from sopool.experiments.systems import CONTROLS
from sopool.models.config import Setting


def chosen(name, **what):
    selection = TableSelection(read_tables()[name], **what)
    selection.check()
    return selection


def names(selection, *kinds):
    return [row.name for row in selection.rows if row.kind in kinds]


def test_all_of_a_table():
    whole = chosen("table2")
    assert len(names(whole, "model")) == 10
    assert names(whole, "random") == [f"GIN-0 + SOPool_{name}, random" for name in ("attn", "bimap", "m_attn")]
    assert names(whole, "control") == list(CONTROLS)
    assert len(whole.settings) == 6
    assert whole.data == read_tables()["table2"].datasets


def test_it_can_be_narrowed():
    some = chosen("table3", datasets=["PTC", "MUTAG"], pools=["sopool-bimap"], gnns=["gcn"], hidden=[8], controls=False)
    assert [row.name for row in some.rows] == ["GCN + SOPool_bimap"]
    assert some.data == ("MUTAG", "PTC")
    assert some.settings == [Setting(8, 32), Setting(8, 128)]


def test_poolings_can_be_added():
    added = chosen("table3", pools=["covpool"], gnns=["gin-0", "gcn"], controls=False)
    assert [(row.name, row.datasets) for row in added.rows] == [
        ("gin-0 + covpool", added.table.datasets),
        ("gcn + covpool", added.table.datasets),
    ]
    assert names(chosen("table5", pools=["diffpool"]), "model")[0] == "gcn + diffpool, 1 block"


def test_a_drawn_pooling_is_there_once_and_only_where_the_learned_one_is():
    some = chosen("table3", pools=["sopool-bimap", "sopool-bimap-random"], gnns=["max-mlp"])
    assert names(some, "model", "random") == ["Max-MLP + SOPool_bimap", "Max-MLP + SOPool_bimap, random"]
    assert all("COLLAB" not in row.datasets for row in some.rows)
    alone = chosen("table2", pools=["sopool-bimap-random"], controls=False)
    assert names(alone, "random") == ["gin-0 + sopool-bimap-random"]


SYSTEMS = [
    *("GK [2009]", "RW [2010]", "WL [2011]", "DGK [2015]", "AWE [2018]", "DCNN [2016]", "PatchScan [2016]"),
    *("ECC [2017]", "DGCNN [2018]", "DiffPool [2018]", "GCAPS-CNN [2018]", "EigenGCN [2019]"),
]


def test_the_wl_line_of_the_first_table_is_the_control():
    whole = chosen("table1")
    assert names(whole, "system") == SYSTEMS
    controls = [row for row in whole.rows if row.control]
    assert [row.name for row in controls if row.control == "wl"] == ["WL [2011]"]
    assert {row.control for row in controls} == set(CONTROLS)
    without = chosen("table1", controls=False)
    assert not names(without, "control", "random")
    assert names(without, "system") == SYSTEMS
    poolings = chosen("table1", pools=["sum-avg"])
    assert names(poolings, "control") == ["WL [2011]", "majority", "size", "histogram"]
    assert not names(poolings, "system")


def test_systems_are_run_for_the_figures_that_are_theirs():
    deep = chosen("table1", systems=["dgk-wl", "dgk-sp"], datasets=["MUTAG", "PTC", "NCI1", "COLLAB"])
    assert names(deep, "model", "random") == []
    (row,) = [row for row in deep.rows if row.kind == "system"]
    assert [(name, row.runs(name)) for name in deep.data] == [
        ("MUTAG", None),
        ("PTC", "dgk-sp"),
        ("NCI1", "dgk-wl"),
        ("COLLAB", None),
    ]
    both = chosen("table1", systems=["rw"], pools=["sum-avg"])
    assert names(both, "model", "system") == ["RW [2010]", "GIN-0 + Sum/Avg"]
    assert "NCI1" in both.rows[1].datasets
    assert "NCI1" not in both.rows[1].figures


def test_controls_without_a_network_need_fair():
    optimistic = chosen("table1", protocols=["per-fold-max"])
    assert not names(optimistic, "control")
    assert names(optimistic, "random")


def test_it_says_where_it_departs_from_the_paper():
    assert chosen("table2", hidden=[64, 32, 16], steps=50).departures == []
    assert chosen("table4", epochs=20, batch_sizes=[32], folds=5, steps=3).departures == [
        "20 epochs instead of 350",
        "5 folds instead of 10",
        "3 batches in an epoch",
        "batch size 32 instead of 128",
    ]


def test_a_system_that_the_first_table_does_not_have_is_refused():
    with pytest.raises(SettingError, match="Did you mean 'gk'"):
        chosen("table1", systems=["gkk"])


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"datasets": ["DD"]}, "no table2 data set 'DD'"),
        ({"gnns": ["gcn"]}, "no table2 GNN 'gcn'"),
        ({"systems": ["gk"]}, "no systems are run for table2"),
        ({"pools": ["sopool-bimp"]}, "Did you mean 'sopool-bimap'"),
        ({"protocols": ["fare"]}, "Did you mean 'fair'"),
        ({"seeds": []}, "one or more"),
    ],
)
def test_what_cannot_be_is_refused(what, message):
    with pytest.raises(SettingError, match=message):
        chosen("table2", **what)
