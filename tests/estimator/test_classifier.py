import subprocess
import sys
import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

from sopool import GraphClassifier
from sopool.data import DataError, DegreeEncoder, Graph, make_agreement, pack, to_networkx, to_pyg
from sopool.data.graphs import concatenate
from sopool.data.splits import holdout
from sopool.estimator import FitProgress, UnseenWarning
from sopool.estimator.fitting import run_configs
from sopool.estimator.truth import known_graphs
from sopool.objectives.metrics import cross_entropy
from sopool.training.run_splits import run_seed
from tests.helpers.little_classifier import LABELS, STORE, tiny


def test_it_learns_what_sums_cannot():
    graphs = make_agreement(240, most_nodes=16)
    model = tiny(hidden=8, epochs=15, steps=10, batch_size=32).fit(graphs[:200])
    truth = np.array(graphs.classes)[graphs.labels[200:]]
    assert model.score(graphs[200:], truth) > 0.9
    assert model.predict(graphs[200:]).tolist() == model.classes_[model.predict_proba(graphs[200:]).argmax(1)].tolist()


def test_the_mapping_is_slow_unless_weights_decay():
    """On a slow mapping, which is a tenth of its parameter, a decay would weigh a hundred times as much."""
    assert tiny().fit(STORE).config_.pool_options["lr_scale"] == 0.1
    assert tiny(weight_decay=0.01).fit(STORE).config_.pool_options["lr_scale"] == 1
    asked = tiny(weight_decay=0.01, pool_options={"lr_scale": 0.1}).fit(STORE)
    assert asked.config_.pool_options["lr_scale"] == 0.1


def test_every_kind_of_graphs_gives_the_same():
    ring = [(i, (i + 1) % 5) for i in range(5)]
    edges = ring + [pair[::-1] for pair in ring]
    store = pack([Graph(5, edges, node_labels=[0, 1, i % 3, 0, 1]) for i in range(12)])
    y = [i % 3 == 0 for i in range(12)]
    kinds = [store, list(store), to_networkx(store), to_pyg(store)]
    first, *others = [tiny().fit(graphs, y).predict_proba(graphs) for graphs in kinds]
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-6)


def test_networkx_graphs_with_and_without_weights_go_together():
    plain = [nx.cycle_graph(4 + i % 3) for i in range(12)]
    weighted = [nx.Graph([(*pair, {"weight": 2.0}) for pair in graph.edges]) for graph in plain]
    model = tiny().fit(plain, [i % 3 == 0 for i in range(12)])
    assert (model.predict_proba(plain[:6] + weighted[6:]) == model.predict_proba(plain)).all()
    heavy = tiny().fit(weighted, [i % 3 == 0 for i in range(12)])
    assert heavy.config_.edge_weights
    with pytest.raises(DataError, match="have no weights, but those of the training graphs had"):
        heavy.predict(plain)


def test_molecules_are_given_as_smiles():
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCC", "CO", "CN", "C=C", "c1ccncc1", "CCOC"]
    model = tiny().fit(smiles, ["O" in text for text in smiles])
    assert model.predict(np.array(smiles)).dtype == bool
    with pytest.raises(DataError, match="molecule 1: "):
        model.predict(["CC", "C(("])


def test_labels_that_graphs_carry_are_taken_where_none_are_given():
    assert tiny().fit(STORE).classes_.tolist() == [0, 1]
    networks = to_networkx(STORE)
    for network, label in zip(networks, LABELS, strict=True):
        network.graph["label"] = str(label)
    assert tiny().fit(networks).classes_.tolist() == ["even", "odd"]
    data = to_pyg(STORE)
    for graph in data:
        graph.y = graph.y.bool()
    assert tiny().fit(data).classes_.tolist() == [False, True]
    del data[3].y
    with pytest.raises(DataError, match="graph 3 has no label"):
        tiny().fit(data)
    with pytest.raises(DataError, match="has no label"):
        tiny().fit([Graph(1)])


@pytest.mark.parametrize(
    "names",
    [("a", "b"), (3, 7), (True, False), (1.0, 2.0), (np.int8(1), np.int8(2)), ("x", 1)],
    ids=lambda names: type(names[0]).__name__ + type(names[1]).__name__,
)
def test_labels_come_back_as_they_were_given(names):
    y = [names[i % 2] for i in range(40)]
    found = tiny().fit(STORE, y).predict(STORE)
    assert set(found.tolist()) <= set(names)
    assert {type(label) for label in found.tolist()} <= {type(np.array(name).item()) for name in names}
    assert found.dtype == (object if names == ("x", 1) else np.array(y).dtype)


