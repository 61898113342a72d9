"""A new readout or pooling layer is one file with a decorator: nothing else has to name it."""

import importlib.util
import sys

import pytest
import torch

from sopool.models.stackable import check_stackable
from sopool.nn import GRAPH_READOUTS, POOLINGS, READOUTS, make_pooling, make_readout, pooling, readout
from sopool.nn.aggr.base import terms_of
from sopool.nn.pool.top_k import SelectPooling
from sopool.nn.registry import NODES_OPTION, about_all, default_options, own_readouts, source_of
from tests.helpers.strategies import draw_rows, ptr_of
from tests.nn import test_contract

FILE = '''
import torch
from torch_geometric.nn.inits import uniform

from sopool.nn import SegmentAggregation, readout
from sopool.nn.layers import project
from sopool.ops import segment_sum


@readout("energy", formula="sum_i (W^T h_i)^2", cost="N f r", paper="A paper", options={"rank": 4})
class EnergyAggregation(SegmentAggregation):
    """The docstring is not what is listed."""

    def __init__(self, channels, rank=8):
        super().__init__(channels)
        self.rank = rank
        self.weight = torch.nn.Parameter(torch.empty(channels, rank))
        self.reset_parameters()

    @property
    def out_channels(self):
        return self.rank

    def reset_parameters(self):
        uniform(self.channels, self.weight)

    def pool(self, x, ptr):
        return segment_sum(project(x, self.weight, ptr).square(), ptr)
'''
CONTRACT = [
    test_contract.test_is_an_aggregation_that_knows_its_width,
    test_contract.test_index_is_ptr_is_unsorted_index,
    test_contract.test_gradients,
    test_contract.test_reset_parameters_draws_anew,
    test_contract.test_a_stack_takes_an_index_too,
]


@pytest.fixture
def registries(monkeypatch):
    """Registries that forget what a test puts into them."""
    for registry in (READOUTS, GRAPH_READOUTS, POOLINGS, NODES_OPTION):
        for name in ("energy", "scored"):
            monkeypatch.setitem(registry, name, None)
            registry.pop(name)


@pytest.fixture
def energy(registries, tmp_path, monkeypatch):
    """The class of a module that was written just now."""
    path = tmp_path / "energy_readout.py"
    path.write_text(FILE)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module.EnergyAggregation


def test_a_decorated_class_is_made_by_its_name(energy):
    made = make_readout("energy", 3)
    assert type(made) is energy
    assert (made.rank, made.out_channels) == (4, 4)
    assert default_options("energy", blocks=False) == {"rank": 4}
    assert make_readout("energy", 3, rank=2).rank == 2


def test_it_keeps_the_contract_and_trains_in_stacks(energy):
    for test in CONTRACT:
        test("energy")
    check_stackable("energy", 5, {})
    assert terms_of(make_readout("energy", 3), draw_rows(0, 4, 3)) is None


def test_it_is_listed_by_what_the_decorator_says(energy):
    *_, found = (one.to_json(10) for one in about_all())
    expected = {"name": "energy", "formula": "sum_i (W^T h_i)^2", "cost": "N f r", "paper": "A paper"}
    assert expected.items() <= found.items()
    assert (found["vector"], found["default"]) == ("the output", "rank = 4")
    assert (found["parameters"], found["width"], found["hierarchical"]) == (40, 4, False)


def test_outside_the_package_it_is_the_user_s_own(energy):
    assert list(own_readouts()) == ["energy"]
    assert len(source_of("energy")) == 16


def test_what_takes_its_name_later_is_not_described_by_its_decorator(energy):
    READOUTS["energy"] = READOUTS["sum"]
    assert about_all()[-1].formula.startswith("Sum of the node features")


def test_a_pooling_layer_is_added_in_the_same_way(registries):
    @pooling("scored", options={"ratio": 0.25})
    @readout("scored", formula="the top k by their sums", vector_from="max-mean")
    class Scored(SelectPooling):
        def score(self, x, graphs):
            return x.sum(1, keepdim=True)

    assert make_pooling("scored", 3).ratio == 0.25
    others = {"min_score": None, "multiplier": 1.0, "nonlinearity": "tanh"}
    assert default_options("scored", blocks=True) == {"ratio": 0.25} | others
    assert make_readout("scored", 3).out_channels == 6
    assert default_options("scored", blocks=False) == {"ratio": 0.5} | others
    assert about_all()[-1].default == "ratio = 0.5, min_score = None, multiplier = 1.0, nonlinearity = tanh"
    assert len(source_of("scored")) == 16
    x = torch.arange(12.0).view(4, 3)
    pooled = make_pooling("scored", 3)(x, torch.empty(2, 0, dtype=torch.long))
    assert torch.equal(pooled.ptr, ptr_of([1]))
