import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.data import ConcatEncoder, ConstantEncoder, DataError, DegreeEncoder, Graph, NodeLabelEncoder, pack
from sopool.data.features.encoders import (
    AttributeEncoder,
    CategoryEncoder,
    default_encoder,
    encoder_from_json,
    paper_encoder,
)
from sopool.data.formats.tu import read_tu
from sopool.errors import SettingError
from tests.helpers.data_graphs import as_lists, stores
from tests.helpers.shared import DATA, needs_data

ONE_HOT = (NodeLabelEncoder, DegreeEncoder)
WITH_UNKNOWN = (*ONE_HOT, CategoryEncoder)
read = cache(lambda name: read_tu(DATA / f"{name}.zip"))


@st.composite
def fittings(draw, field="node_ptr", nodes=True):
    """A store that has the field, and some of its graphs to fit on; with ``nodes`` they are sure to have some."""
    store = draw(stores(more=True).filter(lambda store: getattr(store, field) is not None and store.num_nodes >= nodes))
    numbers = [g for g in range(len(store)) if store.sizes[g] >= nodes]
    return store, draw(st.lists(st.sampled_from(numbers), unique=True, min_size=nodes))


def encoders(store, unknown=True, standardize=True):
    """One of each kind that the store allows."""
    labels = [] if store.node_labels is None else [NodeLabelEncoder(unknown)]
    columns = [] if store.node_categories is None else [CategoryEncoder(unknown)]
    numbers = [] if store.node_attributes is None else [AttributeEncoder(standardize)]
    return [ConstantEncoder(), *labels, *columns, *numbers, DegreeEncoder(unknown), ConstantEncoder()]


def labelled(*graphs, name="letters"):
    return pack([Graph(len(labels), node_labels=list(labels)) for labels in graphs], name=name)


def attributed(*graphs, **others):
    return pack([Graph(len(rows), node_attributes=rows, **others) for rows in graphs], name="numbers")


def plain_values(cls, store):
    """The value of each node, a list for each graph."""
    if cls is NodeLabelEncoder:
        return [one["node_labels"] for one in as_lists(store)]
    sources = [(one["nodes"], [source for source, _ in one["edges"]]) for one in as_lists(store)]
    return [[some.count(node) for node in range(nodes)] for nodes, some in sources]


@pytest.mark.parametrize("cls", ONE_HOT)
@given(data=st.data(), unknown=st.booleans())
def test_one_hot_is_what_plain_python_says(cls, data, unknown):
    store, graphs = data.draw(fittings("node_labels" if cls is NodeLabelEncoder else "node_ptr", nodes=False))
    values = plain_values(cls, store)
    known = sorted({v for g in graphs for v in values[g]}, key=lambda v: (isinstance(v, str), v))
    everything = [v for some in values for v in some]
    new = [v for v in everything if v not in known]
    encoder = cls(unknown)
    if not known:
        with pytest.raises(DataError, match="the graphs of random to fit on have no nodes"):
            encoder.fit(store, graphs)
        return
    assert encoder.fit(store, graphs) is encoder
    assert (encoder.values, encoder.width) == (known, len(known) + unknown)
    if new and not unknown:
        with pytest.raises(DataError, match=f"^{len(new)} nodes .* not seen in fitting, such as {new[0]!r}"):
            encoder.transform(store)
        return
    features = encoder.transform(store)
    columns = [known.index(v) if v in known else len(known) for v in everything]
    assert features.codes.dtype == torch.int32
    assert features.codes.tolist() == [[column] for column in columns]
    assert features.rows().tolist() == [[float(i == column) for i in range(encoder.width)] for column in columns]
    assert (features.width, features.unknown) == (encoder.width, len(new))


@given(fittings(), st.booleans(), st.data())
def test_rows_and_json_of_every_encoder(fitting, flag, data):
    store, graphs = fitting
    store = store if flag else store[graphs]
    nodes = torch.tensor(data.draw(st.lists(st.integers(0, store.num_nodes - 1))), dtype=torch.long)
    for encoder in [*encoders(store, flag, flag), ConcatEncoder(encoders(store, flag, flag))]:
        features = encoder.fit(store, graphs if flag else None).transform(store)
        rows = features.rows()
        assert (rows.dtype, rows.shape) == (torch.float32, (store.num_nodes, encoder.width))
        assert torch.equal(features.rows(nodes), rows[nodes])
        back = encoder_from_json(json.loads(json.dumps(encoder.to_json())))
        assert (type(back), repr(back), back.to_json()) == (type(encoder), repr(encoder), encoder.to_json())
        assert torch.equal(back.transform(store).rows(), rows)


