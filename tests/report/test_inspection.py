"""What ``sopool inspect`` shows of targets and of other columns."""

from rich.console import Console

from sopool.data import Graph, pack
from sopool.data.analysis.graph_statistics import graph_statistics
from sopool.report.terminal.inspection import inspection


def shown(store):
    console = Console(width=120)
    with console.capture() as capture:
        console.print(inspection(graph_statistics(store), store.sizes, []))
    return capture.get()


def test_figures_of_each_target():
    rows = [[1, None], [2.5, None], [None, None]]
    lines = shown(pack([Graph(1, label=row) for row in rows], target_names=["mass", "a\nb"])).splitlines()
    table = [line.split() for line in lines]
    assert ["targets", "2", "(0", "without", "missing", "values)"] in table
    assert ["name", "graphs", "missing", "mean", "std", "min", "max"] in table
    assert ["mass", "2", "1", "1.75", "0.75", "1", "2.5"] in table
    assert [r"a\nb", "0", "3"] in table
    assert not any(line.startswith("classes") for line in lines)


def test_only_the_first_of_many_targets_are_listed():
    text = shown(pack([Graph(1, label=[0.5] * 23)]))
    assert "target 20 " in text
    assert "target 21" not in text
    assert "and 3 more" in text


def test_without_targets_or_classes():
    text = shown(pack([Graph(1)]))
    assert "none given" in text
    assert "Targets" not in text


def test_columns_of_categories_and_of_numbers():
    graph = Graph(
        2,
        [(0, 1)],
        node_categories={"charge": [0, -1], "a\nb": ["x", "x"]},
        edge_categories={"stereo": ["any"]},
        edge_attributes=[[0.5, 2]],
        edge_weights=[-1],
        graph_attributes={"heat": None, "size": 2},
    )
    text = shown(pack([graph, Graph(0, graph_attributes={"heat": None, "size": 0})]))
    table = [line.split() for line in text.splitlines()]
    assert "2 columns of node categories, 1 column of edge categories, 2 edge attributes, edge weights" in text
    assert "2 graph attributes" in " ".join(text.split())
    for row in (
        ["node", "charge", "2"],
        ["node", r"a\nb", "1"],
        ["edge", "stereo", "1"],
        ["edge", "attribute", "1", "0", "2", "2"],
        ["edge", "weight", "0", "-1", "-1"],
        ["graph", "heat", "2"],
        ["graph", "size", "0", "0", "2"],
    ):
        assert row in table


def test_only_the_first_of_many_numbers_are_listed():
    text = shown(pack([Graph(1, graph_attributes=[0] * 23)]))
    assert "attribute 19 " in text
    assert "attribute 20" not in text
    assert "and 3 more" in text
