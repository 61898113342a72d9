"""Estimators on graphs that carry everything: several categories, numbers and weights of nodes, edges and graphs."""

import io
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load

from sopool import GraphClassifier
from sopool.data import DataError, Graph, load_graphs, save_graphs
from sopool.data.formats.molecules import smiles_to_store
from sopool.data.sources.stream import stream_graphs
from sopool.estimator import UnusedWarning
from sopool.estimator.streaming import Count, Writer, predict_stream
from tests.helpers.little_classifier import LABELS, tiny
from tests.helpers.little_targets import NUMBERS, tiny_regressor
from tests.helpers.training_graphs import rich_store

STORE = replace(rich_store(graphs=40), labels=None, classes=())
GNNS = {"gine": (), "gin-0": (UnusedWarning,)}


def fitted(gnn="gine", store=STORE, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedWarning)
        return tiny(gnn=gnn, **changes).fit(store, LABELS)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(
    scope="module", params=[{}, {"gnn": "gcn", "pool": "sum"}, {"gnn": "gin-0", "pool": "sagpool", "blocks": 2}]
)
def any_model(request):
    return fitted(**request.param)


def test_what_a_network_uses_is_in_its_configuration(model):
    config = model.config_
    assert (config.edge_labels, config.edge_categories, config.edge_attributes) == (3, [3, 3], 2)
    assert config.edge_weights
    assert config.graph_attributes == 2
    plain = fitted("gin-0").config_
    assert (plain.edge_labels, plain.edge_categories, plain.edge_attributes) == (0, [], 0)
    assert plain.edge_weights
    assert plain.graph_attributes == 2
    assert list(model.ensemble_.fields) == [
        *("node_labels", "node_categories", "node_attributes", "graph_attributes"),
        *("edge_labels", "edge_categories", "edge_attributes", "edge_weights"),
    ]


def test_saved_and_loaded_in_any_way_it_predicts_the_same(any_model, tmp_path):
    expected = any_model.predict_proba(STORE)
    any_model.save(tmp_path / "m.sopool")
    again = GraphClassifier.load(tmp_path / "m.sopool", device="cpu")
    save_graphs(STORE, tmp_path / "rich.graphs")
    for graphs in (STORE, load_graphs(tmp_path / "rich.graphs"), list(STORE)):
        np.testing.assert_allclose(again.predict_proba(graphs), expected, atol=1e-6)
    again.save(tmp_path / "again.sopool")
    assert (tmp_path / "again.sopool").read_bytes() == (tmp_path / "m.sopool").read_bytes()
    assert again.transform(STORE).shape == any_model.transform(STORE).shape


def test_each_part_has_an_influence(model):
    scores = model.predict_proba(STORE)
    changed = {
        "node_categories": (STORE.node_categories + 1) % 3,
        "edge_categories": (STORE.edge_categories + 1) % 3,
        "edge_attributes": STORE.edge_attributes.flip(0),
        "edge_weights": STORE.edge_weights.flip(0),
        "graph_attributes": STORE.graph_attributes.flip(0),
    }
    for name, values in changed.items():
        assert np.abs(model.predict_proba(replace(STORE, **{name: values})) - scores).max() > 1e-4, name


def test_names_count_and_their_order_does_not(model):
    swapped = replace(
        STORE,
        node_categories=STORE.node_categories.flip(1),
        node_category_columns=STORE.node_category_columns[::-1],
        edge_categories=STORE.edge_categories.flip(1),
        edge_category_columns=STORE.edge_category_columns[::-1],
        graph_attributes=STORE.graph_attributes.flip(1),
        graph_attribute_names=STORE.graph_attribute_names[::-1],
    )
    np.testing.assert_array_equal(model.predict_proba(swapped), model.predict_proba(STORE))
    (one,) = model.explain(STORE[:1])
    (other,) = model.explain(swapped[:1])
    assert list(one.attributes) == list(other.attributes) == ["heat", "pressure"]
    np.testing.assert_allclose(one.attributes["heat"], other.attributes["heat"])