@given(fittings())
def test_concatenation_is_side_by_side(fitting):
    store, graphs = fitting
    together = ConcatEncoder(encoders(store)).fit(store, graphs)
    features = together.transform(store)
    parts = [part.fit(store, graphs) for part in encoders(store)]
    rows = [part.transform(store).rows() for part in parts]
    assert together.width == features.width == sum(part.width for part in parts)
    assert torch.equal(features.rows(), torch.cat(rows, 1))
    names = [name.startswith("unknown") for name in together.feature_names]
    assert features.unknown == int(torch.cat(rows, 1)[:, torch.tensor(names)].any(1).sum())
    first, second, *others = encoders(store)
    nested = ConcatEncoder([first, ConcatEncoder([ConcatEncoder([second]), *others])])
    assert nested.fit(store, graphs).to_json() == together.to_json()
    with pytest.raises(SettingError, match="needs at least one encoder"):
        ConcatEncoder([])


def with_only(features, seen):
    """The features of a model that knows the values in some columns only: all others are unknown to it."""
    return replace(features, codes=features.substitutes(seen)[features.codes.long()].int())


@given(fittings())
def test_one_column_space_for_all_folds(fitting):
    """Columns learned from all graphs and then cut down to some are the columns learned from these alone."""
    store, graphs = fitting
    encoder = ConcatEncoder(encoders(store, standardize=False)).fit(store)
    features = encoder.transform(store)
    before = features.codes.clone()
    known = [
        isinstance(part, WITH_UNKNOWN) and not name.startswith("unknown")
        for part in encoder.parts
        for name in part.feature_names
    ]
    assert (~features.seen(store, [])).tolist() == known  # constants, numbers and "unknown" may always be used
    seen = features.seen(store, graphs)
    made = with_only(features, seen)
    alone = encoder.fit(store, graphs).transform(store)
    assert torch.equal(made.rows()[:, seen], alone.rows())
    assert not made.rows()[:, ~seen].any()
    assert (made.unknown, made.codes.dtype) == (alone.unknown, torch.int32)
    training = torch.isin(torch.arange(len(store)).repeat_interleave(store.sizes), torch.tensor(graphs))
    assert torch.equal(made.codes[training], features.codes[training])
    assert torch.equal(features.codes, before)


def test_substitutes_for_many_models():
    store = labelled("ab", "bc")
    features = ConcatEncoder([ConstantEncoder(), NodeLabelEncoder()]).fit(store).transform(store)
    seen = torch.stack([features.seen(store, [g]) for g in range(2)])
    assert features.substitutes(seen).tolist() == [[0, 1, 2, 4, 4], [0, 4, 2, 3, 4]]
    assert [with_only(features, row).codes[:, 1].tolist() for row in seen] == [[1, 2, 2, 4], [4, 2, 2, 3]]


def test_labels_are_matched_by_name_and_only_those_that_occur_count():
    encoder = NodeLabelEncoder().fit(labelled(["x", 7, "y"]))
    assert encoder.values == [7, "x", "y"]
    assert encoder.transform(labelled(["y", "a", 7])).codes.flatten().tolist() == [2, 3, 0]
    assert encoder.transform(labelled(["y", "7"])).codes.flatten().tolist() == [2, 3]
    assert NodeLabelEncoder().fit(labelled("ab", "ca")[[1]]).values == ["a", "c"]  # though the store has a name for b


def categorized(columns, name="atoms"):
    nodes = len(next(iter(columns.values())))
    return pack([Graph(nodes, node_categories=columns)], name=name)


def test_categories_are_matched_by_name_in_any_order():
    encoder = CategoryEncoder().fit(categorized({"charge": [0, 1, -1], "ring": ["no", "no", "yes"]}))
    features = encoder.transform(categorized({"ring": ["yes", "odd"], "color": ["red", "red"], "charge": [5, 0]}))
    assert features.codes.tolist() == [[3, 5], [1, 6]]
    assert features.unknown == 2
    with pytest.raises(DataError, match=r"have the columns \['ring'\], but not 'charge'"):
        encoder.transform(categorized({"ring": ["yes"]}))
    for action in (encoder.transform, CategoryEncoder().fit):
        with pytest.raises(DataError, match="the nodes of letters have no categories"):
            action(labelled("a"))
    strict = CategoryEncoder(unknown=False).fit(categorized({"ring": ["yes"]}))
    with pytest.raises(DataError, match=r"1 nodes of atoms have a node category 'ring' that was not seen.*'odd'"):
        strict.transform(categorized({"ring": ["odd"]}))


