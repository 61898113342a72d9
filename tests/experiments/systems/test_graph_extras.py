"""What networks need of graphs besides their edges: taken for each batch, and part of the keys of runs."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from sopool.data import AttributeEncoder
from sopool.data.extras import EdgeLabels, Extra, GraphRows, NodeRows, edge_kinds, kept_arrays
from sopool.data.pack import Graph, pack
from sopool.experiments import Evaluator, Request
from sopool.experiments.executors.local import TableFacts
from sopool.experiments.systems import SYSTEMS, Recipe, trained
from sopool.models import extras_for, make_model, stack
from sopool.training.bank.batching import GraphTables
from sopool.training.runs.store import RunStore


def some_graph(number):
    """Some have no nodes, no edges, loops and repeated edges; the label of an edge follows from its ends."""
    random = np.random.default_rng(number)
    nodes = [3, 0, 5, 1, 4, 6, 0][number % 7]
    edges = [(a, b) for a in range(nodes) for b in range(nodes) if random.random() < 0.4 * (number % 3 > 0)]
    edges += edges[:2]
    order = random.permutation(len(edges))
    edges = [edges[i] for i in order]
    return Graph(nodes, edges, number % 2, edge_labels=[(a + 2 * b) % 4 for a, b in edges], node_attributes=rows(nodes))


def rows(nodes):
    return [[float(i), 1.0] for i in range(nodes)]


STORE = pack([some_graph(number) for number in range(20)], "extras")
COLUMNS = replace(STORE, edge_labels=None, edge_label_names=(), edge_attributes=torch.eye(4)[STORE.edge_labels.long()])


@dataclass(frozen=True)
class Places(Extra):
    """The position of each node in its graph, to a power."""

    power: int

    @property
    def key(self):
        return f"{self.power}"

    def build(self, store, cached=True):
        places = torch.cat([torch.arange(int(n)) for n in store.sizes])
        return NodeRows((places**self.power).float())


@dataclass(frozen=True)
class Sizes(Extra):
    """The number of nodes of each graph, from the cache."""

    key = "1"

    def build(self, store, cached=True):
        def check(arrays):
            if arrays["sizes"].shape != (len(store),):
                raise ValueError("sizes has a wrong shape.")

        return GraphRows(kept_arrays(store, self.key, "sizes", lambda: {"sizes": store.sizes}, check)["sizes"])


class Checked(torch.nn.Module):
    """A network that fails if an extra is not that of its graphs."""

    def __init__(self, in_channels, out_channels, hidden):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(out_channels))

    def forward(self, x, edge_index, batch, places, sizes, labels):
        assert torch.equal(sizes, batch.bincount())
        assert torch.equal(places, x[:, 0] ** 2)
        source, target = x[edge_index, 0].long()
        assert torch.equal(labels, (source + 2 * target) % 4)
        score = sizes + torch.zeros_like(sizes).index_add(0, batch[edge_index[1]], labels)
        return score.unsqueeze(1) * self.weight


EXTRAS = {"places": Places(2), "sizes": Sizes(), "labels": EdgeLabels()}


@pytest.fixture(autouse=True)
def checked(tmp_path, monkeypatch):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path / "cache"))
    recipe = Recipe(epochs=2, steps=2, batch_size=8)
    trained("checked", sees="what it is given", recipe=recipe, extras=EXTRAS)(Checked)
    yield SYSTEMS["checked"]
    del SYSTEMS["checked"]


def tables_of(store):
    features = AttributeEncoder(standardize=False).fit(store).transform(store)
    return GraphTables.build(store, features).with_extras(store, extras_for(SYSTEMS["checked"].model), cached=False)


@pytest.mark.parametrize("store", [STORE, COLUMNS], ids=["labels", "one-hot attributes"])
def test_each_network_of_a_stack_gets_those_of_its_graphs(store):
    """In batches of any graphs, in any order, and repeated ones."""
    models = [make_model(SYSTEMS["checked"].model, 2, 2) for _ in range(3)]
    graphs = torch.from_numpy(np.random.default_rng(0).integers(0, len(store), (3, 9)))
    found = stack(models)(*tables_of(store).batch(graphs)).view(3, 9, 2)
    for model, own, scores in zip(models, graphs, found, strict=True):
        for graph, score in zip(own.tolist(), scores, strict=True):
            ends = store[graph]
            labels = ((ends.edge_index[0] + 2 * ends.edge_index[1]) % 4).sum()
            want = (ends.num_nodes + labels) * model.network.weight
            torch.testing.assert_close(score, want if ends.num_nodes else torch.zeros(2))


def test_runs_have_them_and_their_keys(tmp_path):
    """Computed once for all runs, and kept."""
    trained("checked", sees="", recipe=Recipe(epochs=1, steps=1), extras=EXTRAS)(Lenient)
    request = Request(["checked"], ["last-epoch"], folds=3)
    (found,) = Evaluator(STORE, request, RunStore(tmp_path)).evaluate(workers=1)
    assert len(list((tmp_path / "cache").glob("*.sizes"))) == 1
    config = found.runs["test"][0].config
    assert config.model.system_version.endswith(" places=2 sizes=1 labels=1")
    assert TableFacts.of(config).extras == tuple(EXTRAS.items())
    before = Evaluator(STORE, request, RunStore(tmp_path)).first_runs()
    assert [run.key for run in before] == [run.config.key for run in found.runs["test"]]
    trained("checked", sees="", recipe=Recipe(epochs=1, steps=1), extras=EXTRAS | {"places": Places(3)})(Lenient)
    after = Evaluator(STORE, request, RunStore(tmp_path)).first_runs()
    assert not {run.key for run in after} & {run.key for run in before}


class Lenient(Checked):
    """The same, whatever the features."""

    def forward(self, x, edge_index, batch, places, sizes, labels):
        assert len(places) == len(x)
        assert labels.shape == edge_index.shape[1:]
        return sizes.unsqueeze(1) * self.weight


def test_graphs_without_them_are_refused():
    model = make_model(SYSTEMS["checked"].model, 2, 2)
    features = AttributeEncoder().fit(STORE).transform(STORE)
    with pytest.raises(ValueError, match="checked needs places and sizes and labels of the graphs"):
        model(*GraphTables.build(STORE, features).batch(torch.tensor([[0, 2]])))


def test_the_number_of_labels():
    assert edge_kinds(STORE) == edge_kinds(COLUMNS) == 4
    assert edge_kinds(pack([Graph(2, [])])) == 1
    assert edge_kinds(pack([Graph(2, [(0, 1)])])) == 1
