"""Readouts and pooling layers as programs of standard operators, which run without this package."""

import pytest
import torch

from sopool.nn import DiffPooling, MultiHeadSecondOrderPooling, SelfAttentionPooling, TopKPooling
from tests.helpers.exported import check_package, exported, is_standard, onnx_session, quiet
from tests.helpers.readouts import OURS, SIZES, batch_of, readout_of
from tests.helpers.strategies import index_of
from tests.nn.test_poolings import CHANNELS, random_graphs

pytestmark = quiet
OTHERS = [[2, 5, 0], [7, 0, 30, 2], [1], [0], [0, 0], []]
FEW = ("sopool-bimap", "max")


def some(names):
    return [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in names]


def by_ptr(sizes):
    x, ptr, _ = batch_of(sizes, torch.float32)
    return x, None, ptr


def by_index(sizes):
    x, _, index = batch_of(sizes, torch.float32)
    order = torch.randperm(len(x))
    return x[order], index[order]


@pytest.mark.parametrize("name", some(OURS))
def test_gradients_of_the_program(name):
    readout = readout_of(name)
    x, ptr, _ = batch_of(SIZES)
    program = exported(readout, (x, None, ptr)).module()
    x.requires_grad_()
    (got,) = torch.autograd.grad(program(x, None, ptr).sin().sum(), x)
    (want,) = torch.autograd.grad(readout(x, ptr=ptr).sin().sum(), x)
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("name", some(OURS))
@pytest.mark.parametrize("inputs", [by_ptr, pytest.param(by_index, marks=pytest.mark.slow)])
def test_readouts_in_onnxruntime(name, inputs):
    readout = readout_of(name, torch.float32)
    run = onnx_session(exported(readout, inputs(SIZES)))
    for sizes in OTHERS:
        given = inputs(sizes)
        torch.testing.assert_close(run(given)[0], readout(*given), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sopool-bimap", "sopool-attn", "attnpool", "sortpool"])
def test_readouts_in_a_package_of_aotinductor(name, tmp_path):
    readout = readout_of(name, torch.float32).requires_grad_(False)
    cases = [(by_ptr(sizes), readout(*by_ptr(sizes))) for sizes in OTHERS]
    check_package(exported(readout, by_ptr(SIZES)), cases, tmp_path)


class AsTensors(torch.nn.Module):
    """A pooling layer that returns all tensors of its result, features lifted back among them."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, edge_index, batch):
        out = self.layer(x, edge_index, None, batch)
        more = (out.adj,) if isinstance(self.layer, MultiHeadSecondOrderPooling) else (out.ptr, out.lift(out.x))
        more += tuple(value for value in (out.edge_weight, out.total_loss) if value is not None)
        return out.x, out.edge_index, out.batch, *more


LAYERS = {
    "topkpool": TopKPooling(CHANNELS),
    "sagpool": SelfAttentionPooling(CHANNELS, ratio=0.3),
    "diffpool": DiffPooling(CHANNELS, clusters=3),
    "sopool-m-attn": MultiHeadSecondOrderPooling(CHANNELS, heads=3),
}


def graphs(sizes, seed=0):
    x, edge_index, _ = random_graphs(sizes, seed)
    return x.float(), edge_index, index_of(sizes)


@pytest.mark.parametrize("name", LAYERS)
def test_pooling_layers(name):
    """How many nodes and edges are kept is not known until the program runs."""
    layer = AsTensors(LAYERS[name])
    program = exported(layer, graphs([3, 5, 2]))
    assert is_standard(program)
    for sizes in ([2, 6, 1, 3], [5], [1], [0, 3, 0, 2]):
        given = graphs(sizes, seed=1)
        torch.testing.assert_close(program.module()(*given), layer(*given), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_pooling_layers_in_onnxruntime(name):
    layer = AsTensors(LAYERS[name])
    run = onnx_session(exported(layer, graphs([3, 5, 2])))
    for sizes in ([2, 6, 1, 3], [5], [1], [0, 3, 0, 2], []):
        given = graphs(sizes, seed=1)
        torch.testing.assert_close(run(given), list(layer(*given)), rtol=1e-5, atol=1e-5)