def test_the_same_seed_gives_the_same_bits():
    one, two, other = (tiny(random_state=seed).fit(STORE).predict_proba(STORE) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_a_model_of_an_ensemble_is_the_one_trained_alone():
    """Up to rounding, and what a few steps make of it: a matrix product may be made otherwise for three models."""
    alone, together = (tiny(n_models=models, epochs=2).fit(STORE) for models in (1, 3))
    scores = [model.ensemble_.scores(STORE, model.ensemble_.encode(STORE)) for model in (alone, together)]
    torch.testing.assert_close(scores[0][0], scores[1][0], rtol=1e-3, atol=1e-3)
    assert (scores[1][0] - scores[1][1]).abs().max() > 0.05


def test_probabilities_are_means_and_uncertainty_their_spread():
    model = tiny(n_models=3).fit(STORE, LABELS)
    each = model.ensemble_.scores(STORE, model.ensemble_.encode(STORE)).double().softmax(2).numpy()
    found = model.predict_with_uncertainty(STORE)
    np.testing.assert_allclose(found.probabilities, sum(each) / 3)
    chosen = found.probabilities.argmax(1)
    for i in range(40):
        assert found.labels[i] == model.classes_[chosen[i]]
        assert found.uncertainty[i] == pytest.approx(np.std([one[i, chosen[i]] for one in each]))
    assert np.isnan(tiny(n_models=1).fit(STORE).predict_with_uncertainty(STORE).uncertainty).all()


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_the_best_weights_on_held_out_graphs_are_kept(average):
    model = tiny(epochs=12, patience=4, average=average).fit(STORE, LABELS)
    codes = (LABELS == "odd").astype(int)
    scores = model.ensemble_.scores(STORE, model.ensemble_.encode(STORE)).numpy()
    for m, run in enumerate(runs(model, codes)):
        held = holdout(np.arange(40), codes, run.holdout, run_seed(run))[1]
        epoch = model.best_epochs_[m]
        accuracy, loss = (model.history_[f"validation_{what}"][m] for what in ("score", "loss"))
        trained = int(np.isfinite(loss).sum())
        ranks = list(zip(-accuracy[:trained], loss[:trained], strict=True))
        assert ranks.index(min(ranks)) == epoch
        assert trained == min(12, epoch + 5)
        assert (scores[m][held].argmax(1) == codes[held]).mean() == pytest.approx(accuracy[epoch], rel=1e-5)
        assert cross_entropy(scores[m][held], codes[held]) == pytest.approx(loss[epoch], rel=1e-5)


def runs(model, codes):
    known = known_graphs(STORE, model.classes_[codes], "classes")
    return run_configs(known, model, model.objective_, model.config_, model.encoder_)


def test_without_held_out_graphs_all_epochs_are_trained_and_the_last_is_kept():
    model = tiny(validation_fraction=0, patience=1).fit(STORE)
    assert model.best_epochs_ == [2, 2]
    assert np.isfinite(model.history_["loss"]).all()
    assert np.isnan(model.history_["validation_loss"]).all()


def test_a_class_that_counts_for_nothing_is_never_predicted():
    free = tiny(epochs=8, lr=0.02).fit(STORE, LABELS)
    weighted = tiny(epochs=8, lr=0.02, class_weight={"even": 1.0, "odd": 0.0}).fit(STORE, LABELS)
    assert (free.predict(STORE) == "odd").any()
    assert (weighted.predict(STORE) == "even").all()


def test_balanced_weights_count_all_classes_alike():
    y = np.array(["rare"] * 8 + ["common"] * 32)
    run = tiny(class_weight="balanced")
    model = run.fit(STORE, y)
    (weights,) = {one.class_weights for one in runs(model, (y == "rare").astype(int))}
    assert weights == pytest.approx((40 / 64, 40 / 16))


def test_what_was_not_seen_in_training_is_counted_and_predicted():
    model = tiny().fit(STORE)
    strange = pack([Graph(3, [(0, 1)], node_labels=[0, 77, 78], node_attributes=np.zeros((3, 2)))])
    with pytest.warns(UnseenWarning, match="2 of 3 nodes have a label, a category or a degree") as seen:
        found = model.predict_proba(strange)
    assert seen[0].filename == __file__
    assert np.isfinite(found).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(STORE[STORE.sizes > 0])
    by_degree = tiny(encoder=DegreeEncoder()).fit(STORE)
    star = pack([Graph(50, [(0, i) for i in range(1, 50)])])
    with pytest.warns(UnseenWarning, match="1 of 50 nodes"):
        by_degree.transform(star)


def test_graphs_without_nodes_get_a_prediction_and_a_warning():
    model = tiny().fit(STORE)
    (empty,) = STORE.empty
    with pytest.warns(UnseenWarning, match=f"1 of 40 graphs have no nodes, graph {empty} first: all of them") as seen:
        found = model.predict_proba(STORE)
    assert seen[0].filename == __file__
    none = pack([Graph(0, node_labels=[], node_attributes=np.zeros((0, 2)))])
    with pytest.warns(UnseenWarning, match="1 of 1 graphs have no nodes, graph 0 first"):
        np.testing.assert_allclose(model.predict_proba(none)[0], found[empty], rtol=1e-6)


def test_edge_labels_are_used_and_new_ones_counted(tmp_path):
    model = tiny(gnn="gine").fit(STORE)
    model.save(tmp_path / "m.sopool")
    for one in (model, GraphClassifier.load(tmp_path / "m.sopool", device="cpu")):
        assert one.edge_encoder_.values == [0, 1, 2]
        changed = replace(STORE, edge_labels=(STORE.edge_labels + 1) % 3)
        assert not np.allclose(one.predict_proba(changed), one.predict_proba(STORE))
        # The same labels under other numbers.
        renamed = replace(STORE, edge_labels=2 - STORE.edge_labels, edge_label_names=STORE.edge_label_names[::-1])
        np.testing.assert_array_equal(one.predict_proba(renamed), one.predict_proba(STORE))
        features = {"node_labels": [0, 1], "node_attributes": np.zeros((2, 2))}
        strange = pack([Graph(2, [(0, 1), (1, 0)], edge_labels=[2, 9], **features)])
        with pytest.warns(UnseenWarning, match="1 of 2 edges have a label or a category that no training graph has"):
            assert np.isfinite(one.predict_proba(strange)).all()
        with pytest.raises(DataError, match="have no labels, which the GNN gine needs"):
            one.predict(replace(STORE, edge_labels=None, edge_label_names=()))
        assert one.predict(pack([Graph(2, **features)])).shape == (1,)


@pytest.mark.parametrize(
    ("pool", "blocks"),
    [
        ("sum", 0),
        ("sopool-attn", 0),
        ("sopool-pairs", 0),
        ("sortpool", 0),
        ("eigenpool", 0),
        ("sum-avg", 0),
        ("sopool-m-attn", 2),
    ],
)
def test_poolings_give_embeddings(pool, blocks, monkeypatch, tmp_path):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path))
    model = tiny(pool=pool, blocks=blocks).fit(STORE)
    all_of_them = model.transform(STORE)
    assert len(all_of_them) == 40
    assert all_of_them.shape[1] % 2 == 0
    np.testing.assert_allclose(model.transform(STORE[3:6]), all_of_them[3:6], atol=1e-5)


