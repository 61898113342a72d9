"""Estimators with the network of a system."""

import io
import json
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from torch_geometric.nn import BatchNorm, GCNConv, global_add_pool

from sopool import GraphClassifier
from sopool.data import DataError, Graph, pack, save_graphs
from sopool.data.extras import EdgeLabels, Extra, GraphRows, edge_kinds
from sopool.data.names import CategoryColumn
from sopool.data.sources.stream import stream_graphs
from sopool.errors import SettingError
from sopool.estimator import UnseenWarning, ensemble, load_model
from sopool.estimator.estimate import estimate, searched, system_grid
from sopool.estimator.explaining import seen_by_members
from sopool.estimator.fitting import training_of
from sopool.estimator.model_facts import model_facts
from sopool.estimator.streaming import Count, Writer, predict_stream
from sopool.experiments.systems import SYSTEMS, Recipe, TrainedSystem, trained
from sopool.models import member_of
from sopool.models.network import network_of
from sopool.models.presets import UnusedWarning, sort_size
from tests.estimator.test_checkpoints import InterruptionError, interrupt_after, same
from tests.helpers.forging import facts_of, forge
from tests.helpers.little_classifier import LABELS, NAMED, STORE
from tests.helpers.little_targets import FLAGS, NUMBERS, tiny_regressor, with_targets
from tests.helpers.training_graphs import rich_store

TRAINED = [name for name, system in SYSTEMS.items() if isinstance(system, TrainedSystem)]
RECIPE = Recipe(epochs=7, steps=2, batch_size=6, lr=0.03, halve_every=3, weight_decay=1e-3, average=0.5, patience=4)


