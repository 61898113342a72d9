import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from sopool.data import ConcatEncoder, DegreeEncoder, LaplacianEncoder, RandomWalkEncoder
from sopool.errors import SettingError
from sopool.estimator import GraphClassifier, UnseenWarning
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.little_targets import FLAGS, NUMBERS, tiny_regressor, with_targets

FULL = [g for g in range(40) if STORE.sizes[g]]
EXACT = [
    ("sum", {}),
    ("mean", {}),
    ("sopool", {}),
    ("sopool-bimap", {"triangle": True, "moments": [1, 2]}),
    ("sopool-attn", {"bias": True}),
    ("sopool-m-attn", {"normalize": "size"}),
    ("covpool", {}),
    ("attnpool", {}),
    ("sopool-pairs", {"rank": 2, "distances": 3, "normalize": None, "rest": True}),
    ("sopool-pairs", {"walks": True, "normalize": "size", "layers": None}),
]


@pytest.mark.parametrize(("pool", "options"), EXACT, ids=str)
def test_shares_add_up_for_an_ensemble(pool, options):
    model = tiny(pool=pool, pool_options=options).fit(STORE, LABELS)
    scores = model.ensemble_.scores(STORE[FULL], model.ensemble_.encode(STORE[FULL])).mean(0).numpy()
    for graph, found in enumerate(model.explain(STORE[FULL])):
        assert found.exact
        assert found.each.shape == (2, int(STORE.sizes[FULL[graph]]), 2)
        np.testing.assert_allclose(found.contributions.sum(0) + found.bias, found.scores, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found.scores, scores[graph], rtol=1e-4, atol=1e-4)
        for number in range(2):
            margin = found.decompose(number)
            assert margin.total == pytest.approx(found.scores[number] - found.scores[1 - number])
            assert margin.bias + margin.nodes.sum() == pytest.approx(margin.total, abs=1e-10)
            assert abs(margin.rest) < 1e-10


@pytest.mark.parametrize("gnn", ["gin-0", "gine"])
def test_what_is_explained_is_what_is_predicted(gnn):
    model = tiny(n_models=3, gnn=gnn).fit(STORE, LABELS)
    found = model.explain(STORE[FULL])
    expected = model.predict_with_uncertainty(STORE[FULL])
    assert [one.prediction for one in found] == expected.labels.tolist()
    np.testing.assert_allclose([one.probabilities for one in found], expected.probabilities, atol=1e-5)
    np.testing.assert_allclose([one.uncertainty for one in found], expected.uncertainty, atol=1e-5)
    assert {one.decompose().spread.shape for one in found} == {(int(n),) for n in STORE.sizes[FULL]}


@pytest.mark.parametrize(("pool", "options"), EXACT, ids=str)
def test_shares_of_numbers_add_up_in_their_own_unit(pool, options):
    model = tiny_regressor(pool=pool, pool_options=options).fit(with_targets(NUMBERS))
    expected = model.predict_with_uncertainty(STORE[FULL])
    for graph, found in enumerate(model.explain(STORE[FULL])):
        assert found.exact
        np.testing.assert_allclose(found.contributions.sum(0) + found.bias, found.scores, rtol=1e-10)
        np.testing.assert_allclose(found.scores, found.predictions, rtol=1e-12)
        np.testing.assert_allclose(found.predictions, expected.values[graph], rtol=1e-5)
        np.testing.assert_allclose(found.uncertainty, expected.uncertainty[graph], rtol=1e-3, atol=1e-3)
        for number, name in enumerate(("size", "noise")):
            parts = found.of(name).decompose()
            assert parts.total == found.of(name).prediction == pytest.approx(expected.values[graph, number], rel=1e-5)
            assert parts.bias + parts.nodes.sum() == pytest.approx(parts.total, rel=1e-10)
            np.testing.assert_array_equal(parts.nodes, found.contributions[:, number])