def test_the_default_encoder_takes_everything_that_nodes_have():
    store = pack([Graph(2, node_labels=["a", "b"], node_attributes=[[1.0], [2.0]], node_categories={"ring": [0, 1]})])
    parts = default_encoder(store).parts
    assert list(map(type, parts)) == [NodeLabelEncoder, CategoryEncoder, AttributeEncoder]
    assert type(default_encoder(categorized({"ring": [0, 1]}))) is CategoryEncoder


def test_degree_counts_edges_out_of_a_node():
    store = pack([Graph(4, edges=[(0, 1), (0, 1), (0, 0), (1, 3)]), Graph(2, edges=[(1, 1)])])
    encoder = DegreeEncoder().fit(store)
    assert (encoder.values, encoder.transform(store).codes.flatten().tolist()) == ([0, 1, 3], [2, 1, 0, 0, 0, 1])


@given(fittings("node_attributes"))
def test_standardised_attributes(fitting):
    store, graphs = fitting
    raw = store[graphs].node_attributes
    flags = ((raw == 0) | (raw == 1)).all(0)
    constant = (raw == raw[0]).all(0)
    encoder = AttributeEncoder().fit(store, graphs)
    rows = encoder.transform(store[graphs]).rows().double()
    assert torch.equal(rows[:, flags], raw[:, flags].double())
    assert all(std == 1 for std, same in zip(encoder.std, constant | flags, strict=True) if same)
    assert not rows[:, constant & ~flags].any()
    torch.testing.assert_close(rows.mean(0)[~flags], torch.zeros(int((~flags).sum())).double(), atol=1e-5, rtol=0)
    torch.testing.assert_close(rows.std(0, correction=0)[~flags], (~constant).double()[~flags], atol=1e-5, rtol=0)
    plain = AttributeEncoder(standardize=False).fit(store, graphs).transform(store)
    assert torch.equal(plain.rows(), store.node_attributes)


def test_standardised_by_the_fitted_graphs_only():
    store = attributed([[0, 0.1], [2, 0.1], [1, 0.1]], [[4, 0.1]], [[10, 0.3]])
    encoder = AttributeEncoder().fit(store, [0])
    assert (encoder.mean[0], encoder.std) == (1, [pytest.approx((2 / 3) ** 0.5), 1])
    expected = torch.tensor([[-1, 0], [1, 0], [0, 0], [3, 0], [9, 0.2]])
    torch.testing.assert_close(encoder.transform(store).rows() * torch.tensor(encoder.std), expected)
    with pytest.raises(DataError, match="numbers has 1 attributes per node, but the encoder was fitted with 2"):
        encoder.transform(attributed([[1]]))


NUMBERS = [make([0, 2]) for make in (list, tuple, np.array, torch.tensor)]
MASKS = [make([True, False, True]) for make in (list, np.array, torch.tensor)]


@pytest.mark.parametrize("graphs", [*NUMBERS, *MASKS, [2, 0, 2], range(0, 3, 2), np.array([2, 0], np.uint8)], ids=repr)
def test_graphs_in_any_form(graphs):
    store = labelled("ab", "c", "d")
    assert NodeLabelEncoder().fit(store, graphs).values == ["a", "b", "d"]
    features = NodeLabelEncoder().fit(store).transform(store)
    assert features.seen(store, graphs).tolist() == [True, True, False, True, True]
    assert features.seen(store, None).all()


@pytest.mark.parametrize("graphs", [[2], [-1], torch.tensor([0, -1]), [0.5], [True], np.ones((1, 2), bool)], ids=repr)
def test_graphs_that_are_not_there(graphs):
    store = labelled("a", "b", name="pair")
    message = r"there is no graph (2|-1): pair has 2|graphs must be integers or a mask of length 2, found"
    for action in (*(cls().fit for cls in ONE_HOT), ConstantEncoder().fit, ConstantEncoder().transform(store).seen):
        with pytest.raises(DataError, match=message):
            action(store, graphs)


def test_what_is_missing_is_said():
    store = attributed([[1]])
    with pytest.raises(DataError, match="the nodes of numbers have no labels: use another encoder"):
        NodeLabelEncoder().fit(store)
    with pytest.raises(DataError, match="the graphs of numbers to fit on have no nodes, so there are no attributes"):
        AttributeEncoder().fit(store, [])
    for action in (AttributeEncoder().fit, AttributeEncoder().fit(store).transform):
        with pytest.raises(DataError, match="the nodes of letters have no attributes: use another encoder"):
            action(labelled("a"))