class Own(torch.nn.Module):
    """Message passing, batch norm and dropout as in PyG's examples."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int, rate: float = 0.5, largest: int = 1):
        super().__init__()
        self.conv = GCNConv(in_channels, hidden)
        self.norm = BatchNorm(hidden)  # with a counter, which is no number
        self.drop = torch.nn.Dropout(rate)
        self.head = torch.nn.Linear(hidden, out_channels)
        self.register_buffer("largest", torch.tensor(largest))

    def forward(self, x, edge_index, batch):
        return self.head(self.drop(global_add_pool(self.norm(self.conv(x, edge_index)).relu(), batch)))


def register(**changes):
    grid = {"hidden": (4, 8), "rate": (0.0, 0.5)}
    given = {
        "sees": "neighbors",
        "recipe": RECIPE,
        "grid": grid,
        "fitted": {"largest": lambda train: int(train.sizes.max())},
    }
    trained("own", **given | changes)(Own)


@pytest.fixture(autouse=True)
def own():
    register()
    yield
    SYSTEMS.pop("own", None)


def small(system="own", **changes):
    return GraphClassifier(system=system, **{"n_models": 2, "random_state": 0, "device": "cpu"} | changes)


def quick(system, **changes):
    return small(system, **{"epochs": 1, "steps": 2, "batch_size": 8} | changes)


@pytest.mark.parametrize(
    ("system", "options", "wrong"),
    [
        ("dcnn", {"hops": 9}, "hops=9: it must be from 0 to 5"),
        ("dcnn", {"hops": -1}, "hops=-1: it must be from 0 to 5"),
        ("patchy-san", {"k": 20}, "k=20: it must be from 1 to 10"),
        ("patchy-san", {"nodes": 5}, "nodes=5: it must be at least 10"),
        ("gcaps-cnn", {"moments": 0}, "moments=0: it must be at least 1"),
        ("dgcnn", {"hidden": 4}, "dgcnn has no option hidden: give the width of its layers as hidden"),
    ],
)
def test_options_that_a_network_does_not_accept_are_refused_before_training(system, options, wrong):
    with pytest.raises(SettingError, match=wrong):
        quick(system, system_options=options).fit(STORE, LABELS)


@pytest.mark.parametrize("system", [*TRAINED, "own"])
def test_a_saved_model_predicts_the_same(system, tmp_path):
    model = quick(system).fit(STORE, LABELS)
    expected = model.predict_proba(STORE)
    assert np.isfinite(expected).all()
    model.save(tmp_path / "m.sopool")
    loaded = load_model(tmp_path / "m.sopool", device="cpu")
    assert (loaded.config_, loaded.get_params()) == (model.config_, model.get_params())
    np.testing.assert_array_equal(loaded.predict_proba(STORE), expected)
    assert loaded.about_ == model.about_


@pytest.mark.parametrize("system", [*TRAINED, "own"])
def test_a_prediction_does_not_depend_on_the_other_graphs(system, monkeypatch):
    model = quick(system).fit(STORE, LABELS)
    expected = model.predict_proba(STORE)
    alone = np.concatenate([model.predict_proba(STORE[graph]) for graph in range(10)])  # one has no nodes
    np.testing.assert_allclose(alone, expected[:10], atol=1e-5)
    monkeypatch.setitem(ensemble.TOGETHER, "cpu", 40)  # in many pieces, on every core
    np.testing.assert_allclose(model.predict_proba(STORE), expected, atol=1e-5)


def test_numbers_and_several_labels(tmp_path):
    graphs = with_targets(NUMBERS)
    settings = {"system": "own", "layers": 4, "hidden": None, "average": None}
    model = tiny_regressor(**settings).fit(graphs)
    model.save(tmp_path / "m.sopool")
    np.testing.assert_array_equal(
        load_model(tmp_path / "m.sopool", device="cpu").predict(graphs), model.predict(graphs)
    )
    model = quick("own").fit(STORE, FLAGS)
    assert model.predict_proba(STORE).shape == (40, 2)
    assert len(model.explain(STORE[:1])[0].to_json()["contributions"]) == STORE[0].num_nodes


def test_the_recipe_is_the_default_and_what_is_given_wins():
    found = training_of(small(), 40)
    own = {"epochs": 7, "steps": 2, "batch_size": 6, "lr": 0.03, "halve_every": 3, "weight_decay": 1e-3, "average": 0.5}
    assert found == found | own | {"patience": 4, "dropout": 0.0}
    given = {"epochs": 3, "steps": 9, "batch_size": 5, "lr": 0.2, "weight_decay": 0.0, "average": 0.0, "patience": None}
    assert training_of(small(**given), 40) == found | given
    register(recipe=replace(RECIPE, steps=None, patience=None))
    assert training_of(small(), 40)["steps"] == 7
    assert training_of(small(batch_size=7), 40)["steps"] == 6
    assert training_of(small(patience=2), 40)["patience"] == 2
    usual = training_of(GraphClassifier(), 40)
    assert usual == usual | {"epochs": 100, "batch_size": 32, "lr": 0.01, "average": 0.99, "dropout": 0.5}
    model = small(epochs=2).fit(STORE, LABELS)
    assert model.about_["training"] == training_of(small(epochs=2), 40)
    assert model.history_["loss"].shape == (2, 2)


def test_the_first_setting_and_what_follows_from_the_training_graphs():
    largest = int(STORE.sizes.max())
    config = quick("own").fit(STORE, LABELS).config_
    assert (config.hidden, config.system_options, config.pool_options) == (4, {"rate": 0.0}, {"largest": largest})
    model = quick("own", hidden=3, system_options={"rate": 0.2, "largest": 5}).fit(STORE, LABELS)
    assert (model.config_.hidden, model.config_.system_options) == (3, {"rate": 0.2, "largest": 5})
    assert model.ensemble_.model.network.largest.tolist() == [5, 5]
    assert quick("dgcnn").fit(STORE, LABELS).config_.pool_options == {"k": sort_size(STORE.sizes)}


def test_a_search():
    assert system_grid("own") == {"hidden": [4, 8], "system_options": [{"rate": 0.0}, {"rate": 0.5}]}
    assert system_grid("own", {"rate": 0.1}) == {"hidden": [4, 8]}
    assert system_grid("own", {"largest": 2})["system_options"] == [
        {"rate": 0.0, "largest": 2},
        {"rate": 0.5, "largest": 2},
    ]
    search = searched(quick("own", n_models=1), system_grid("own"))
    assert isinstance(search, GridSearchCV)
    best = search.fit(STORE, LABELS).best_estimator_
    assert best.config_.hidden in (4, 8)
    assert best.config_.system_options["rate"] in (0.0, 0.5)
    assert clone(best).get_params() == best.get_params()


def test_a_fit_continues_with_the_same_results(monkeypatch, tmp_path):
    monkeypatch.setattr("sopool.estimator.fitting.CHECKPOINT_SECONDS", -1.0)
    whole = small().fit(STORE, LABELS)
    with pytest.raises(InterruptionError):
        small(checkpoints=tmp_path, callback=interrupt_after(3)).fit(STORE, LABELS)
    seen = []
    same(whole, small(checkpoints=tmp_path, callback=seen.append).fit(STORE, LABELS))
    assert seen[0].resumed == 3


def test_an_estimate():
    found = estimate(quick("own"), NAMED, folds=2)
    assert 0 <= found.mean("accuracy") <= 1


def test_explanations_are_gradient_times_input():
    """In double precision, against differences; they do not claim to be exact."""
    model = quick("mlp", hidden=5).fit(STORE, LABELS)
    (explanation,) = model.explain(STORE[0])
    assert not explanation.exact
    assert not explanation.bias.any()
    features = model.ensemble_.encode(STORE[0])
    ((members,),) = [list(seen_by_members(model.ensemble_, STORE[0], features))]
    step = 1e-6
    for (member, batch), each in zip(members, explanation.each, strict=True):
        for node in range(STORE[0].num_nodes):
            ends = []
            for factor in (1 + step, 1 - step):
                x = batch.x.clone()
                x[node] *= factor
                ends.append(member(x, *batch[1:])[0])
            slope = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(each[node], slope.detach().numpy(), rtol=1e-6, atol=1e-8)
    scores = np.mean([member(*batch)[0].detach().numpy() for member, batch in members], axis=0)
    np.testing.assert_allclose(explanation.scores, scores, atol=1e-12)


def test_its_networks_are_modules_with_the_trained_weights():
    model = quick("own").fit(STORE, LABELS)
    network = member_of(model.ensemble_.model, 1).network.eval()
    assert isinstance(network, Own)
    graph = STORE[0]
    ((_, (_, seen)),) = seen_by_members(model.ensemble_, graph, model.ensemble_.encode(graph))
    x = seen.x.float()
    scores = network(x, graph.edge_index.long(), torch.zeros(len(x), dtype=torch.long))
    expected = model.ensemble_.scores(graph, model.ensemble_.encode(graph))[1]
    torch.testing.assert_close(scores, expected)


def test_what_it_says_of_itself():
    facts = model_facts(quick("own").fit(STORE, LABELS))
    assert facts["network"]["system"] == "own"
    assert facts["network"]["system_options"] == {"rate": 0.0, "largest": int(STORE.sizes.max())}
    assert facts["network"]["pool"] is facts["network"]["gnn"] is None
    assert facts["settings"]["lr"] == RECIPE.lr
    assert facts["settings"]["epochs"] == 1


def test_it_warns_of_what_its_network_does_not_use():
    graphs = replace(rich_store(graphs=40), labels=None, classes=())
    with pytest.warns(UnusedWarning, match="own does not use edge weights and edge categories and .*graph attributes"):
        quick("own").fit(graphs, LABELS)


class ByLabel(torch.nn.Module):
    """Sums of edges by their label, which an extra gives; labels that no training graph has are left out."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int, kinds: int):
        super().__init__()
        self.node = torch.nn.Linear(in_channels, hidden)
        self.each = torch.nn.Linear(kinds * hidden, out_channels)
        self.kinds = kinds

    def forward(self, x, edge_index, batch, labels, size):
        assert size.tolist() == torch.bincount(batch).tolist()
        known = labels < self.kinds
        place = batch[edge_index[1]] * self.kinds + labels
        h = self.node(x).tanh()
        found = h.new_zeros(len(size) * self.kinds, h.shape[1])
        found = found.index_add(0, place[known], h[edge_index[0][known]])
        return self.each(found.view(len(size), -1))