@pytest.mark.parametrize("pool", ["sopool-bimap", "sum"])
def test_shares_of_labels_add_up_to_the_log_odds(pool):
    model = tiny(pool=pool, n_models=1).fit(STORE, FLAGS)
    shares = model.predict_proba(STORE[FULL])
    for graph, found in enumerate(model.explain(STORE[FULL])):
        assert found.exact
        parts = found.of("target 2").decompose()
        assert parts.bias + parts.nodes.sum() == pytest.approx(parts.total, abs=1e-10)
        assert parts.total == pytest.approx(np.log(shares[graph, 1] / (1 - shares[graph, 1])), abs=1e-4)
        assert found.of("target 2").prediction == int(shares[graph, 1] > 0.5)
        assert json.dumps(found.to_json(), allow_nan=False)


def test_pairs_of_features_add_up_to_their_part_of_a_number():
    """With few enough pairs of a pooling without a bias, all of them are listed."""
    graphs = replace(with_targets(NUMBERS), node_attributes=None)
    model = tiny_regressor(pool="sopool", layers=1, hidden=2, n_models=2).fit(graphs)
    for found in model.explain(graphs[FULL[:3]], top=10**4):
        for name, pairs in zip(found.targets, found.pairs, strict=True):
            parts = found.of(name).decompose()
            assert sum(pair.value for pair in pairs) == pytest.approx(parts.nodes.sum(), rel=1e-6, abs=1e-9)


def test_a_target_is_shown_by_its_name():
    found = tiny_regressor(epochs=1).fit(with_targets(NUMBERS)).explain(STORE[FULL[:1]])[0]
    assert found.target == "size"
    assert found.of("noise").to_json()["target"] == "noise"
    with pytest.raises(SettingError, match=r"there is no target 'sice'\. Did you mean 'size'"):
        found.of("sice")


def test_hierarchical_models_of_numbers_are_approximate():
    model = tiny_regressor(pool="sopool-m-attn", blocks=2).fit(with_targets(NUMBERS))
    for found in model.explain(STORE[FULL[:2]]):
        assert not found.exact
        parts = found.decompose()
        assert parts.rest == pytest.approx(parts.total - parts.bias - parts.nodes.sum())
        np.testing.assert_allclose(found.scores, found.predictions, rtol=1e-12)


def test_one_model_has_no_spread():
    found = tiny(n_models=1).fit(STORE, LABELS).explain(STORE[FULL[:1]])[0]
    assert found.decompose().spread is None
    assert found.to_json()["uncertainty"] is None


@pytest.mark.parametrize("wrong", [2, -1, "even", 1.0, True])
def test_a_margin_is_that_of_a_class(wrong):
    found = tiny().fit(STORE, LABELS).explain(STORE[FULL[:1]])[0]
    with pytest.raises(ValueError, match=f"number={wrong!r}: it must be a position in names, 0 to 1"):
        found.decompose(wrong)


@pytest.mark.parametrize(
    ("changes", "pooled"),
    [
        ({"pool": "max"}, 0),
        ({"pool": "sopool-bimap", "pool_options": {"normalize": "sqrt"}}, 0),
        ({"pool": "eigenpool"}, 0),
        ({"pool": "sopool-m-attn", "blocks": 2}, 2),
    ],
    ids=str,
)
def test_others_are_approximate_and_say_what_is_left_over(changes, pooled):
    model = tiny(**changes).fit(STORE, LABELS)
    for found in model.explain(STORE[FULL[:4]]):
        assert not found.exact
        margin = found.decompose()
        assert margin.rest == pytest.approx(margin.total - margin.bias - margin.nodes.sum())
        assert len(found.pooled) == pooled
        assert np.isfinite(found.contributions).all()


@pytest.mark.parametrize("regression", [False, True])
def test_pairs_of_nodes_have_their_parts_of_those_of_the_nodes(regression):
    """Without the sum and without W_0, nodes have one half of each of their pairs, and nothing else."""
    options = {"rank": 2, "distances": 9, "normalize": "size", "with_sum": False}
    if regression:
        model = tiny_regressor(pool="sopool-pairs", pool_options=options).fit(with_targets(NUMBERS))
    else:
        model = tiny(pool="sopool-pairs", pool_options=options).fit(STORE, LABELS)
    model.ensemble_.model.heads[0].weight.data[..., :4] = 0
    for found in model.explain(STORE[FULL[:6]]):
        assert found.exact
        every = found.strongest_pairs(0, top=10_000)
        halves = np.zeros(len(found.nodes))
        for pair in every:
            assert pair.first < pair.second
            assert pair.distance >= 1
            halves[[pair.first, pair.second]] += pair.value / 2
        np.testing.assert_allclose(halves, found.decompose(0).nodes, rtol=1e-9, atol=1e-12)
        sizes = [abs(pair.value) for pair in every]
        assert sizes == sorted(sizes, reverse=True)
        assert found.strongest_pairs(0) == every[:12]
        told = json.loads(json.dumps(found.to_json()))["node_pairs"]
        assert told[0] == [pair._asdict() for pair in every[:12]]
    assert tiny().fit(STORE, LABELS).explain(STORE[FULL[:1]])[0].strongest_pairs() == []


