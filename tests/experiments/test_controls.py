"""The controls: what each sees, on which graphs it is chosen and tested, and that results are kept."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.data import load, make_agreement, stratified_folds
from sopool.data.pack import Graph, pack
from sopool.errors import DataError, SettingError
from sopool.experiments import Evaluator, Request
from sopool.experiments.systems import CONTROLS, SYSTEMS, run_control
from sopool.experiments.systems import run as running
from sopool.experiments.systems.fixed.controls import histogram
from sopool.experiments.systems.path import learn_fold, split_of
from sopool.experiments.systems.views import Represented, view_of
from sopool.models.config import ModelConfig, Setting
from sopool.objectives import SingleLabel
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import RunConfig
from sopool.training.runs.store import RunStore
from tests.helpers.data_graphs import as_lists, stores


@pytest.fixture(scope="module")
def mutag():
    return load("MUTAG")


def path_graph(nodes, label, node_labels=None):
    edges = [pair for i in range(nodes - 1) for pair in ((i, i + 1), (i + 1, i))]
    return Graph(nodes, edges, label, node_labels)


def made(make, graphs=60):
    """Graphs of two classes in turn; ``make`` gives one of a class."""
    random = np.random.default_rng(0)
    return pack([make(number % 2, random) for number in range(graphs)], name="made")


def naive_colours(graph, rounds):
    """The colour of each node of one graph after each round, as nested tuples."""
    colours = [(label,) for label in graph["node_labels"] or [None] * graph["nodes"]]
    every = [list(colours)]
    for _ in range(rounds):
        ahead = [sorted((repr(colours[b]) for a, b in graph["edges"] if a == i)) for i in range(len(colours))]
        behind = [sorted((repr(colours[a]) for a, b in graph["edges"] if b == i)) for i in range(len(colours))]
        colours = [(colours[i], tuple(ahead[i]), tuple(behind[i])) for i in range(len(colours))]
        every.append(list(colours))
    return every


@given(stores(min_size=2), st.integers(0, 3))
def test_the_kernel_counts_common_subtrees(store, rounds):
    counts = [[Counter(some) for some in naive_colours(graph, rounds)] for graph in as_lists(store)]
    kernels = {}
    for view in SYSTEMS["wl"].views(store):
        every = np.arange(len(store))
        if view.setting["iterations"] <= rounds:
            inputs = view.graphs.inputs(view.learner, view.normalised, every, every)
            kernels[view.setting["iterations"], view.setting["normalised"]] = inputs.seen
    assert len(kernels) == 2 * (rounds + 1)
    for (iterations, normalised), found in kernels.items():
        for i, one in enumerate(counts):
            for j, other in enumerate(counts):
                want = common(one, other, iterations)
                if normalised and want:
                    want /= np.sqrt(common(one, one, iterations) * common(other, other, iterations))
                assert found[i, j] == pytest.approx(want, rel=1e-12)


def common(one, other, iterations):
    pairs = zip(one[: iterations + 1], other[: iterations + 1], strict=True)
    return float(sum(a[colour] * b[colour] for a, b in pairs for colour in a))


def test_the_splits_are_those_that_networks_choose_on(mutag, tmp_path):
    request = Request(["sum", "wl"], settings=[Setting(hidden=4), Setting(hidden=8)], folds=5, seed=3)
    runs = Evaluator(mutag, request, RunStore(tmp_path)).first_runs()
    splitter = Splitter(mutag.labels.numpy())
    networks = {config.fold: splitter(config) for config in runs if not config.path}
    systems = [config for config in runs if config.path]
    assert len(systems) == 12 * 5
    for config in systems:
        assert config.looks == "validation"
        for repeat in (0, 1):  # the final run learns from the graphs that its setting was chosen on
            mine = split_of(splitter, replace(config, repeat=repeat))
            for ours, theirs in zip(mine, networks[config.fold], strict=True):
                np.testing.assert_array_equal(ours, theirs)


class Spy:
    """A view that gives random scores and remembers what it was asked."""

    def __init__(self, choices, random):
        self.choices = [{"C": c} for c in choices]
        self.random = random
        self.asked = []

    def scores(self, train, labels, wanted, choices):
        self.asked.append((train, labels, wanted, list(choices)))
        return [self.random.normal(size=(len(wanted), 2)) for _ in choices]


def run_of(view, labels, **changes):
    """One fold of three, as ``view`` learns it."""
    path = tuple(choice["C"] for choice in view.choices)
    config = RunConfig("toy", "0", "", ModelConfig(pool="", system="spy"), 0, 3, epochs=len(path), path=path)
    config = replace(config, **changes)
    split = split_of(Splitter(labels), config)
    return split, learn_fold(view, config, split, SingleLabel((0, 1)), labels)


@pytest.mark.parametrize("looks", ["test", "validation", "chosen"])
def test_test_graphs_are_scored_by_a_model_that_did_not_see_them(looks):
    labels = np.arange(60) % 2
    view = Spy((1.0, 2.0, 3.0), np.random.default_rng(0))
    split, run = run_of(view, labels, looks=looks)
    (train, given, wanted, choices), *last = view.asked
    np.testing.assert_array_equal(train, split.train)
    np.testing.assert_array_equal(given, labels[train])
    np.testing.assert_array_equal(wanted[: len(train)], train)  # for the curve of the training score
    looked_at = split.test if looks == "test" else split.validation
    np.testing.assert_array_equal(wanted[len(train) :], looked_at)
    assert not set(train) & set(looked_at)
    assert choices == view.choices
    if looks != "chosen":
        assert last == []
        return
    ((train, given, wanted, choices),) = last
    np.testing.assert_array_equal(train, np.setdiff1d(np.arange(60), split.test))
    np.testing.assert_array_equal(given, labels[train])
    np.testing.assert_array_equal(wanted, split.test)
    assert choices == [view.choices[run.chosen_epoch]]


def test_the_best_on_held_out_graphs_is_chosen_by_loss_among_equals():
    """Of strengths that are always right the surest one, wherever it stands; one that is wrong never."""
    labels = np.arange(60) % 2

    class Sure(Spy):
        def scores(self, train, given_labels, wanted, choices):
            return [np.eye(2)[labels[wanted]] * choice["C"] for choice in choices]

    for order in ([-1.0, 2.0, 5.0], [5.0, 2.0, -1.0]):
        _, run = run_of(Sure(order, None), labels, looks="chosen")
        assert order[run.chosen_epoch] == 5.0
        np.testing.assert_array_equal(run.predictions["test_logits"].max(1), 5.0)


def test_majority_is_the_most_frequent_training_class(mutag):
    outcome = run_control("majority", mutag).outcome
    labels = mutag.labels.numpy()
    for (train, test), accuracy in zip(stratified_folds(labels), outcome.folds, strict=True):
        assert accuracy == pytest.approx((labels[test] == np.bincount(labels[train]).argmax()).mean())
    assert set(outcome.scores["balanced_accuracy"]) == {0.5}
    assert set(outcome.scores["roc_auc"]) == {0.5}


SEEN = {
    "size": lambda cls, random: path_graph(int(random.integers(3, 9)) + 6 * cls, cls, None),
    "histogram": lambda cls, random: path_graph(10, cls, random.permutation([cls] * 6 + [1 - cls] * 4).tolist()),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_control_finds_what_it_sees_and_nothing_else(name):
    store = made(SEEN[name])
    reached = {control: run_control(control, store, folds=5).outcome.mean for control in CONTROLS}
    assert reached[name] >= 0.95
    assert reached["wl"] >= 0.95  # it counts nodes and labels, too
    assert reached["majority"] == 0.5
    if name == "histogram":
        assert reached["size"] <= 0.6


def test_labels_that_say_nothing_are_none_for_the_histogram():
    """One for all nodes, as networks are given degrees then."""
    store = made(lambda cls, random: path_graph(int(random.integers(3, 9)), cls))
    labels = torch.zeros(store.num_nodes, dtype=torch.int32)
    views = [histogram(some) for some in (store, replace(store, node_labels=labels, node_label_names=(0,)))]
    np.testing.assert_array_equal(views[0].toarray(), views[1].toarray())
    assert views[0].shape[1] > 1


def test_without_labels_the_histogram_is_one_of_degrees():
    """Stars and paths of the same size."""

    def star_or_path(cls, random):
        nodes = int(random.integers(5, 12))
        if cls:
            return path_graph(nodes, cls)
        return Graph(nodes, [pair for i in range(1, nodes) for pair in ((0, i), (i, 0))], cls)

    store = made(star_or_path)
    reached = {control: run_control(control, store, folds=5).outcome.mean for control in CONTROLS}
    assert reached["histogram"] >= 0.95
    assert reached["wl"] >= 0.95
    assert reached["size"] <= 0.7


def test_only_the_kernel_sees_who_is_beside_whom():
    """Rings of 12 nodes of two kinds, in turn or in two halves: the same sizes, labels and degrees."""
    rings = [(0, 1) * 6, (0,) * 6 + (1,) * 6]
    edges = [pair for i in range(12) for pair in ((i, (i + 1) % 12), ((i + 1) % 12, i))]
    store = made(lambda cls, random: Graph(12, edges, cls, np.roll(rings[cls], random.integers(12)).tolist()))
    reached = {control: run_control(control, store, folds=5).outcome.mean for control in CONTROLS}
    assert reached == {"majority": 0.5, "size": 0.5, "histogram": 0.5, "wl": 1.0}
    assert all(setting["iterations"] >= 1 for setting in run_control("wl", store, folds=5).settings)


@pytest.mark.parametrize("name", CONTROLS)
def test_awkward_graphs(name):
    """Without nodes, without edges, with one node; three classes, of which one name has no graph."""
    graphs = [Graph(n % 4, [(0, 1), (1, 0)] if n % 4 > 1 else [], n % 3) for n in range(36)]
    store = replace(pack(graphs, name="awkward"), classes=(0, 1, 2, 3))
    result = run_control(name, store, folds=3)
    assert len(result.outcome.folds) == 3
    assert all(0 <= accuracy <= 1 for accuracy in result.outcome.folds)
    assert run_control(name, store, folds=3).outcome == result.outcome


def test_scaling_knows_the_training_graphs_only():
    """However large the features of other graphs are."""
    random = np.random.default_rng(0)
    matrix = random.normal(size=(40, 3))
    labels = np.arange(40) % 2
    train = np.arange(30)
    wanted = np.arange(30, 35)
    changed = matrix.copy()
    changed[35:] *= 1e6
    views = [view_of(Represented(some), "logistic") for some in (matrix, changed)]
    for choice in views[0].choices:
        one, other = (view.scores(train, labels[train], wanted, [choice])[0] for view in views)
        np.testing.assert_array_equal(one, other)


def test_mutag_is_where_others_found_it(mutag):
    """Published figures of the subtree kernel lie between 80 and 90."""
    result = run_control("wl", mutag)
    assert 0.80 <= result.outcome.mean <= 0.92
    assert {tuple(setting) for setting in result.settings} == {("iterations", "normalised", "C")}


def test_a_result_is_kept(mutag, tmp_path, monkeypatch):
    first = run_control("size", mutag, folds=3, runs_folder=tmp_path)
    (file,) = (tmp_path / "controls").iterdir()
    assert json.loads(file.read_text())["result"] == first.to_json()
    others = [run_control("size", mutag, 3, seed=1, runs_folder=tmp_path), run_control("size", mutag, 4, 0, tmp_path)]
    assert len(list((tmp_path / "controls").iterdir())) == 3
    assert others[0].outcome.folds != others[1].outcome.folds
    monkeypatch.setattr(running, "learn_together", None)
    assert run_control("size", mutag, folds=3, runs_folder=tmp_path) == first
    renamed = run_control("size", replace(mutag, name="mine"), folds=3, runs_folder=tmp_path)
    assert renamed == replace(first, dataset="mine")
    assert RunStore(tmp_path).list() == []


@pytest.mark.parametrize("damage", ["half", "digit", "other", "empty"])
def test_a_damaged_result_is_made_again(mutag, tmp_path, damage):
    first = run_control("majority", mutag, folds=3, runs_folder=tmp_path)
    (file,) = (tmp_path / "controls").iterdir()
    text = file.read_text()
    if damage == "other":
        run_control("majority", mutag, folds=4, runs_folder=tmp_path)
        (other,) = set(file.parent.iterdir()) - {file}
        file.write_text(other.read_text())
    else:
        changed = {"half": text[: len(text) // 2], "digit": text.replace("0.6", "0.7", 1), "empty": "{}"}[damage]
        assert changed != text
        file.write_text(changed)
    with pytest.warns(UserWarning, match="not a valid result"):
        again = run_control("majority", mutag, folds=3, runs_folder=tmp_path)
    assert again.outcome == first.outcome
    assert run_control("majority", mutag, folds=3, runs_folder=tmp_path) == again


def test_what_cannot_be(mutag, tmp_path):
    with pytest.raises(SettingError, match=r"no control 'histgram'\. Did you mean 'histogram'"):
        run_control("histgram", mutag)
    with pytest.raises(DataError, match="has neither labels nor targets"):
        run_control("size", replace(make_agreement(20), labels=None, classes=()))
    with pytest.raises(DataError, match="fewer graphs"):
        run_control("size", make_agreement(20), folds=15)
    (tmp_path / "controls").write_text("a file where a folder should be")
    with pytest.raises(DataError, match="cannot be"):
        run_control("majority", mutag, folds=3, runs_folder=tmp_path)


@pytest.mark.parametrize(
    ("labels", "folds", "message"),
    [
        (["toxic"] * 4, 2, "all are of class 'toxic'"),
        (["safe"] * 4 + ["toxic"], 2, "class 'toxic' has fewer graphs"),
        (["safe"] * 4 + ["toxic"] * 2, 2, "class 'toxic' has a single training graph.* Add graphs to the class"),
    ],
)
def test_classes_are_called_by_their_names(labels, folds, message, tmp_path):
    store = pack([path_graph(3, label) for label in labels], "mine")
    request = Request(["sum"], ["fair"], epochs=1, folds=folds, steps=1)
    with pytest.raises(DataError, match=message):
        run_control("size", store, folds)
    with pytest.raises(DataError, match=message):
        Evaluator(store, request, RunStore(tmp_path)).evaluate()
