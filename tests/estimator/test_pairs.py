"""Models with pairs of nodes: saved, loaded, and used in chunks and streams."""

import io
import json

import numpy as np
import pytest

from sopool import GraphClassifier, GraphRegressor
from sopool.data import Graph, pack, save_graphs
from sopool.data.sources.stream import stream_graphs
from sopool.estimator import ensemble
from sopool.estimator.streaming import Count, Writer, predict_stream
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.little_targets import NUMBERS, tiny_regressor, with_targets

FORMS = {
    "default": {},
    "rest": {"rest": True, "normalize": "pairs", "rank": 2, "distances": 2},
    "walks, normed": {"walks": True, "batch_norm": True, "normalize": "norm", "lr_scale": 0.1, "decay": 0.1},
}
every_form = pytest.mark.parametrize("form", FORMS)


def fitted(form, **changes):
    return tiny(pool="sopool-pairs", pool_options=FORMS[form], **changes).fit(STORE, LABELS)


@every_form
def test_a_saved_model_predicts_the_same(form, tmp_path):
    model = fitted(form)
    expected = model.predict_proba(STORE)
    model.save(tmp_path / "m.sopool")
    loaded = GraphClassifier.load(tmp_path / "m.sopool", device="cpu")
    assert loaded.config_ == model.config_
    np.testing.assert_array_equal(loaded.predict_proba(STORE), expected)


@every_form
def test_chunks_change_nothing(form, monkeypatch):
    """Pairs are found in each chunk; a graph does not depend on the others in it."""
    model = fitted(form)
    expected = model.predict_proba(STORE)
    monkeypatch.setitem(ensemble.TOGETHER, "cpu", 20)
    np.testing.assert_allclose(model.predict_proba(STORE), expected, atol=1e-6)
    alone = np.concatenate([model.predict_proba(STORE[graph]) for graph in range(len(STORE))])
    np.testing.assert_allclose(alone, expected, atol=1e-6)


def test_a_stream_gives_the_same(tmp_path):
    model = fitted("default")
    expected = model.predict_proba(STORE)
    save_graphs(STORE, tmp_path / "g.graphs")
    out = io.StringIO()
    chunks = stream_graphs(tmp_path / "g.graphs", model.ensemble_.fields)
    predict_stream(model, chunks, Count(), lambda *_: None, Writer(out, "jsonl", model).write)
    rows = list(map(json.loads, out.getvalue().splitlines()))
    found = np.array([list(row["probabilities"].values()) for row in rows])
    np.testing.assert_allclose(found, expected[[row["row"] for row in rows]], atol=1e-5)


def test_fitting_and_predicting_fill_no_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path))
    fitted("default").predict(STORE)
    assert not list(tmp_path.iterdir())


def test_numbers(tmp_path):
    graphs = with_targets(NUMBERS)
    model = tiny_regressor(pool="sopool-pairs", pool_options=FORMS["rest"]).fit(graphs)
    expected = model.predict(graphs)
    assert np.isfinite(expected).all()
    model.save(tmp_path / "m.sopool")
    np.testing.assert_array_equal(GraphRegressor.load(tmp_path / "m.sopool", device="cpu").predict(graphs), expected)


def test_graphs_without_edges_and_with_one_node():
    """Their only matrix that is not zero is that of each node with itself."""
    model = fitted("rest")
    features = {"node_labels": [0], "node_attributes": np.zeros((1, 2))}
    two = {name: np.repeat(value, 2, axis=0) for name, value in features.items()}
    graphs = pack([Graph(1, **features), Graph(2, **two), Graph(1, [(0, 0)], **features)])
    assert np.isfinite(model.predict_proba(graphs)).all()
    assert len(model.explain(graphs)) == 3