def test_explaining_fills_no_cache(monkeypatch, tmp_path):
    model = tiny(pool="sopool-pairs").fit(STORE, LABELS)
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path))
    model.explain(STORE[FULL[:1]])
    assert not list(tmp_path.iterdir())


def test_features_have_names_and_pairs_their_models():
    found = tiny(n_models=2).fit(STORE, LABELS).explain(STORE[FULL[:3]], top=40)
    names = {name for one in found for pairs in one.pairs for pair in pairs for name in (pair.first, pair.second)}
    assert any(name.startswith("label ") for name in names)
    assert any(name.startswith("layer 2, unit ") for name in names)
    assert any(name.startswith("attribute ") for name in names)
    assert {pair.model for pair in found[0].pairs[0]} == {0, 1}
    assert len(found[0].pairs[0]) == 40
    assert all(0 <= pair.node < len(one.nodes) for one in found for pair in one.pairs[0])


def test_encodings_of_structure_have_names():
    encoder = ConcatEncoder([RandomWalkEncoder(3), LaplacianEncoder(2)])
    found = tiny(encoder=encoder).fit(STORE, LABELS).explain(STORE[FULL[:3]], top=40)
    names = {name for one in found for pairs in one.pairs for pair in pairs for name in (pair.first, pair.second)}
    assert any(name.startswith("return after ") for name in names)
    assert any(name.startswith("heat after time ") for name in names)


def test_nodes_have_their_labels():
    model = tiny().fit(STORE, LABELS)
    graph = STORE[FULL[0]]
    assert model.explain(graph)[0].nodes == [str(graph.node_label_names[code]) for code in graph.node_labels]
    bare = replace(STORE, node_labels=None, node_label_names=(), node_attributes=None)
    assert set(tiny(encoder=DegreeEncoder()).fit(bare, LABELS).explain(bare[0])[0].nodes) == {""}


def test_all_of_it_is_json_and_the_same_after_loading(tmp_path):
    model = tiny(pool="sopool-m-attn").fit(STORE, LABELS)
    model.save(tmp_path / "m.sopool")
    texts = [
        json.dumps(one.explain(STORE[0])[0].to_json(), allow_nan=False)
        for one in (model, GraphClassifier.load(tmp_path / "m.sopool"))
    ]
    assert texts[0] == texts[1]
    plain = json.loads(texts[0])
    assert plain["prediction"] in ("even", "odd")
    assert np.shape(plain["pooled"][1]["contribution"]) == (8, int(STORE.sizes[0]))
    total = np.sum(plain["contributions"], axis=0) + plain["bias"]
    np.testing.assert_allclose(total, plain["scores"], atol=1e-10)


def test_explaining_leaves_the_classifier_as_it_was():
    model = tiny().fit(STORE, LABELS)
    before = model.predict_proba(STORE)
    model.explain(STORE[:3])
    assert (model.predict_proba(STORE) == before).all()


def test_it_must_be_fitted_and_tells_of_what_it_has_not_seen():
    with pytest.raises(NotFittedError):
        tiny().explain(STORE)
    strange = replace(STORE[FULL[:1]], node_label_names=("new", "names", "here"))
    with pytest.warns(UnseenWarning):
        tiny().fit(STORE, LABELS).explain(strange)


def test_the_number_of_pairs_is_a_whole_one():
    model = tiny().fit(STORE, LABELS)
    for top in (-1, 2.5, "all"):
        with pytest.raises(SettingError, match=f"top={top!r}: a whole number of at least 0 is needed"):
            model.explain(STORE[FULL[:1]], top)
    assert len(model.explain(STORE[FULL[:1]], np.int64(2))[0].pairs[0]) == 2
