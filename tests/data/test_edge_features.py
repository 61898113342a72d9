"""Labels and categories of edges are matched by name, and what was not seen has a number of its own."""

import json

import pytest
import torch
from hypothesis import assume, given

from sopool.data import DataError, Graph, pack
from sopool.data.features.edge_features import EdgeEncoder
from tests.helpers.data_graphs import stores

BONDS = pack([Graph(3, [(0, 1), (1, 2)], edge_labels=["single", "double"])], name="bonds")
OTHERS = pack([Graph(4, [(0, 1), (1, 2), (2, 3)], edge_labels=["triple", "single", "ionic"])], name="others")


@given(stores())
def test_the_numbers_stand_for_the_labels(store):
    assume(store.edge_labels is not None and store.num_edges)
    encoder = EdgeEncoder().fit(store)
    made = encoder.transform(store)
    assert made.combinations is None
    assert made.kinds == len(set(store.edge_labels.tolist())) + 1
    assert made.unknown == 0
    names = [store.edge_label_names[code] for code in store.edge_labels.tolist()]
    assert [encoder.values[code] for code in made.codes.tolist()] == names


def test_labels_of_another_store_are_matched_by_name():
    made = EdgeEncoder().fit(BONDS).transform(OTHERS)
    assert made.codes.tolist() == [2, 1, 2]  # unknown, single, unknown
    assert made.unknown == 2


def test_labels_that_no_edge_has_are_not_learned():
    both = pack([Graph(2, [(0, 1)], edge_labels=["single"]), Graph(2, [(0, 1)], edge_labels=["double"])])
    assert EdgeEncoder().fit(both[:1]).values == ["single"]


def test_it_comes_back_from_json():
    encoder = EdgeEncoder().fit(BONDS)
    back = EdgeEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert back.values == encoder.values == ["double", "single"]
    assert EdgeEncoder.from_json(["double", "single"]).to_json() == encoder.to_json()  # as earlier versions wrote it


SAVED = {"labels": ["a"], "categories": [{"name": "ring", "values": [1]}], "weights": True}
SAVED |= {"attributes": {"mean": [0.0], "std": [1.0]}}
OTHER = [{**SAVED, "labels": labels} for labels in ([], "single", ["a", "a"], [1.5], [True], [["a"]], {})]
OTHER += [None, [], {}, "single", ["a", "a"], [1.5], {**SAVED, "weights": 1}, {**SAVED, "more": 1}]
OTHER += [{**SAVED, "categories": some} for some in (None, {}, [1], [{"name": "ring"}], SAVED["categories"] * 2)]
OTHER += [{**SAVED, "attributes": some} for some in (1, [], {"mean": [0]}, {"mean": [0], "std": [0]})]


@pytest.mark.parametrize("saved", OTHER, ids=lambda saved: repr(saved)[:60])
def test_other_json_is_refused(saved):
    assert EdgeEncoder.from_json(SAVED).to_json() == SAVED
    with pytest.raises(DataError, match=r"^(edges|edge labels|edge categories|edge attributes): "):
        EdgeEncoder.from_json(saved)


EVERYTHING = {"labels": True, "categories": True, "attributes": True, "weights": True}


def rich(charges, rings, labels, name="rich", **changes):
    """A path whose edges have everything."""
    count = len(labels)
    given = {
        "edge_labels": labels,
        "edge_categories": {"charge": charges, "ring": rings},
        "edge_attributes": [[float(i), 10.0] for i in range(count)],
        "edge_weights": [1.0 + i for i in range(count)],
    }
    return pack([Graph(count + 1, [(i, i + 1) for i in range(count)], **(given | changes))], name=name)


def categories_of(made):
    """The categories of each edge as (column, number) pairs."""
    starts = [sum(size + 1 for size in made.sizes[:place]) for place in range(len(made.sizes))]
    rows = made.combinations[made.codes.long()].tolist()
    return [[number - start for number, start in zip(row, starts, strict=True)] for row in rows]


