"""Trained systems: any network of PyG, trained as those of poolings are."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.nn import BatchNorm, GCNConv, global_add_pool

from sopool.data import load, make_agreement
from sopool.data.pack import Graph, pack
from sopool.errors import SettingError
from sopool.experiments import Evaluator, Request
from sopool.experiments.executors.local import train_all
from sopool.experiments.systems import SYSTEMS, Recipe, trained
from sopool.models import ModelConfig, make_model, prepare_for_inference, stack
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.training.runs.store import RunStore
from tests.helpers.goals import STORES


class Tiny(torch.nn.Module):
    """Message passing, batch norm and dropout as in PyG's examples."""

    def __init__(self, in_channels, out_channels, hidden, rate=0.5):
        super().__init__()
        self.conv = GCNConv(in_channels, hidden)
        self.norm = BatchNorm(hidden)
        self.drop = torch.nn.Dropout(rate)
        self.head = torch.nn.Linear(hidden, out_channels)

    def forward(self, x, edge_index, batch):
        return self.head(self.drop(global_add_pool(self.norm(self.conv(x, edge_index)).relu(), batch)))


@pytest.fixture(autouse=True)
def tiny():
    trained("tiny", sees="neighbors", recipe=Recipe(epochs=3, steps=2, batch_size=8), grid={"hidden": (4, 8)})(Tiny)
    yield SYSTEMS["tiny"]
    del SYSTEMS["tiny"]


def evaluator(folder, store=None, *pools, **changes):
    request = Request(pools or ["tiny"], **{"protocols": ["fair", "per-fold-max"], "folds": 3} | changes)
    return Evaluator(make_agreement(60) if store is None else store, request, RunStore(folder))


def made(**options):
    torch.manual_seed(options.pop("seed", 0))
    return make_model(ModelConfig(pool="", system="tiny", hidden=4, system_options=options), 3, 2)


def test_a_copy_for_inference_gives_the_same_scores():
    x = torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    neighbors = neighbors_of(torch.tensor([[0, 1], [1, 0]]), 3)
    for model, ptr in ((made(), [0, 3]), (stack([made(), made(seed=1)]), [0, 2, 3])):
        graphs = torch.tensor(ptr)
        expected = model.eval()(x, neighbors, graphs)
        prepared = prepare_for_inference(model)
        assert torch.equal(prepared(x, neighbors, graphs), expected)
        moved = prepared.double()(x.double(), neighbors, graphs)
        assert moved.dtype == torch.float64
        torch.testing.assert_close(moved.float(), expected)


def test_a_stack_gives_what_networks_give_alone():
    """On graphs without nodes, without edges and with loops."""
    random = np.random.default_rng(0)
    sizes = [3, 0, 1, 4, 2, 5, 1, 0]
    ptr = torch.tensor(np.cumsum([0, *sizes]))
    first = np.repeat(ptr[:-1].numpy(), np.square(sizes))
    pairs = [(a, b) for n in sizes for a in range(n) for b in range(n)]
    kept = random.random(len(pairs)) < 0.6
    edges = torch.from_numpy((np.array(pairs) + first[:, None])[kept].T.copy())
    assert (edges[0] == edges[1]).any()
    x = torch.randn(int(ptr[-1]), 3)
    models = [made(seed=seed).eval() for seed in range(2)]
    together = stack(models).eval()
    assert together.models == 2
    found = together(x, neighbors_of(edges, len(x)), ptr)
    owner = torch.repeat_interleave(ptr.diff())
    for model, graphs in enumerate((range(4), range(4, 8))):
        inside = (owner >= graphs[0]) & (owner <= graphs[-1])
        own = edges[:, inside[edges[0]]] - ptr[graphs[0]]
        want = models[model].network(x[inside], own, owner[inside] - graphs[0])
        for place, graph in enumerate(graphs):
            expected = want[place] if sizes[graph] else torch.zeros(2)
            torch.testing.assert_close(found[graph], expected)


