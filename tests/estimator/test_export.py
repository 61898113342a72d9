"""A fitted classifier as an ONNX file: the same predictions, and metadata that say how to ask for them."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from sopool.data import (
    AttributeEncoder,
    ConcatEncoder,
    ConstantEncoder,
    DegreeEncoder,
    LaplacianEncoder,
    NodeLabelEncoder,
    RandomWalkEncoder,
)
from sopool.errors import MissingPackageError, SettingError
from sopool.estimator import UnusedWarning
from sopool.ops import find_pairs
from tests.helpers.exported import has_races, quiet
from tests.helpers.little_classifier import LABELS, NAMED, STORE, tiny
from tests.helpers.little_targets import FLAGS, NUMBERS, tiny_regressor, with_targets
from tests.helpers.training_graphs import rich_store

pytestmark = [quiet, pytest.mark.filterwarnings("ignore::sopool.estimator.UnseenWarning")]
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")


def codes(store, values, names, labels):
    known = {value: number for number, value in enumerate(values)}
    table = np.array([known.get(name, -1) for name in names], dtype=np.int64)
    return table[labels.numpy()]


def inputs_for(store, described):
    """What the metadata ask for, from the graphs of a store."""
    shift = store.node_ptr[:-1].repeat_interleave(store.edge_ptr.diff())
    given = {"ptr": store.node_ptr.numpy(), "edge_index": (store.edge_index + shift).numpy()}
    if "node_labels" in described:
        values = described["node_labels"]["values"]
        given["node_labels"] = codes(store, values, store.node_label_names, store.node_labels)
    if "node_categories" in described:
        columns = {column.name: number for number, column in enumerate(store.node_category_columns)}
        found = []
        for column in described["node_categories"]["columns"]:
            own = columns[column["name"]]
            names = store.node_category_columns[own].values
            found.append(codes(store, column["values"], names, store.node_categories[:, own]))
        given["node_categories"] = np.stack(found, axis=1)
    if "node_attributes" in described:
        given["node_attributes"] = store.node_attributes.numpy()
    if "edge_labels" in described:
        values = described["edge_labels"]["values"]
        given["edge_labels"] = codes(store, values, store.edge_label_names, store.edge_labels)
    if "pair_index" in described:
        distances = described["pair_index"]["distances"]
        ends, distance = find_pairs(store.edge_index + shift, store.num_nodes, distances).coordinates()
        given |= {"pair_index": ends.numpy(), "pair_distance": distance.numpy()}
    assert given.keys() == described.keys()
    return given


def check(model, path, *stores):
    """The file gives what the classifier predicts."""
    model.export(path)
    assert b".py" not in path.read_bytes()  # nor where the source code is on this machine
    assert not has_races(onnx.load(path))
    session = ort.InferenceSession(path)
    about = json.loads(session.get_modelmeta().custom_metadata_map["sopool"])
    assert [one.name for one in session.get_inputs()] == list(about["inputs"])
    assert about["targets" if model.target_names_ else "classes"] == list(model.objective_.names)
    assert about["task"] == model.objective_.task
    for store in stores:
        *_, expected, spread = model.predict_with_uncertainty(store)
        found = session.run(list(about["outputs"]), inputs_for(store, about["inputs"]))
        shapes = [list(one["shape"]) for one in about["outputs"].values()]
        assert [one.ndim for one in found] == list(map(len, shapes))
        assert [str(one.dtype) for one in found] == [one["dtype"] for one in about["outputs"].values()]
        relative = 1e-5 if model.objective_.task == "regression" else 0
        np.testing.assert_allclose(found[0], expected, rtol=relative, atol=1e-5)
        np.testing.assert_allclose(found[1], spread, rtol=relative, atol=1e-5 * max(1, np.abs(spread).max()))
    return about


@pytest.mark.slow
def test_numbers(tmp_path):
    model = tiny_regressor().fit(with_targets(NUMBERS))
    about = check(model, tmp_path / "model.onnx", STORE, STORE[5:8], UNKNOWN)
    assert about["format"] == "sopool regressor 1"
    assert list(about["outputs"]) == ["predictions", "uncertainty"]
    assert about["targets"] == ["size", "noise"]


@pytest.mark.slow
def test_several_labels(tmp_path):
    model = tiny().fit(with_targets(FLAGS, ("a", "b")))
    about = check(model, tmp_path / "model.onnx", STORE, STORE[5:8])
    assert list(about["outputs"]) == ["probabilities", "uncertainty"]
    assert about["task"] == "multi-label"


@pytest.mark.slow
def test_calibrated_probabilities(tmp_path):
    for model, temperature in ((tiny().fit(NAMED), 3.0), (tiny().fit(with_targets(FLAGS)), 0.2)):
        plain = model.predict_proba(STORE)
        model.temperature_ = temperature
        assert np.abs(model.predict_proba(STORE) - plain).max() > 0.01
        check(model, tmp_path / "model.onnx", STORE)


UNKNOWN = replace(STORE, node_label_names=("0", 1, 7), edge_label_names=(2, 8, 9))[3:]
"""Graphs with labels that no training graph has."""


def test_predictions_and_metadata(tmp_path):
    model = tiny(gnn="gine").fit(NAMED)
    about = check(model, tmp_path / "model.onnx", STORE, STORE[5:8], STORE[5], UNKNOWN)
    assert about["classes"] == ["even", "odd"]
    assert about["networks"] == 2
    assert about["inputs"]["node_labels"]["values"] == [0, 1, 2]
    assert about["inputs"]["node_attributes"]["shape"] == ["nodes", "2"]
    assert about["encoder"] == model.encoder_.to_json()


def test_several_categories(tmp_path):
    rich = rich_store(graphs=40)
    plain = replace(rich, edge_weights=None, graph_attributes=None, graph_attribute_names=())
    with pytest.warns(UnusedWarning):
        model = tiny().fit(replace(plain, labels=None, classes=()), LABELS)
    first, *others = plain.node_category_columns
    unknown = first._replace(values=tuple(f"other {value}" for value in first.values))
    turned = replace(
        plain,
        node_categories=plain.node_categories.flip(1),
        node_category_columns=(*reversed(others), unknown),
    )
    about = check(model, tmp_path / "model.onnx", plain, plain[3:5], turned)
    columns = about["inputs"]["node_categories"]["columns"]
    assert [column["name"] for column in columns] == [first.name, *(column.name for column in others)]
    assert about["inputs"]["node_categories"]["shape"] == ["nodes", str(len(columns))]


@pytest.mark.slow
@pytest.mark.parametrize(
    "encoder",
    [
        ConstantEncoder(),
        DegreeEncoder(),
        DegreeEncoder(unknown=False),
        NodeLabelEncoder(unknown=False),
        AttributeEncoder(standardize=False),
        ConcatEncoder([DegreeEncoder(), AttributeEncoder(), NodeLabelEncoder()]),
    ],
    ids=repr,
)
def test_encoders(encoder, tmp_path):
    check(tiny(encoder=encoder, n_models=1).fit(STORE, LABELS), tmp_path / "model.onnx", STORE, STORE[5:8])


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"pool": "sum"},
        {"pool": "diffpool", "blocks": 2},
        {"pool": "sortpool"},
        {"pool": "topkpool", "blocks": 1, "block_readout": "sopool-pairs"},
    ],
    ids=str,
)
def test_poolings(settings, tmp_path):
    check(tiny(**settings).fit(STORE, LABELS), tmp_path / "model.onnx", STORE, STORE[5:8])


PAIRS = {
    "lists": ({"distances": 3, "rest": True, "normalize": "pairs"}, True),
    "edges": ({"distances": 1, "batch_norm": True}, False),
    "walks": ({"walks": True, "normalize": "norm"}, False),
}


@pytest.mark.parametrize(
    "form", ["lists", *(pytest.param(name, marks=pytest.mark.slow) for name in ("edges", "walks"))]
)
def test_pairs_of_nodes_are_inputs_unless_they_are_edges(form, tmp_path):
    options, listed = PAIRS[form]
    model = tiny(pool="sopool-pairs", pool_options=options | {"rank": 2}, n_models=1).fit(STORE, LABELS)
    about = check(model, tmp_path / "model.onnx", STORE, STORE[5:8])
    assert ("pair_index" in about["inputs"]) == ("pair_distance" in about["inputs"]) == listed
    if listed:
        assert about["inputs"]["pair_distance"]["distances"] == 3


@pytest.mark.parametrize(
    "used", [{"edge_categories": [2]}, {"edge_attributes": 1}, {"edge_weights": True}, {"graph_attributes": 1}]
)
def test_a_model_whose_inputs_an_onnx_file_lacks(used, tmp_path):
    model = tiny(epochs=1).fit(STORE, LABELS)
    model.ensemble_.model.config = replace(model.ensemble_.model.config, **used)
    with pytest.raises(SettingError, match="or with attributes of graphs cannot be exported"):
        model.export(tmp_path / "model.onnx")
    assert not any(tmp_path.iterdir())


def test_what_cannot_be_exported_says_so(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_text("earlier")
    model = tiny(pool="eigenpool", epochs=1).fit(STORE, LABELS)
    with pytest.raises(SettingError, match="a model with eigenpool cannot be exported: it divides each graph"):
        model.export(path)
    assert path.read_text() == "earlier"
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.parametrize("part", [RandomWalkEncoder(3), LaplacianEncoder(2)], ids=repr)
def test_encoders_of_structure_cannot_be_exported(part, tmp_path):
    model = tiny(encoder=ConcatEncoder([NodeLabelEncoder(), part]), epochs=1).fit(STORE, LABELS)
    with pytest.raises(
        SettingError, match=rf"^a model with {type(part).__name__}\(.*\) cannot be exported: its columns"
    ):
        model.export(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_failing_export_says_why(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no such operator\nand much more")

    model = tiny(epochs=1).fit(STORE, LABELS)
    monkeypatch.setattr(torch.onnx, "export", fail)
    with pytest.raises(SettingError, match=r"this model cannot be exported to ONNX: no such operator$"):
        model.export(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPackageError, match=r"needs ONNX, .*: pip install 'sopool\[export\]'"):
        tiny(epochs=1).fit(STORE, LABELS).export(tmp_path / "model.onnx")


def test_an_export_from_a_gpu_leaves_the_model_there():
    """The networks are exported from a copy: ``to`` of a PyTorch module would move those of the user."""
    model = tiny(epochs=1).fit(STORE, LABELS)
    elsewhere = model.ensemble_.to("meta")
    assert {one.device.type for one in elsewhere.model.parameters()} == {elsewhere.device.type} == {"meta"}
    assert {one.device.type for one in model.ensemble_.model.parameters()} == {"cpu"}