@pytest.mark.parametrize(
    "encoder", [*(cls() for cls in WITH_UNKNOWN), AttributeEncoder(), ConcatEncoder([DegreeEncoder()])]
)
def test_not_fitted(encoder):
    assert "not fitted" in repr(encoder)
    for action in (lambda: encoder.width, lambda: encoder.transform(labelled("a")), encoder.to_json):
        with pytest.raises(RuntimeError, match="is not fitted yet: call fit first"):
            action()


ONE = {"kind": "constant"}
HOT = {"kind": "degree", "unknown": True, "values": [1]}
SCALED = {"kind": "attributes", "standardize": True, "mean": [0], "std": [1]}
MALFORMED = [None, [], {}, "degree", {"kind": None}, {"kind": "other"}, {"kind": ["degree"]}, {**ONE, "width": 1}]
MALFORMED += [{"kind": "degree", "values": [1]}, {**HOT, 3: 4}, {**HOT, "unknown": 1}, {**SCALED, "standardize": 0}]
MALFORMED += [{**HOT, "values": values} for values in ([], [2, 2], [-1], ["1"], [False], [1.0], None)]
VALUES = ([], [1, 1], ["a", "a"], [1.5], [True], [None], [[1]], "ab", {"a": 1})
MALFORMED += [{**HOT, "kind": "node-labels", "values": values} for values in VALUES]
MALFORMED += [{**SCALED, "std": std} for std in ([0], [-1], [1, 1], [], [math.inf], None, "1")]
MALFORMED += [{**SCALED, "mean": [bad]} for bad in (math.nan, 10**400, -math.inf, "0", True)]
COLUMN = {"name": "ring", "values": [1]}
COLUMNS = (None, [], {}, [None], [{}], [COLUMN, COLUMN], [{**COLUMN, "name": 1}], [{**COLUMN, "name": ""}])
COLUMNS += tuple([{**COLUMN, "values": values}] for values in VALUES)
MALFORMED += [{"kind": "node-categories", "unknown": True, "columns": columns} for columns in COLUMNS]
MALFORMED += [{"kind": "node-categories", "unknown": 1, "columns": [COLUMN]}]
PARTS = (None, [], {}, [None], [{"kind": "degree"}], [ONE, {"kind": "concat", "parts": [ONE]}])
MALFORMED += [{"kind": "concat", "parts": parts} for parts in PARTS]


@pytest.mark.parametrize("saved", MALFORMED, ids=lambda saved: repr(saved)[:70])
def test_malformed_json(saved):
    with pytest.raises(DataError, match=r"^encoder: "):
        encoder_from_json(saved)


WIDTHS = {"MUTAG": 7, "PTC": 19, "PROTEINS": 3, "NCI1": 37, "DD": 82, "IMDB-BINARY": 65, "IMDB-MULTI": 59}


@needs_data
@pytest.mark.parametrize(("name", "width"), [*WIDTHS.items(), pytest.param("COLLAB", 367, marks=pytest.mark.slow)])
def test_widths_of_the_paper(name, width):
    encoder = paper_encoder(name, unknown=False)
    default = default_encoder(read(name))
    assert type(encoder) is type(default) is (DegreeEncoder if read(name).node_labels is None else NodeLabelEncoder)
    assert encoder.fit(read(name)).width == width
    assert default.fit(read(name)).width == width + 1


@needs_data
def test_reddit_has_one_feature_that_is_constant():
    store = read("REDDIT-BINARY")
    encoder = paper_encoder("REDDIT-BINARY")
    assert type(default_encoder(store)) is type(encoder) is ConstantEncoder
    assert torch.equal(encoder.fit(store, [0]).transform(store).rows(), torch.ones(store.num_nodes, 1))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@given(fittings())
def test_the_same_on_cuda(fitting):
    store, graphs = fitting
    there = store.to("cuda")
    encoder = ConcatEncoder(encoders(store)).fit(there, graphs)
    on_host = encoder.transform(store)
    on_device = encoder.transform(there)
    here = ConcatEncoder(encoders(store)).fit(store, graphs)
    torch.testing.assert_close(here.transform(store).rows(), on_host.rows())
    seen = on_device.seen(there, torch.tensor(graphs[:1]))
    for host, device in ((on_host, on_device), (with_only(on_host, seen.cpu()), with_only(on_device, seen))):
        assert device.rows().is_cuda
        assert torch.equal(host.to("cuda").rows(), device.rows())
        assert torch.equal(host.rows(), device.rows().cpu())
        assert host.unknown == device.unknown