LACKING = {
    "node_categories": r"graphs have no node_categories, which the model needs",
    "edge_categories": "the edges of little have no categories",
    "edge_attributes": "little has no attributes per edge",
    "edge_weights": "the edges of little have no weights",
}


@pytest.mark.parametrize("name", LACKING)
def test_what_graphs_lack_is_said(model, name):
    gone = {name: None} | ({f"{name[:4]}_category_columns": ()} if "categories" in name else {})
    with pytest.raises(DataError, match=LACKING[name]):
        model.predict(replace(STORE, **gone))


def test_missing_attributes_of_graphs_are_named(model):
    some = replace(STORE, graph_attributes=STORE.graph_attributes[:, :1], graph_attribute_names=("heat",))
    with pytest.raises(
        DataError, match=r"no graph_attributes 'pressure', .* They have 'heat': give all of 'heat', 'pr"
    ):
        model.predict(some)
    none = replace(STORE, graph_attributes=None, graph_attribute_names=())
    with pytest.raises(DataError, match=r"no graph_attributes 'heat', 'pressure', .* They have none"):
        model.predict(none)


def test_unknown_categories_are_counted_and_missing_attributes_have_the_mean(model):
    columns = tuple(column._replace(values=("new", *column.values[1:])) for column in STORE.edge_category_columns)
    with pytest.warns(match="edges have a label or a category that no training graph has"):
        model.predict(replace(STORE, edge_category_columns=columns))
    nothing = replace(STORE, graph_attributes=torch.full_like(STORE.graph_attributes, torch.nan))
    one = tiny(gnn="gine", n_models=1).fit(STORE, LABELS)
    means = one.ensemble_.inputs.graphs.shift.float().expand_as(STORE.graph_attributes)
    found = [one.predict_proba(graphs) for graphs in (nothing, replace(STORE, graph_attributes=means.contiguous()))]
    np.testing.assert_allclose(*found, atol=1e-4)


def test_each_model_has_the_moments_of_its_own_training_graphs(tmp_path):
    model = tiny(gnn="gine", epochs=1)
    model.fit(STORE, LABELS)
    model.save(tmp_path / "m.sopool")
    arrays = load((tmp_path / "m.sopool").read_bytes())
    inputs = model.ensemble_.inputs
    for kind, width in (("nodes", 2), ("edges", 2), ("graphs", 2)):
        assert arrays[f"{kind}.shift"].shape == arrays[f"{kind}.scale"].shape == (2, width)
        assert torch.equal(arrays[f"{kind}.shift"], getattr(inputs, kind).shift)
        assert len(arrays[f"{kind}.shift"][:, 0].unique()) == 2  # each holds out other graphs


def test_what_is_not_used_is_named_once():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tiny(gnn="gin-0", epochs=1).fit(STORE, LABELS)
        tiny(gnn="gine", epochs=1).fit(STORE, LABELS)
    said = [str(one.message) for one in seen if one.category is UnusedWarning]
    assert said == ["gin-0 does not use edge categories and edge attributes: use gine, or remove them."]
    assert [one.filename for one in seen if one.category is UnusedWarning] == [__file__]


def test_streams_are_predicted_as_whole_stores_are(model, tmp_path):
    save_graphs(STORE, tmp_path / "rich.graphs")
    out = io.StringIO()
    count = Count()
    chunks = stream_graphs(tmp_path / "rich.graphs", model.ensemble_.fields)
    refused = []
    predict_stream(model, chunks, count, lambda _, row: refused.append(row), Writer(out, "jsonl", model).write)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [row.row for row in refused] == STORE.empty
    expected = np.delete(model.predict_proba(STORE), STORE.empty, axis=0)
    np.testing.assert_allclose([list(row["probabilities"].values()) for row in rows], expected, atol=1e-5)


