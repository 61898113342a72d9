"""The paper's tables, recounted."""

import json
import re
from importlib.resources import files

import pytest

from sopool.experiments.reproduce.paper import TABLES, Figure, read_tables
from sopool.experiments.systems import SYSTEMS
from sopool.models.presets import HIERARCHICAL, POOLS
from sopool.nn.gnn import VARIANTS
from sopool.training.protocols.protocols import PROTOCOLS
from tests.helpers.shared import DATA

SOURCE = DATA.parent / "paper" / "sopool.tex"
FIGURE = re.compile(r"(\d+\.\d)(?:\$\\pm\$(\d+\.\d))?")


def cell(table, row, dataset):
    (found,) = [one for one in read_tables()[table].rows if one.name == row]
    return found.figures.get(dataset)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.skipif(not SOURCE.is_file(), reason="the paper's source is not beside the repository")
def test_every_figure_is_the_papers(name):
    """All numbers of a table in the paper's source, in the order in which they stand there."""
    table = read_tables()[name]
    source = SOURCE.read_text()
    start = source.index(rf"\label{{{table.label}}}")
    body = source[start : source.index(r"\end{tabular}", start)]
    lines = re.sub(r"\\textbf\{([^}]*?)(?:\$\^\*\$)?\}", r"\1", body).split(r"\midrule", 1)[1]
    there = [(float(mean), float(std) if std else None) for mean, std in FIGURE.findall(lines)]
    ours = [row.figures[dataset] for row in table.rows for dataset in table.datasets if dataset in row.figures]
    assert len(ours) > 5
    assert [_per_cent(figure) for figure in ours] == there


def _per_cent(figure):
    return round(100 * figure.mean, 1), None if figure.std is None else round(100 * figure.std, 1)


@pytest.mark.parametrize(
    ("table", "row", "dataset", "figure"),
    [
        ("table1", "WL [2011]", "NCI1", Figure(0.860, 0.018)),
        ("table1", "DCNN [2016]", "IMDB-MULTI", Figure(0.335, None)),
        ("table1", "RW [2010]", "NCI1", None),  # "> 1 day"
        ("table2", "GIN-0 + SOPool_bimap", "MUTAG", Figure(0.953, 0.044)),
        ("table2", "GIN-0 + DiffPool", "REDDIT-BINARY", None),
        ("table2", "GIN-0 + SOPool_m_attn", "REDDIT-MULTI-5K", Figure(0.558, 0.022)),
        ("table3", "GCN + SOPool_attn", "PTC", Figure(0.767, 0.056)),
        ("table3", "Max-MLP + Sum/Avg", "PTC", Figure(0.646, 0.102)),
        ("table3", "GraphSAGE + SOPool_bimap", "COLLAB", None),
        ("table4", "SOPool_m_attn", "PROTEINS", Figure(0.771, 0.038)),
        ("table5", "2 blocks", "DD", Figure(0.772, 0.027)),
    ],
)
def test_figures_looked_up_by_hand(table, row, dataset, figure):
    assert cell(table, row, dataset) == figure


@pytest.mark.parametrize("name", TABLES)
def test_every_line_can_be_run_or_says_where_it_is_from(name):
    table = read_tables()[name]
    names = [row.name for row in table.rows]
    assert len(set(names)) == len(names)
    for row in table.rows:
        if row.kind == "model":
            assert row.gnn in VARIANTS
            assert row.pool in (HIERARCHICAL if row.blocks else POOLS)
            assert row.datasets == tuple(row.figures)
        else:
            assert row.quoted or (row.sources and row.sources.keys() >= row.figures.keys())
        assert row.against is None or row.against in names
        assert row.protocol is None or row.protocol in PROTOCOLS


def test_every_quoted_figure_of_the_first_table_has_a_source_and_a_protocol():
    table = read_tables()["table1"]
    for row in table.rows:
        if row.protocol == "per-fold-max":
            assert not row.sources  # the paper's own runs
            continue
        assert row.sources.keys() >= row.figures.keys()
        assert row.sources.keys() - row.figures.keys() == ({"NCI1"} if row.name == "RW [2010]" else set())  # > 1 day
        for source in row.sources.values():
            assert source.paper
            assert source.judged
            assert source.protocol is None or source.protocol in PROTOCOLS
            assert source.remark or (source.comparable and source.protocol)
            assert not (source.comparable and source.protocol is None)
            assert source.system is None or source.system in SYSTEMS
    kernels = ("gk", "rw", "wl", "dgk-sp", "dgk-wl", "dgk-gk", "awe", "awe-dd")
    assert table.systems == (*kernels, "dcnn", "patchy-san", "ecc", "dgcnn", "diffpool-net", "gcaps-cnn", "eigengcn")
    assert "could not be had" in table.unavailable["REDDIT-MULTI-5K"]


def test_no_data_set_of_a_row_has_two_sources():
    text = files("sopool.experiments.reproduce.paper").joinpath("tables.json").read_text(encoding="utf-8")
    for table in json.loads(text).values():
        for row in table["rows"]:
            named = [name for source in row.get("sources", ()) for name in source["datasets"]]
            assert len(set(named)) == len(named)
            assert set(named) <= set(table["datasets"])


@pytest.mark.parametrize(
    ("row", "dataset", "words", "protocol", "system"),
    [
        ("GK [2009]", "MUTAG", "graphlets of 3 nodes", "fair", "gk"),
        ("WL [2011]", "COLLAB", "GIN paper", "single-epoch", "wl"),
        ("DGK [2015]", "PTC", "deep shortest-path kernel", "fair", "dgk-sp"),
        ("DGK [2015]", "NCI1", "deep WL kernel", "fair", "dgk-wl"),
        ("DGK [2015]", "COLLAB", "deep graphlet kernel", "fair", "dgk-gk"),
        ("AWE [2018]", "COLLAB", "distributed", None, "awe-dd"),
        ("DGCNN [2018]", "NCI1", "DGCNN paper", "last-epoch", "dgcnn"),
        ("DGCNN [2018]", "REDDIT-BINARY", "GCAPS-CNN paper's rerun", None, "dgcnn"),
        ("DCNN [2016]", "MUTAG", "DCNN paper", None, "dcnn"),
        ("PatchScan [2016]", "PROTEINS", "fields of 10 nodes", "single-epoch", "patchy-san"),
        ("DiffPool [2018]", "NCI1", "EigenGCN paper's rerun", "fair", "diffpool-net"),
        ("DiffPool [2018]", "COLLAB", "DiffPool paper", "single-epoch", "diffpool-net"),
    ],
)
def test_sources_looked_up_by_hand(row, dataset, words, protocol, system):
    (found,) = [one for one in read_tables()["table1"].rows if one.name == row]
    source = found.sources[dataset]
    assert words in source.paper
    assert (source.protocol, source.system) == (protocol, system)
    assert found.runs(dataset) == system


@pytest.mark.parametrize("name", ["table1", "table2", "table3"])
def test_sum_avg_is_quoted_by_another_protocol_and_every_second_order_pooling_is_compared_with_it(name):
    rows = {row.name: row for row in read_tables()[name].rows if row.pool}
    for row in rows.values():
        assert row.protocol == ("single-epoch" if row.pool == "sum-avg" else "per-fold-max")
        assert bool(row.quoted) == (row.pool == "sum-avg")
        assert bool(row.against) == row.pool.startswith("sopool")
        if row.against:
            assert (rows[row.against].pool, rows[row.against].gnn) == ("sum-avg", row.gnn)
