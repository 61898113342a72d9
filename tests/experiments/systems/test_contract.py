"""What every registered system must hold to."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sopool.data import NodeLabelEncoder
from sopool.data.pack import Graph, pack
from sopool.experiments import Evaluator, Request
from sopool.experiments.executors.local import TableFacts, tables_for
from sopool.experiments.systems import SYSTEMS, FixedSystem, TrainedSystem, learners, run_control
from sopool.experiments.systems.views import outputs_of
from sopool.models import make_model
from sopool.objectives import objective_for, truth_of
from sopool.training.bank.bank import Bank
from sopool.training.bank.batching import GraphTables
from sopool.training.run_splits import Splitter
from sopool.training.runs.store import RunStore
from tests.helpers.quick_systems import quick

TRAINED = [name for name, system in SYSTEMS.items() if isinstance(system, TrainedSystem)]
FIXED = [name for name, system in SYSTEMS.items() if isinstance(system, FixedSystem)]
RESUMED = [
    pytest.param(name, marks=pytest.mark.slow) if name.startswith(("dgk", "awe", "statistics")) else name
    for name in FIXED
]
"""Of those that take long, make test-all checks the tests that evaluate them."""
BY_EIGENVECTORS = ("eigengcn",)
"""Networks whose scores depend on the order of nodes where eigenvalues are equal, as their tests say."""
EXACT = [name for name in FIXED if not SYSTEMS[name].chance]
TRAIN = np.arange(24)
WANTED = np.arange(24, 30)


def random_graph(number):
    """A small graph with two labels of nodes and of edges; some have loops, no edges or no nodes."""
    random = np.random.default_rng(number)
    nodes = 0 if number % 10 == 9 else int(random.integers(1, 9))
    pairs = [(i, j) for i in range(nodes) for j in range(i) if random.random() < (0.0 if number % 7 == 6 else 0.5)]
    edges = [pair for i, j in pairs for pair in ((i, j), (j, i))]
    kinds = [kind for kind in random.integers(0, 2, len(pairs)).tolist() for _ in range(2)]
    if nodes and number % 5 == 4:
        edges.append((0, 0))
        kinds.append(1)
    return Graph(nodes, edges, number % 2, random.integers(0, 2, nodes).tolist(), edge_labels=kinds)


def permuted(graph, seed=0):
    """The same graph with its nodes and edges in another order."""
    random = np.random.default_rng(seed)
    place = random.permutation(graph.num_nodes)  # where each node goes
    order = random.permutation(len(graph.edges))
    labels = [graph.node_labels[i] for i in np.argsort(place)]
    edges = [(int(place[a]), int(place[b])) for a, b in (graph.edges[i] for i in order)]
    kinds = [graph.edge_labels[i] for i in order]
    return Graph(graph.num_nodes, edges, graph.label, labels, edge_labels=kinds)


GRAPHS = [random_graph(number) for number in range(30)]
STORE = pack(GRAPHS, "toy")


def with_targets(task):
    random = np.random.default_rng(0)
    values = random.random((30, 2)) < 0.5 if task == "multi-label" else random.normal(size=(30, 2))
    values = np.where(random.random((30, 2)) < 0.2, np.nan, values)
    targets = torch.from_numpy(values.astype(np.float64))
    return replace(STORE, labels=None, classes=(), targets=targets, target_names=("a", "b"))


STORES = {"classification": STORE, "multi-label": with_targets("multi-label"), "regression": with_targets("regression")}


@pytest.fixture(params=FIXED)
def system(request, monkeypatch):
    """Each system with its first and last setting, two strengths and small samples, to be quick."""
    return smaller(request.param, monkeypatch)


@pytest.fixture(params=EXACT)
def exact(request, monkeypatch):
    """Each system that draws no random numbers."""
    return smaller(request.param, monkeypatch)


def smaller(name, monkeypatch):
    system = SYSTEMS[name]
    settings = tuple({str(one): one for one in (system.settings[0], system.settings[-1])}.values())
    system = replace(quick(system), settings=settings, path=system.path[:2])
    monkeypatch.setattr(learners, "TREES", 20)
    monkeypatch.setitem(SYSTEMS, name, system)
    why = system.refuses(STORE)
    if why is not None:
        assert isinstance(why, str)
        assert why.strip()
        pytest.skip(f"it refuses these graphs: {why}")
    return system


def outputs(system, store, train=TRAIN, wanted=WANTED):
    """The outputs for some graphs at all settings and strengths ``[settings, strengths, wanted, W]``."""
    objective = objective_for(store)
    truth = truth_of(store, objective.task).numpy()
    views = system.views(store, seed=3)
    return np.array([outputs_of(view, objective, train, truth[train], wanted, view.choices) for view in views])


@pytest.mark.parametrize("task", STORES)
def test_awkward_graphs_have_finite_outputs_that_are_the_same_again(system, task):
    """Graphs without nodes, without edges and with loops, for every task."""
    found = outputs(system, STORES[task])
    assert found.shape == (len(system.settings), len(system.path), len(WANTED), 2)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(outputs(system, STORES[task]), found)


def test_the_order_of_nodes_and_edges_makes_no_difference(exact):
    store = pack([permuted(graph) for graph in GRAPHS], "toy")
    np.testing.assert_allclose(outputs(exact, store), outputs(exact, STORE), rtol=1e-5, atol=1e-5)


def test_the_order_of_graphs_makes_no_difference(exact):
    order = np.random.default_rng(0).permutation(30)
    place = np.argsort(order)  # where each graph is now
    found = outputs(exact, STORE[order], place[TRAIN], place[WANTED])
    np.testing.assert_allclose(found, outputs(exact, STORE), rtol=1e-5, atol=1e-5)


def test_scores_do_not_depend_on_the_other_test_graphs(exact):
    if exact.transductive:
        pytest.skip("it is transductive")
    every = outputs(exact, STORE)
    fewer = np.concatenate([TRAIN, WANTED[:2]])
    found = outputs(exact, STORE[fewer], TRAIN, np.array([24, 25]))
    np.testing.assert_allclose(found, every[:, :, :2], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("system", RESUMED, indirect=True)
def test_shuffled_labels_are_not_predicted(system):
    """One that saw the labels of test graphs would be right."""
    graphs = [random_graph(100 + number) for number in range(120)]
    labels = np.random.default_rng(1).permutation(120) % 2
    store = replace(pack(graphs, "shuffled"), labels=torch.from_numpy(labels))
    assert run_control(system.name, store, folds=3).outcome.mean < 0.65


@pytest.mark.parametrize("system", RESUMED, indirect=True)
def test_interrupted_runs_are_resumed(system, tmp_path):
    """As if they had not been interrupted, and finished ones are not computed again."""
    request = Request([system.name], ["fair", "per-fold-max"], folds=3)
    whole = Evaluator(STORE, request, RunStore(tmp_path / "whole")).evaluate()
    evaluator = Evaluator(STORE, request, RunStore(tmp_path / "parts"))
    seen = []
    assert evaluator.evaluate(workers=1, report=seen.append, stop=lambda: len(seen) >= 2) is None
    before = {info.key: info.when for info in evaluator.runs.list() if info.is_complete}
    assert 0 < len(before) < evaluator.total_runs
    found = evaluator.evaluate()
    after = {info.key: info.when for info in evaluator.runs.list()}
    assert len(after) == evaluator.total_runs
    assert {key: after[key] for key in before} == before
    assert found[0].outcomes == whole[0].outcomes
    assert found[0].missing == {}


def scored(name, setting, store):
    """The scores of a network with initial weights, which have a seed ``[G, 2]``."""
    torch.manual_seed(0)
    config = replace(SYSTEMS[name].model_for(STORE), hidden=setting.hidden, system_options=dict(setting.options))
    model = make_model(config, 2, 2).eval()
    tables = GraphTables.for_prediction(store, NodeLabelEncoder(unknown=False).fit(STORE).transform(store))
    tables = tables.with_extras(store, SYSTEMS[name].extras, cached=False)
    with torch.no_grad():
        return model(*tables.batch(torch.arange(len(store)).unsqueeze(0))).numpy()


@pytest.mark.parametrize("name", TRAINED)
def test_networks_see_graphs_and_nothing_else(name):
    """Not the order of nodes or graphs, nor the others of the batch; and graphs without nodes or edges are fine."""
    if why := SYSTEMS[name].refuses(STORE):
        pytest.skip(f"it refuses these graphs: {why}")
    for setting in (SYSTEMS[name].settings[0], SYSTEMS[name].settings[-1]):
        found = scored(name, setting, STORE)
        assert found.shape == (30, 2)
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(scored(name, setting, STORE), found)
        order = np.random.default_rng(0).permutation(30)
        np.testing.assert_allclose(scored(name, setting, STORE[order]), found[order], rtol=1e-4, atol=1e-5)
        others = pack([permuted(graph) for graph in GRAPHS], "toy")
        if name not in BY_EIGENVECTORS:
            np.testing.assert_allclose(scored(name, setting, others), found, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(scored(name, setting, STORE[WANTED]), found[WANTED], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", TRAINED)
def test_a_bank_of_networks_gives_what_separate_runs_give(name, tmp_path):
    """With the optimizer and the options of its recipe, and learned penalties or dropout if it has any."""
    if why := SYSTEMS[name].refuses(STORE):
        pytest.skip(f"it refuses these graphs: {why}")
    request = Request([name], ["last-epoch"], folds=3)
    first = replace(Evaluator(STORE, request, RunStore(tmp_path)).first_runs()[0], precision="float64", steps=3)
    configs = [replace(first, seed=seed, lr=first.lr / (1 + seed)) for seed in range(3)]
    tables = tables_for(STORE, TableFacts.of(first), "cpu")
    splits = list(map(Splitter(STORE.labels.numpy()), configs))

    def trained(members):
        bank = Bank(tables, [configs[m] for m in members], [splits[m] for m in members])
        losses = np.stack([bank.run_epoch() for _ in range(2)])
        return losses, bank.scores([splits[m].test for m in members])

    losses, scores = trained(range(3))
    for m in range(3):
        loss, score = trained([m])
        np.testing.assert_allclose(losses[:, m], loss[:, 0], rtol=1e-7)
        np.testing.assert_allclose(scores[m], score[0], rtol=1e-7, atol=1e-9)


@pytest.fixture
def brief(request, monkeypatch):
    """A network with its first setting, trained for two short epochs."""
    system = SYSTEMS[request.param]
    if why := system.refuses(STORE):
        pytest.skip(f"it refuses these graphs: {why}")
    recipe = replace(system.recipe, epochs=2, steps=2)
    monkeypatch.setitem(SYSTEMS, request.param, replace(system, settings=system.settings[:1], recipe=recipe))
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize("brief", TRAINED, indirect=True)
def test_networks_are_trained_for_every_task_and_resumed(brief, tmp_path):
    """As if they had not been interrupted."""
    for task, store in STORES.items():
        request = Request([brief], ["fair", "per-fold-max"], folds=3)
        (whole,) = Evaluator(store, request, RunStore(tmp_path / task / "whole")).evaluate(workers=1)
        evaluator = Evaluator(store, request, RunStore(tmp_path / task / "parts"))
        seen = []
        assert evaluator.evaluate(workers=1, report=seen.append, stop=lambda seen=seen: len(seen) >= 2) is None
        (found,) = evaluator.evaluate(workers=1)
        assert found.missing == {}
        assert found.outcomes == whole.outcomes


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_networks_do_not_predict_shuffled_labels(name, monkeypatch, tmp_path):
    """One that saw the labels of test graphs would be right."""
    system = SYSTEMS[name]
    if why := system.refuses(STORE):
        pytest.skip(f"it refuses these graphs: {why}")
    recipe = replace(system.recipe, epochs=10, steps=8)
    monkeypatch.setitem(SYSTEMS, name, replace(system, settings=system.settings[:1], recipe=recipe))
    graphs = [random_graph(100 + number) for number in range(120)]
    labels = np.random.default_rng(1).permutation(120) % 2
    store = replace(pack(graphs, "shuffled"), labels=torch.from_numpy(labels))
    (found,) = Evaluator(store, Request([name], ["last-epoch"], folds=3), RunStore(tmp_path)).evaluate(workers=1)
    assert found.outcomes["last-epoch"].mean < 0.65
