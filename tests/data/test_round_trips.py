"""Graphs that carry any of all there is are what they were after a way through each format that can be written."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from sopool.data import from_networkx, from_pyg, load_graphs, save_graphs, to_networkx, to_pyg
from sopool.data.formats.jsonl import read_jsonl, write_jsonl
from tests.helpers.data_graphs import OPTIONAL, as_lists, stores

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def numbered(store):
    """The same graphs with their codes in place of the names of labels and categories, which PyG does not keep."""
    names = {name: tuple(range(len(getattr(store, name)))) for name in ("node_label_names", "edge_label_names")}
    for field in ("node_category_columns", "edge_category_columns"):
        names[field] = tuple(
            column._replace(values=tuple(range(len(column.values)))) for column in getattr(store, field)
        )
    return replace(store, **names)


def through_graphs(store, path):
    save_graphs(store, path / "a.graphs")
    return store, load_graphs(path / "a.graphs")


def through_json_lines(store, path):
    write_jsonl(store, path / "a.jsonl")
    return store, read_jsonl(path / "a.jsonl")


def through_pyg(store, path):
    asked = {field: columns_of(store, field) or False for field in ("node_categories", "edge_categories")}
    again = from_pyg(
        to_pyg(store),
        [store.classes[code] for code in store.labels],
        graph_attributes=store.graph_attribute_names,
        **asked,
    )
    return numbered(store), again


def through_networkx(store, path):
    asked = {field: columns_of(store, field) for field in ("node_categories", "edge_categories")}
    return store, from_networkx(to_networkx(store), graph_attributes=store.graph_attribute_names, **asked)


def columns_of(store, field):
    return [column.name for column in getattr(store, field.replace("categories", "category_columns"))]


def contents(store):
    """What graphs say, whatever the order of their edges; what no node or edge carries is left out."""
    result = []
    for one in as_lists(store):
        of_edges = {key: one.pop(key, None) or {} for key in OPTIONAL if key.startswith("edge")}
        columns = {name: column for name, column in of_edges.pop("edge_categories").items() if column}
        columns |= {key: column for key, column in of_edges.items() if column}
        rows = [[pair, *(column[i] for column in columns.values())] for i, pair in enumerate(one.pop("edges"))]
        kept = {key: value for key, value in one.items() if value and (one["nodes"] or not key.startswith("node_"))}
        result.append(kept | {"edges": sorted(rows, key=repr), "columns": sorted(columns)})
    return result


@pytest.mark.parametrize("way", [through_graphs, through_json_lines, through_pyg, through_networkx])
@SHARED_FOLDER
@given(stores(more=True))
def test_everything_comes_back(way, tmp_path, store):
    expected, found = way(store, tmp_path)
    assert contents(found) == contents(expected)


@pytest.mark.parametrize("way", [through_graphs, through_json_lines, through_pyg])
@SHARED_FOLDER
@given(stores(more=True))
def test_columns_and_types_come_back(way, tmp_path, store):
    expected, found = way(store, tmp_path)
    for name in ("node_category_columns", "edge_category_columns", "graph_attribute_names"):
        assert getattr(found, name) == getattr(expected, name)
    for name, tensor in expected.tensors().items():
        assert found.tensors()[name].dtype == tensor.dtype