def test_progress_is_told():
    seen = []
    tiny(callback=seen.append).fit(STORE)
    assert [one.epoch for one in seen] == [1, 2, 3]
    assert all(isinstance(one, FitProgress) and one.epochs == 3 and one.training == 2 for one in seen)
    assert all(np.isfinite(one).all() for one in seen)
    assert [one.finished for one in seen] == [0, 0, 2]


def test_progress_tells_who_stops_early():
    seen = []
    model = tiny(callback=seen.append, epochs=30, patience=2, n_models=3).fit(STORE)
    last = [min(30, epoch + 3) for epoch in model.best_epochs_]
    assert min(last) < 30
    assert [(one.training, one.finished) for one in seen] == [
        (sum(epoch >= now for epoch in last), last.count(now)) for now in range(1, max(last) + 1)
    ]


def test_few_graphs_hold_out_one_of_each_class():
    model = tiny(batch_size=2).fit(STORE[:6], ["a", "b", "c"] * 2)
    assert model.predict(STORE).shape == (40,)


def test_the_package_is_imported_without_torch():
    code = "import sys, sopool; assert 'torch' not in sys.modules and 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_stores_of_several_sources_are_one():
    twice = concatenate([STORE, STORE])
    model = tiny().fit(STORE)
    np.testing.assert_allclose(model.predict_proba(twice)[40:], model.predict_proba(STORE), atol=1e-6)


def test_it_knows_the_graphs_that_it_was_trained_on(tmp_path):
    model = tiny().fit(STORE, LABELS)
    model.save(tmp_path / "m.sopool")
    for one in (model, GraphClassifier.load(tmp_path / "m.sopool")):
        assert one.was_trained_on(STORE, LABELS)
        assert not one.was_trained_on(STORE, LABELS[::-1])
        assert not one.was_trained_on(STORE[1:], LABELS[1:])
        assert one.trained_on_["graphs"] == len(STORE)
    one.about_ = {}
    assert not one.was_trained_on(STORE, LABELS)