@dataclass(frozen=True)
class Sizes(Extra):
    """The number of nodes of each graph."""

    key = "1"

    def build(self, store, cached=True):
        assert not cached or not self.slow
        return GraphRows(store.sizes)


@dataclass(frozen=True)
class SumOfLabels(Extra):
    """The sum of the numbers of the node labels of each graph: what depends on how a store numbers them."""

    key = "1"

    def build(self, store, cached=True):
        assert store.node_categories is store.edge_categories is None
        graph = torch.repeat_interleave(store.sizes)
        return GraphRows(torch.zeros(len(store)).index_add(0, graph, store.node_labels.float()))


def with_labels(names):
    """The little graphs with other names of edge labels."""
    return pack(to_graphs(replace(STORE, edge_label_names=tuple(names))), name="little")


def to_graphs(store):
    return [
        Graph(
            graph.num_nodes,
            graph.edge_index.T.tolist(),
            None,
            graph.node_labels.tolist(),
            edge_labels=[graph.edge_label_names[code] for code in graph.edge_labels.tolist()],
        )
        for graph in (store[number] for number in range(len(store)))
    ]


@pytest.fixture
def by_label():
    extras = {"labels": EdgeLabels(), "size": Sizes()}
    trained("by-label", sees="edge labels", recipe=RECIPE, fitted={"kinds": edge_kinds}, extras=extras)(ByLabel)
    yield small("by-label").fit(with_labels("abc"), LABELS)
    del SYSTEMS["by-label"]


