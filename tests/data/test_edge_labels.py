"""Edge labels are matched by name, and what was not seen has a number of its own."""

import json

import pytest
from hypothesis import assume, given

from sopool.data import DataError, Graph, pack
from sopool.data.features.edge_labels import EdgeLabelEncoder
from tests.helpers.data_graphs import stores

BONDS = pack([Graph(3, [(0, 1), (1, 2)], edge_labels=["single", "double"])], name="bonds")
OTHERS = pack([Graph(4, [(0, 1), (1, 2), (2, 3)], edge_labels=["triple", "single", "ionic"])], name="others")


@given(stores())
def test_the_numbers_stand_for_the_labels(store):
    assume(store.edge_labels is not None and store.num_edges)
    encoder = EdgeLabelEncoder().fit(store)
    codes, kinds = made = encoder.transform(store)
    assert kinds == len(set(store.edge_labels.tolist())) + 1
    assert made.unknown == 0
    names = [store.edge_label_names[code] for code in store.edge_labels.tolist()]
    assert [encoder.values[code] for code in codes.tolist()] == names


def test_labels_of_another_store_are_matched_by_name():
    made = EdgeLabelEncoder().fit(BONDS).transform(OTHERS)
    assert made.codes.tolist() == [2, 1, 2]  # unknown, single, unknown
    assert made.unknown == 2


def test_labels_that_no_edge_has_are_not_learned():
    both = pack([Graph(2, [(0, 1)], edge_labels=["single"]), Graph(2, [(0, 1)], edge_labels=["double"])])
    assert EdgeLabelEncoder().fit(both[:1]).values == ["single"]


def test_it_comes_back_from_json():
    encoder = EdgeLabelEncoder().fit(BONDS)
    back = EdgeLabelEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert back.values == encoder.values == ["double", "single"]


@pytest.mark.parametrize("saved", [None, [], {}, "single", ["a", "a"], [1.5], [True], [["a"]]])
def test_other_json_is_refused(saved):
    with pytest.raises(DataError, match="a list of distinct"):
        EdgeLabelEncoder.from_json(saved)


def test_graphs_without_edges_need_no_labels():
    alone = pack([Graph(1)])
    assert EdgeLabelEncoder().fit(BONDS).transform(alone).codes.tolist() == []
    with pytest.raises(DataError, match="no edges, so there are no edge labels to learn"):
        EdgeLabelEncoder().fit(alone)


def test_edges_without_labels_are_refused():
    plain = pack([Graph(2, [(0, 1)])], name="plain")
    with pytest.raises(DataError, match=r"the edges of plain have no labels.*such as gin-0"):
        EdgeLabelEncoder().fit(plain)
    with pytest.raises(DataError, match="have no labels"):
        EdgeLabelEncoder().fit(BONDS).transform(plain)


def test_nothing_is_made_before_fitting():
    with pytest.raises(RuntimeError, match="call fit first"):
        EdgeLabelEncoder().transform(BONDS)
