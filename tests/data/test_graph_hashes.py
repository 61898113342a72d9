"""Equal and isomorphic graphs have equal hashes everywhere, and other graphs have others."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sopool.data import Graph, concatenate, load, pack
from sopool.data.analysis.graph_hashes import graph_hashes, hashed_fields
from tests.helpers.training_graphs import rich_store

STORE = rich_store(graphs=30)
FIELDS = [
    *("node_labels", "node_categories", "node_attributes"),
    *("edge_labels", "edge_categories", "edge_attributes", "edge_weights"),
]


def hashes(store, fields=FIELDS, needed=()):
    return graph_hashes(store, fields, dict(needed))


def shuffled(store, seed=0):
    """The same graphs with nodes and edges in another order."""
    random = np.random.default_rng(seed)
    nodes, edges, index = [], [], store.edge_index.clone()
    for graph in range(len(store)):
        first, last = store.node_ptr[graph : graph + 2].tolist()
        order = random.permutation(last - first)
        nodes += (first + order).tolist()
        own = slice(*store.edge_ptr[graph : graph + 2].tolist())
        index[:, own] = torch.from_numpy(np.argsort(order).astype(np.int32))[index[:, own].long()]
        edges += (own.start + random.permutation(own.stop - own.start)).tolist()
    changed = {name: getattr(store, name)[nodes if name.startswith("node") else edges] for name in FIELDS}
    return replace(store, edge_index=index[:, edges], **changed)


def test_they_depend_neither_on_the_order_nor_on_the_store():
    expected = hashes(STORE)
    assert expected.dtype == np.int64
    assert len(set(expected.tolist())) == len(STORE)
    assert (hashes(shuffled(STORE)) == expected).all()
    assert (hashes(concatenate([STORE[20:], STORE[:20]])) == np.roll(expected, 10)).all()
    assert hashes(STORE[7:8]).tolist() == expected[7:8].tolist()
    assert hashes(STORE[:0]).tolist() == []


def test_they_are_the_same_in_every_version():
    """Models keep them."""
    graph = pack([Graph(3, [(0, 1), (1, 0), (1, 2), (2, 1)], node_labels=["C", "C", "O"], edge_labels=[1, 1, 2, 2])])
    assert hashes(graph, ["node_labels", "edge_labels"]).tolist() == [739975642902918566]


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_counts(name):
    store = STORE[[g for g in range(30) if STORE.edge_ptr.diff()[g] and STORE.sizes[g] > 1]]
    values = getattr(store, name)
    other = (values + 1) % 3 if values.dtype in (torch.int32, torch.uint8) else values * 2
    changed = replace(store, **{name: other})
    assert (hashes(changed) != hashes(store)).all()
    rest = [field for field in FIELDS if field != name]
    assert (hashes(changed, rest) == hashes(store, rest)).all()


def test_labels_count_by_name():
    store = replace(STORE, node_label_names=("x", "y", "z"))
    swapped = replace(store, node_labels=(store.node_labels + 1) % 3, node_label_names=("z", "x", "y"))
    assert (hashes(store) == hashes(swapped)).all()
    numbers, texts = (pack([Graph(2, [(0, 1)], node_labels=labels)]) for labels in ([1, 2], ["1", "2"]))
    assert hashes(numbers, ["node_labels"]) == hashes(texts, ["node_labels"])


def test_direction_counts():
    one, other, both = (
        pack([Graph(3, edges)]) for edges in ([(0, 1), (0, 2)], [(1, 0), (2, 0)], [(0, 1), (1, 0), (0, 2), (2, 0)])
    )
    assert len({hashes(graph, []).item() for graph in (one, other, both)}) == 3


def test_only_needed_columns_of_categories_count():
    needed = {"node_categories": ("ring",)}
    columns = STORE.node_category_columns
    turned = replace(STORE, node_categories=STORE.node_categories.flip(1), node_category_columns=columns[::-1])
    alone = replace(STORE, node_categories=STORE.node_categories[:, 1:], node_category_columns=columns[1:])
    expected = hashes(STORE, ["node_categories"], needed.items())
    for other in (turned, alone):
        assert (hashes(other, ["node_categories"], needed.items()) == expected).all()
    assert hashes(alone, ["node_categories"], {"node_categories": ("charge",)}.items()) is None


def test_graphs_that_lack_a_field_have_none():
    bare = replace(STORE, edge_labels=None, edge_label_names=())
    assert hashes(bare, ["node_labels", "edge_labels"]) is None
    points = pack([Graph(1, node_labels=["C"]), Graph(1, node_labels=["N"])])
    assert len(set(hashes(points, ["node_labels", "edge_labels"]).tolist())) == 2


def test_labels_always_count_and_other_fields_if_a_model_needs_them():
    assert hashed_fields(STORE, {"edge_weights": None}) == ["node_labels", "edge_labels", "edge_weights"]
    assert hashed_fields(load("MUTAG"), {}) == ["node_labels", "edge_labels"]