def test_extras_of_new_graphs(by_label, tmp_path, monkeypatch):
    """Labels of edges are known by their names; files may number them differently."""
    graphs = with_labels("abc")
    expected = by_label.predict_proba(graphs)
    assert by_label.config_.pool_options == {"kinds": 3}
    by_label.save(tmp_path / "m.sopool")
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path / "cache"))
    loaded = load_model(tmp_path / "m.sopool", device="cpu")
    order = np.random.default_rng(0).permutation(40)
    other = pack([to_graphs(graphs)[number] for number in order])
    assert other.edge_label_names != graphs.edge_label_names or not torch.equal(
        other[0].edge_labels, graphs[0].edge_labels
    )
    np.testing.assert_allclose(loaded.predict_proba(other), expected[order], atol=1e-6)
    monkeypatch.setitem(ensemble.TOGETHER, "cpu", 20)
    np.testing.assert_allclose(loaded.predict_proba(graphs), expected, atol=1e-6)
    with pytest.warns(UnseenWarning, match="edges have a label"):
        unlike = loaded.predict_proba(with_labels("xbc"))
    assert not np.allclose(unlike, expected, atol=1e-3)
    for one, chances in zip(loaded.explain(graphs[:3]), expected, strict=False):
        np.testing.assert_allclose(one.probabilities, chances, atol=1e-5)
    assert not (tmp_path / "cache").exists()


class Summed(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int, hidden: int):
        super().__init__()
        self.head = torch.nn.Linear(1, out_channels)

    def forward(self, x, edge_index, batch, total):
        return self.head(total.to(x.dtype).unsqueeze(1))


def test_extras_get_node_labels_with_the_numbers_of_training():
    """Where a new store has others, the result is the same; what a model does not encode is left out."""
    try:
        trained("summed", sees="labels", recipe=RECIPE, extras={"total": SumOfLabels()})(Summed)
        first = with_labels("abc")
        model = small("summed").fit(first, LABELS)
        expected = model.predict_proba(first)
        turned = replace(first, node_labels=2 - first.node_labels, node_label_names=first.node_label_names[::-1])
        np.testing.assert_array_equal(model.predict_proba(turned), expected)
        categories = (CategoryColumn("more", ("x",)),)
        more = torch.zeros(first.num_nodes, 1, dtype=torch.uint8)
        more = replace(first, node_categories=more, node_category_columns=categories)
        np.testing.assert_array_equal(model.predict_proba(more), expected)
        assert len(np.unique(expected)) > 10
    finally:
        del SYSTEMS["summed"]


def test_graphs_without_the_labels_that_extras_read(by_label):
    with pytest.raises(DataError, match="the graphs have no edge_labels, which the model needs"):
        by_label.predict(replace(with_labels("abc"), edge_labels=None, edge_label_names=()))


def test_labels_that_no_training_graph_had_are_not_read(by_label):
    plain = replace(with_labels("abc"), edge_labels=None, edge_label_names=())
    model = clone(by_label).fit(plain, LABELS)
    np.testing.assert_array_equal(model.predict_proba(with_labels("abc")), model.predict_proba(plain))


