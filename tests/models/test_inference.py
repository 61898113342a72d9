"""A prepared model gives the trained model's scores: every network, every pooling, alone and in a stack."""

from dataclasses import replace

import pytest
import torch

from sopool.data import make_agreement
from sopool.models import prepare_for_inference, stack
from sopool.nn import READOUTS, BilinearSecondOrderAggregation
from sopool.nn.gnn import VARIANTS
from sopool.nn.inference import InferenceGNN
from sopool.ops.numba import dispatch as compiled
from tests.helpers.model_cases import CASES, batch_of, flat, model_of, tables_for, without_ties
from tests.helpers.training_graphs import edge_label_options, little_store

ALL = list(range(24))
NETWORKS = CASES | {f"{gnn}, plain": flat("sopool", **edge_label_options(gnn)) for gnn in VARIANTS}
NETWORKS |= {f"{gnn}, bimap": flat("sopool-bimap", **edge_label_options(gnn)) for gnn in VARIANTS}
OPTIONS = {"normalize": "size", "triangle": True, "moments": (1, 2)}
NETWORKS |= {f"{pool}, options": flat(pool, pool_options=OPTIONS) for pool in ("sopool-bimap", "covpool")}
NETWORKS |= {"sopool-bimap, slow": flat("sopool-bimap", pool_options={"lr_scale": 0.1})}
NETWORKS |= {
    f"{gnn}, one layer": replace(flat("sopool-bimap", **edge_label_options(gnn)), layers=1) for gnn in VARIANTS
}
NETWORKS |= {f"{gnn}, weights": flat("sopool-bimap", edge_weights=True, **edge_label_options(gnn)) for gnn in VARIANTS}


@pytest.fixture(params=["loops", "layers"])
def loops(request, monkeypatch):
    """Compiled loops, or the network's own layers."""
    if request.param == "loops":
        pytest.importorskip("numba")
    monkeypatch.setattr(compiled, "serves", lambda x: request.param == "loops")


def trained(config, tables, seed=0):
    """A model whose norms are not those that it began with."""
    model = model_of(config, tables, seed)
    random = torch.Generator().manual_seed(seed)
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if any(part in name for part in ("scale", "shift", "running", "eps")):
            tensor.data += torch.rand(tensor.shape, generator=random, dtype=tensor.dtype)
    return model.eval()


@pytest.mark.parametrize("config", NETWORKS.values(), ids=NETWORKS)
@torch.no_grad()
def test_scores_are_those_of_the_model(config, loops):
    for directed in (False, True):
        tables = tables_for(config, little_store(directed=directed))
        models = [trained(config, tables, seed) for seed in range(3)]
        graphs = without_ties(models, tables, ALL)
        batch = batch_of(tables, graphs)
        torch.testing.assert_close(prepare_for_inference(models[0])(*batch), models[0](*batch), rtol=1e-10, atol=1e-10)
        together = tables.batch(torch.tensor([graphs] * 3)).to(torch.float64)
        torch.testing.assert_close(
            prepare_for_inference(stack(models))(*together), stack(models)(*together), rtol=1e-10, atol=1e-10
        )


class Bent(BilinearSecondOrderAggregation):
    """Does something with the rows before they are mapped."""

    def pool(self, x, ptr):
        return super().pool((x - 0.5).tanh(), ptr)


class Unit(BilinearSecondOrderAggregation):
    """With a mapping of its own."""

    @property
    def mapping(self):
        return torch.nn.functional.normalize(self.weight, dim=-2)


class PerChannel(BilinearSecondOrderAggregation):
    """Divides by the width of its input, which a prepared one would not have."""

    def second_moment(self, z, ptr, order=None):
        return super().second_moment(z, ptr, order) / self.channels


@pytest.mark.parametrize("kind", [Bent, Unit, PerChannel])
@torch.no_grad()
def test_readouts_of_a_user_s_own(kind, loops, monkeypatch):
    monkeypatch.setitem(READOUTS, "mine", kind)
    tables = tables_for(flat("mine"))
    model = trained(flat("mine"), tables)
    batch = batch_of(tables, ALL)
    torch.testing.assert_close(prepare_for_inference(model)(*batch), model(*batch), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["sopool-bimap, flat", "gine, flat", "sum, flat"])
@torch.no_grad()
def test_no_graph_or_one_without_nodes(name, loops):
    config = CASES[name]
    tables = tables_for(config)
    prepared = prepare_for_inference(trained(config, tables))
    for numbers in (torch.empty(0, dtype=torch.long), [5]):
        assert prepared(*batch_of(tables, numbers)).shape == (len(numbers), 2)


@pytest.mark.parametrize("gnn", VARIANTS)
@torch.no_grad()
def test_graphs_larger_than_what_is_worked_on_together(gnn, loops):
    """Of 300 nodes, among small ones."""
    config = flat("sopool-bimap", **edge_label_options(gnn))
    tables = tables_for(config, make_agreement(30, most_nodes=300))
    assert tables.node_ptr.diff().max() > 128
    model = trained(config, tables)
    batch = batch_of(tables, range(30))
    torch.testing.assert_close(prepare_for_inference(model)(*batch), model(*batch), rtol=1e-10, atol=1e-10)


def test_the_model_stays_as_it_was():
    config = CASES["sopool-bimap, flat"]
    tables = tables_for(config)
    model = trained(config, tables).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    prepared = prepare_for_inference(model)
    assert model.training
    assert not prepared.training
    assert isinstance(prepared.gnn, InferenceGNN)
    assert model.state_dict().keys() == before.keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