def test_numbers_are_predicted_too():
    model = tiny_regressor(gnn="gine", epochs=2).fit(STORE, NUMBERS)
    assert np.isfinite(model.predict(STORE)).all()
    assert model.scores(STORE, NUMBERS)["rmse"] > 0
    assert len(model.explain(STORE[:2])) == 2


def test_an_edge_of_weight_zero_is_no_edge():
    """And one of a negative weight takes away what it would add."""
    model = fitted("gin-0", replace(STORE, edge_weights=STORE.edge_weights - 1))
    given = {"node_labels": [0, 1, 2], "node_attributes": [[0.0, 1.0], [2.0, 0.5], [1.0, 1.0]]}
    given |= {"node_categories": {"charge": ["x"] * 3, "ring": ["y"] * 3}}
    given |= {"graph_attributes": {"heat": 290.0, "pressure": 310.0}}
    edges = [(0, 1), (1, 0)]
    plain = Graph(3, edges, edge_weights=[1.0, 1.0], **given)
    more = [
        Graph(3, [*edges, (1, 2)], edge_weights=[1.0, 1.0, 0.0], **given),
        Graph(3, [*edges, (1, 2), (1, 2)], edge_weights=[1.0, 1.0, 0.7, -0.7], **given),
    ]
    expected = model.predict_proba([plain])[0]
    for other in more:
        np.testing.assert_allclose(model.predict_proba([other])[0], expected, atol=1e-5)
    other = Graph(3, [*edges, (1, 2)], edge_weights=[1.0, 1.0, 0.7], **given)
    assert np.abs(model.predict_proba([other])[0] - expected).max() > 1e-4


def with_one(name, value):
    """The store with one other entry in a field."""
    values = getattr(STORE, name).clone()
    values.view(len(values), -1)[3, 0] = value
    return replace(STORE, **{name: values})


BAD = {
    ("node_attributes", np.nan): "node_attributes must be finite",
    ("edge_attributes", np.inf): "edge_attributes must be finite",
    ("edge_weights", np.nan): "edge_weights must be finite",
    ("graph_attributes", -np.inf): "graph 3: .*'heat' is -inf",
    ("node_categories", 3): "node_categories of column 'charge' must lie between 0 and 2",
    ("edge_categories", 200): "edge_categories of column 'charge' must lie between 0 and 2",
}


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_values_are_refused_in_words(model, name, value):
    for action in (lambda store: fitted(store=store), model.predict):
        with pytest.raises(DataError, match=BAD[name, value]):
            action(with_one(name, value))


@pytest.mark.parametrize("name", ["node_attributes", "edge_attributes"])
def test_attributes_of_two_widths_are_refused(model, name):
    with pytest.raises(DataError, match=r"has 1 attributes per (node|edge), but the .*2"):
        model.predict(replace(STORE, **{name: getattr(STORE, name)[:, :1].contiguous()}))


def test_graphs_without_edges_have_no_weights_to_use():
    points = [Graph(1, node_labels=[label], edge_weights=[]) for label in "ab"]
    assert not tiny(epochs=1, validation_fraction=0).fit(points, ["a", "b"]).config_.edge_weights


def test_a_graph_without_edges_needs_nothing_of_them(model):
    columns = {"charge": ["x"], "ring": ["y"]}
    heat = {"heat": 300.0, "pressure": None}
    point = Graph(1, node_labels=[0], node_categories=columns, node_attributes=[[0.0, 0.0]], graph_attributes=heat)
    assert np.isfinite(model.predict_proba([point])).all()
    assert model.explain([point])[0].exact


def test_a_model_reads_what_it_needs_of_smiles():
    pytest.importorskip("rdkit", reason="RDKit is not installed")
    smiles = ["CCO", "CC[NH3+]", "c1ccccc1", "C/C=C/C"]
    store, _ = smiles_to_store(smiles, [0, 1, 0, 1], features="all", descriptors=["morgan"])
    model = tiny(gnn="gine", validation_fraction=0).fit(store)
    np.testing.assert_array_equal(model.predict_proba(smiles), model.predict_proba(store))