REFUSED = {
    "unknown": ({"system": "onw"}, "there is no trained system 'onw'.* Did you mean 'own'"),
    "fixed": ({"system": "wl"}, "no trained system 'wl'.*sopool evaluate --system"),
    "pool": ({"pool": "sum"}, "pool='sum' is for networks with a pooling, but system='own'"),
    "layers": ({"layers": 2}, "layers=2 is for networks with a pooling"),
    "dropout": ({"dropout": 0.1}, r"dropout=0\.1 is for networks with a pooling"),
    "no such option": ({"system_options": {"depth": 2}}, "own cannot be made with .*depth=2: .*unexpected keyword"),
    "another type": ({"system_options": {"rate": "much"}}, "own cannot be made with rate=much: rate must be a number"),
    "a list": ({"system_options": {"rate": [1]}}, r"own cannot be made with rate=\[1\]: give a number, a text or"),
    "an impossible value": (
        {"system_options": {"rate": 2.0}},
        r"own cannot be made with rate=2.0: dropout probability",
    ),
    "a dictionary is needed": ({"system_options": 2}, "system_options=2: a dictionary of options by name is needed"),
    "options without a system": (
        {"system": None, "system_options": {"k": 2}},
        "system is None, so there is no system that has",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be(case):
    given, said = REFUSED[case]
    with pytest.raises(SettingError, match=said):
        quick(**{"system": "own"} | given).fit(STORE, LABELS)


def test_what_a_network_of_a_system_cannot_do(tmp_path):
    model = quick("own").fit(STORE, LABELS)
    with pytest.raises(SettingError, match=r"system='own' has no pooled vectors: use predict_proba"):
        model.transform(STORE)
    pytest.importorskip("onnxscript")
    with pytest.raises(SettingError, match=r"system='own' cannot be exported"):
        model.export(tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def too_large(store):
    return "has more than 8 nodes." if store.sizes.max() > 8 else None


def test_graphs_that_a_system_refuses(tmp_path):
    """Some alone: a stream leaves them out. All together: nothing is predicted."""
    model = quick("own").fit(STORE, LABELS)
    expected = model.predict(STORE)
    large = np.flatnonzero(STORE.sizes.numpy() > 8)
    assert 0 < len(large) < 40
    register(refuses=too_large)
    said = f"own cannot be used for {len(large)} of the graphs of little, graph {large[0]} first: has more than 8 nodes"
    with pytest.raises(DataError, match=said):
        model.predict(STORE)
    with pytest.raises(DataError, match=said):
        quick("own").fit(STORE, LABELS)
    save_graphs(STORE, tmp_path / "g.graphs")
    bad = []
    out = io.StringIO()
    chunks = stream_graphs(tmp_path / "g.graphs", model.ensemble_.fields)
    predict_stream(model, chunks, Count(), lambda _, row: bad.append(row), Writer(out, "jsonl", model).write)
    assert [row.row for row in bad if row.reason.startswith("has more than 8")] == large.tolist()
    found = {row["row"]: row["prediction"] for row in map(json.loads, out.getvalue().splitlines())}
    small_ones = np.flatnonzero((STORE.sizes.numpy() <= 8) & (STORE.sizes.numpy() > 0))
    assert found == {int(row): expected[row] for row in small_ones}
    register(refuses=lambda store: "needs something else" if len(store) > 1 else None)
    with pytest.raises(DataError, match="own cannot be used for little: needs something else"):
        model.predict(STORE)


def test_a_model_whose_system_is_not_registered_or_has_changed(tmp_path):
    path = tmp_path / "m.sopool"
    quick("own").fit(STORE, LABELS).save(path)
    register(version=2)
    with pytest.warns(UserWarning, match="The system 'own' has version .*fit the model again"):
        load_model(path)
    del SYSTEMS["own"]
    with pytest.raises(DataError, match=r"m\.sopool: .*no trained system 'own'.*import the module that registers it"):
        load_model(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick("dgcnn").fit(STORE, LABELS).save(path)
        load_model(path)


def test_a_forged_file(tmp_path):
    path = tmp_path / "m.sopool"
    quick("mlp").fit(STORE, LABELS).save(path)
    content = path.read_bytes()
    facts = facts_of(content)
    for changes, said in (
        ({"system": "wl"}, "no trained system 'wl'"),
        ({"system_options": {"depth": 2}}, "mlp cannot be made with"),
        ({"system_options": {"depth": 10**9}}, "the system's depth is 1000000000"),
        ({"hidden": 9}, "the array model.network.node.weight is"),
    ):
        path.write_bytes(forge(content, facts=json.dumps(facts | {"config": facts["config"] | changes})))
        with pytest.raises(DataError, match=said):
            load_model(path)


def test_networks_by_name():
    assert network_of("dgcnn") is SYSTEMS["dgcnn"]
    with pytest.raises(SettingError, match=r"Known: .*dgcnn"):
        network_of("nothing")