def test_several_columns_are_numbered_by_their_combinations():
    encoder = EdgeEncoder(**EVERYTHING).fit(rich([0, 1, 0, 1], ["no", "no", "no", "yes"], ["a", "b", "a", "b"]))
    assert encoder.sizes == (2, 2, 2)
    made = encoder.transform(rich([1, 7, 1], ["yes", "odd", "yes"], ["a", "c", "a"]))
    assert made.kinds == 2
    assert categories_of(made) == [[0, 1, 1], [2, 2, 2], [0, 1, 1]]
    assert made.unknown == 1
    assert made.weights.tolist() == [1, 2, 3]
    expected = (made.attributes.values.double() - torch.tensor([1.5, 10])) / torch.tensor([1.25**0.5, 1])
    torch.testing.assert_close(made.attributes.take(), expected.float())
    known = made.known_values(torch.tensor([True, True]))
    assert known.tolist() == [True, False, False, True, False, True]
    alone = encoder.transform(pack([Graph(1)]))
    assert (alone.kinds, alone.combinations.tolist(), len(alone.codes)) == (1, [[2, 5, 8]], 0)


def test_columns_are_found_whatever_their_order():
    encoder = EdgeEncoder(labels=False, categories=True).fit(rich([0, 1], ["no", "yes"], ["a", "a"]))
    other = rich([0, 1], [], ["a", "a"], edge_categories={"ring": ["yes", "no"], "more": [1, 1], "charge": [0, 1]})
    assert categories_of(encoder.transform(other)) == [[0, 1], [1, 0]]


MISSING = {
    "labels": "have no labels, which the GNN gine needs",
    "categories": "have no categories",
    "attributes": "has no attributes per edge, but the training graphs had 2",
    "weights": "have no weights",
}


@pytest.mark.parametrize("kind", MISSING)
def test_what_is_missing_is_said(kind):
    store = rich([0, 1], ["no", "yes"], ["a", "a"])
    encoder = EdgeEncoder(**(dict.fromkeys(MISSING, False) | {kind: True})).fit(store)
    with pytest.raises(DataError, match=MISSING[kind]):
        encoder.transform(rich([0], ["no"], ["a"], **{f"edge_{kind}": None}))
    assert list(encoder.fields) == [f"edge_{kind}"]
    assert encoder.transform(pack([Graph(1)])).unknown == 0


def test_attributes_of_another_width_and_missing_columns_are_refused():
    encoder = EdgeEncoder(**EVERYTHING).fit(rich([0], ["no"], ["a"]))
    with pytest.raises(DataError, match="has 3 attributes per edge, but the training graphs had 2"):
        encoder.transform(rich([0], ["no"], ["a"], edge_attributes=[[1.0, 2.0, 3.0]]))
    with pytest.raises(DataError, match=r"have the columns \['charge'\], but not 'ring'"):
        encoder.transform(rich([0], ["no"], ["a"], edge_categories={"charge": [0]}))


def test_weights_may_be_zero_or_negative():
    store = rich([0, 0], ["no", "no"], ["a", "a"], edge_weights=[0.0, -2.5])
    assert EdgeEncoder(weights=True).fit(store).transform(store).weights.tolist() == [0, -2.5]
    assert EdgeEncoder().fit(store).transform(store).weights is None


def test_graphs_without_edges_need_no_labels():
    alone = pack([Graph(1)])
    assert EdgeEncoder().fit(BONDS).transform(alone).codes.tolist() == []
    with pytest.raises(DataError, match="no edges, so there are no edge labels to learn"):
        EdgeEncoder().fit(alone)


def test_edges_without_labels_are_refused():
    plain = pack([Graph(2, [(0, 1)])], name="plain")
    with pytest.raises(DataError, match=r"the edges of plain have no labels.*such as gin-0"):
        EdgeEncoder().fit(plain)
    with pytest.raises(DataError, match="have no labels"):
        EdgeEncoder().fit(BONDS).transform(plain)


def test_nothing_is_made_before_fitting():
    with pytest.raises(RuntimeError, match="call fit first"):
        EdgeEncoder().transform(BONDS)