def test_runs_depend_on_nothing_but_their_seeds(tmp_path):
    """On no other run of the bank, and on no other user of PyTorch's random numbers; these are left alone."""
    together = evaluator(tmp_path / "together")
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    (found,) = together.evaluate(workers=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert found.missing == {}
    assert found.outcomes["fair"].repeats == 3
    assert {setting.hidden for setting in found.outcomes["fair"].setting} <= {4, 8}
    torch.manual_seed(1)
    alone = RunStore(tmp_path / "alone")
    for run in found.runs["test"][::2]:
        train_all(together.store, alone, [run.config], workers=1)
        other = alone.load(run.config)
        for name in ("step_loss", "train_loss", "test_loss"):
            np.testing.assert_allclose(other.curves[name], run.curves[name], rtol=1e-6)


def test_dropout_is_drawn_anew_in_each_step(tmp_path):
    losses = {}
    for rate in (0.0, 0.9):
        trained("tiny", sees="", recipe=Recipe(epochs=2, steps=1, lr=1e-12), grid={"rate": (rate,)})(Tiny)
        (found,) = evaluator(tmp_path, None, protocols=["last-epoch"]).evaluate()
        assert found.outcomes["last-epoch"].setting.to_json()["rate"] == rate
        losses[rate] = np.array([run.curves["step_loss"] for run in found.runs["test"]])
    assert not np.isclose(losses[0.0], losses[0.9]).any()


def test_interrupted_runs_are_resumed(tmp_path):
    (whole,) = evaluator(tmp_path / "whole").evaluate()
    seen = []
    parts = evaluator(tmp_path / "parts")
    assert parts.evaluate(workers=1, report=seen.append, stop=lambda: len(seen) > 4) is None
    (found,) = parts.evaluate()
    assert found.outcomes == whole.outcomes


def test_a_recipe_says_how_networks_are_trained(tmp_path):
    recipe = Recipe(epochs=2, steps=2, batch_size=8, optimizer="sgd", momentum=0.9, clip=0.5)
    trained("tiny", sees="neighbors", recipe=recipe)(Tiny)
    (found,) = evaluator(tmp_path, None, protocols=["last-epoch"]).evaluate()
    (config, *_) = [run.config for run in found.runs["test"]]
    assert (config.optimizer, config.momentum, config.clip) == ("sgd", 0.9, 0.5)


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_a_network_that_draws_for_dropout_alone_may_say_so(rate, tmp_path, monkeypatch):
    """It gives the same results."""
    curves = []
    for draws in (True, False):
        monkeypatch.setattr(Tiny, "draws", draws, raising=False)
        assert made(rate=rate).draws  # a layer of dropout may have any rate
        trained("tiny", sees="", recipe=Recipe(epochs=2, steps=2, batch_size=8), grid={"rate": (rate,)})(Tiny)
        (found,) = evaluator(tmp_path / str(draws), None, protocols=["last-epoch"]).evaluate(workers=1)
        curves.append([run.curves["step_loss"] for run in found.runs["test"]])
    np.testing.assert_array_equal(*curves)


def test_every_task_beside_kernels_and_poolings(tmp_path):
    for store in (load("MUTAG"), *(make() for make in STORES.values())):
        found = evaluator(tmp_path, store, "tiny", "size", "sum", protocols=["fair"], epochs=1, steps=1).evaluate()
        assert [one.missing for one in found] == [{}, {}, {}]
        assert [one.result.pool for one in found.compare("size")] == ["tiny", "sum"]
        assert found[0].runs["chosen"][0].config.epochs == 1  # a request with fewer trains fewer


def test_the_mlp_does_not_see_edges(tmp_path, monkeypatch):
    mlp = SYSTEMS["mlp"]
    monkeypatch.setitem(SYSTEMS, "mlp", replace(mlp, recipe=replace(mlp.recipe, epochs=2, steps=2)))
    graphs = [Graph(4, [(0, 1), (1, 0)] * (n % 3), n % 2, [n % 2, 0, 1, 1]) for n in range(24)]
    stores = [pack(some, "toy") for some in (graphs, [replace(graph, edges=[]) for graph in graphs])]
    outcomes = [
        evaluator(tmp_path, store, "mlp", protocols=["single-epoch"]).evaluate()[0].outcomes for store in stores
    ]
    assert outcomes[0] == outcomes[1]


def test_what_cannot_be():
    with pytest.raises(SettingError, match=r"no trained system 'tinny' in this process.* import the module"):
        make_model(ModelConfig(pool="", system="tinny"), 3, 2)
    with pytest.raises(SettingError, match=r"tiny cannot be made with hidden=4, depth=2: .*unexpected keyword"):
        made(depth=2)
    trained("tiny", sees="", fitted={"rate": lambda train: train.sizes.max()})(Tiny)
    with pytest.raises(SettingError, match=r"fitted option rate of tiny is tensor\(3\), expected a number"):
        SYSTEMS["tiny"].model_for(pack([Graph(3, []), Graph(2, [])]))
    for wrong, message in (
        ({"optimizer": "lbfgs"}, "no optimizer 'lbfgs', expected one of: adam, sgd, rmsprop, adagrad"),
        ({"momentum": 0.9}, "momentum is 0.9, expected 0: adam has none"),
        ({"optimizer": "sgd", "momentum": 1.0}, "momentum is 1.0, expected a number from 0 and below 1"),
        ({"clip": -2.0}, "clip is -2.0, expected a norm, or 0"),
    ):
        with pytest.raises(SettingError, match=message):
            Recipe(**wrong)
    with pytest.raises(SettingError, match="equal or missing"):
        trained("tiny", sees="", grid={"hidden": ()})(Tiny)
