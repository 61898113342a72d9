"""Where memory runs out, what is said helps: smaller models where they are at fault, smaller inputs where those are."""

import pytest
import torch

from sopool._runtime.out_of_memory import advise, oversized
from sopool.errors import ResourceError
from sopool.estimator.ensemble import Ensemble
from tests.cli.conftest import QUICK
from tests.helpers.little_classifier import STORE

VAST = "Unable to allocate 9.00 TiB for an array"


def out_of_memory(*_, **__):
    raise MemoryError(VAST)


def test_only_a_lack_of_memory_is_advised_about():
    for error in (MemoryError(VAST), torch.OutOfMemoryError("Tried to allocate 9.00 TiB"), MemoryError()):
        with pytest.raises(ResourceError, match=r"not enough memory to knit: (9.00 TiB|none).*\. Buy wool\.") as caught:
            raise_in(error)
        assert caught.value.__cause__ is error
    with pytest.raises(RuntimeError, match="a fault"):
        raise_in(RuntimeError("a fault"))


def raise_in(error):
    with advise("to knit", lambda: "Buy wool."):
        raise error


@pytest.mark.parametrize(
    ("sizes", "named"),
    [
        ([10, 12, 9, 11], ""),
        ([10, 12, 4000, 11], "Graph 2 has 4,000 nodes"),
        ([7], "Graph 0 has 7 nodes"),
        ([0, 0], ""),
    ],
)
def test_a_graph_that_fills_a_batch_by_itself_is_named(sizes, named):
    said = oversized(torch.tensor(sizes), 32)
    assert said.startswith(named)
    assert bool(said) == bool(named)


@pytest.mark.parametrize("command", [["inspect", "g.jsonl"], ["fit", "g.jsonl", "-o", "m.sopool", *QUICK]])
def test_a_source_that_is_too_large_to_read_is_at_fault_itself(command, call, graphs, monkeypatch):
    monkeypatch.setattr("sopool.data.sources.catalogue.load", out_of_memory)
    graphs.rename(graphs.with_name("g.jsonl"))
    shown = call(*command)
    assert shown.code == 2
    assert "there is not enough memory to read g.jsonl: " in shown.err
    assert "width" not in shown.err
    assert "--hidden" not in shown.err


def test_a_model_that_is_too_large_is_at_fault_where_the_graphs_are_not(call, monkeypatch):
    monkeypatch.setattr("sopool.estimator.base.fit_ensemble", out_of_memory)
    shown = call("fit", "MUTAG", "-o", "m.sopool", *QUICK, "--folds", "0")
    assert shown.code == 2
    assert "there is not enough memory to train: 9.00 TiB were asked for at once. Use a smaller --hidden" in shown.err


@pytest.fixture
def room_for_tiny_graphs(monkeypatch):
    """A model that is loaded is tried on two of them, of four nodes together."""
    scores = Ensemble.scores

    def limited(ensemble, store, *given):
        return scores(ensemble, store, *given) if store.num_nodes <= 4 else out_of_memory()

    monkeypatch.setattr(Ensemble, "scores", limited)


@pytest.mark.usefixtures("room_for_tiny_graphs")
def test_predict_names_the_largest_graph(call, model, graphs):
    shown = call("predict", model, graphs, "--device", "cpu")
    assert shown.code == 2
    assert "there is not enough memory to predict: " in shown.err
    assert "has 9 nodes: leave it out" in shown.err
    assert shown.out == ""


@pytest.mark.usefixtures("room_for_tiny_graphs")
def test_explain_names_the_graph(call, model, graphs):
    shown = call("explain", model, graphs, "-g", int(STORE.sizes.argmax()), "--device", "cpu")
    assert shown.code == 2
    assert "there is not enough memory to explain it: " in shown.err
    assert "nodes: explain a smaller one" in shown.err


def test_what_has_no_advice_of_its_own_blames_the_graphs(call, monkeypatch):
    monkeypatch.setattr("sopool.data.analysis.graph_statistics.graph_statistics", out_of_memory)
    shown = call("inspect", "MUTAG")
    assert shown.code == 2
    assert "Use fewer or smaller graphs." in shown.err
