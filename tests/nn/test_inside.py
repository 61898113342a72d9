"""Every readout in what PyTorch and PyG do with modules: compile, export, copy, and put them into others."""

import copy

import pytest
import torch
from torch_geometric.nn import MessagePassing, Sequential
from torch_geometric.nn.aggr import MultiAggregation

from sopool.nn import make_readout
from tests.helpers.exported import is_standard
from tests.helpers.readouts import CHANNELS, SIZES, batch_of, every_own_readout, every_readout, few_readouts, readout_of
from tests.helpers.strategies import draw_rows


@every_readout
def test_autocast(name):
    x, ptr, _ = batch_of(SIZES, torch.float32)
    readout = readout_of(name, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        got = readout(x, ptr=ptr)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, readout(x, ptr=ptr), rtol=0.05, atol=0.05 * got.abs().max().item())


@few_readouts
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiles_for_ptr_and_for_index(name, backend, fresh_compiler):
    readout = readout_of(name, torch.float32)
    compiled = torch.compile(readout, fullgraph=True, dynamic=True, backend=backend)
    for batch in (SIZES, [3, 3], [1, 9, 0]):
        x, ptr, index = batch_of(batch, torch.float32)
        shuffle = torch.randperm(len(x))
        shuffled = x[shuffle].requires_grad_()
        want = readout(x.requires_grad_(), ptr=ptr)
        torch.testing.assert_close(compiled(x, ptr=ptr), want)
        torch.testing.assert_close(compiled(shuffled, index[shuffle], dim_size=len(batch)), want)
        (gradient,) = torch.autograd.grad(compiled(x, ptr=ptr).square().sum(), x)
        torch.testing.assert_close(gradient, torch.autograd.grad(want.square().sum(), x)[0], rtol=1e-4, atol=1e-4)


@every_own_readout
def test_compiles_once_for_all_batches(name, fresh_compiler):
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    compiled = torch.compile(readout_of(name, torch.float32), fullgraph=True, dynamic=True, backend=counter)
    for batch in (SIZES, [3, 3], [5, 9, 2], [30, 2, 4, 7]):
        x, ptr, _ = batch_of(batch, torch.float32)
        compiled(x, ptr=ptr)
    assert counter.frame_count == 1


@few_readouts
def test_compiles_without_the_number_of_graphs(name, fresh_compiler):
    """As PyG's do, in one piece."""
    readout = readout_of(name, torch.float32)
    compiled = torch.compile(readout, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch in ([4, 1, 6], [3, 3], [5, 0, 9, 2]):
        x, ptr, index = batch_of(batch, torch.float32)
        torch.testing.assert_close(compiled(x, index), readout(x, ptr=ptr))


@every_own_readout
def test_exports(name):
    readout = readout_of(name, torch.float32)
    x, ptr, _ = batch_of(SIZES, torch.float32)
    shapes = {"x": {0: torch.export.Dim("nodes")}, "ptr": {0: torch.export.Dim("graphs", min=3)}}
    program = torch.export.export(readout, (x,), {"ptr": ptr}, dynamic_shapes=shapes)
    assert is_standard(program)
    other, other_ptr, _ = batch_of([2, 5, 0], torch.float32)
    torch.testing.assert_close(program.module()(other, ptr=other_ptr), readout(other, ptr=other_ptr))


@few_readouts
@pytest.mark.parametrize("strict", [False, True])
def test_exports_without_the_number_of_graphs(name, strict):
    readout = readout_of(name, torch.float32)
    x, _, index = batch_of([4, 1, 6], torch.float32)
    nodes = {0: torch.export.Dim("nodes")}
    program = torch.export.export(readout, (x, index), dynamic_shapes={"x": nodes, "index": nodes}, strict=strict)
    assert is_standard(program)
    for sizes in ([2, 5], [9], [3, 0, 1, 4]):
        other, ptr, index = batch_of(sizes, torch.float32)
        torch.testing.assert_close(program.module()(other, index), readout(other, ptr=ptr))
        order = torch.randperm(len(other))
        torch.testing.assert_close(program.module()(other[order], index[order]), readout(other, ptr=ptr))


@every_readout
def test_copies_and_round_trips(name):
    readout = readout_of(name)
    x, ptr, _ = batch_of(SIZES)
    other = make_readout(name, CHANNELS).double()
    other.load_state_dict(readout.state_dict())
    for twin in (copy.deepcopy(readout), other):
        assert torch.equal(twin(x, ptr=ptr), readout(x, ptr=ptr))
        assert repr(twin) == repr(readout)


@every_own_readout
def test_meta_device(name):
    with torch.device("meta"):
        readout = make_readout(name, CHANNELS)
        out = readout(torch.empty(5, CHANNELS), ptr=torch.empty(3, dtype=torch.long))
        indexed = readout(torch.empty(5, CHANNELS), torch.empty(5, dtype=torch.long), dim_size=2)
    assert out.shape == indexed.shape == (2, readout.out_channels)


def test_meta_device_with_a_root():
    readout = make_readout("sopool-bimap", CHANNELS, normalize="matrix-sqrt", triangle=True).to("meta")
    out = readout(torch.empty(5, CHANNELS, device="meta"), ptr=torch.empty(3, dtype=torch.long, device="meta"))
    assert out.shape == (2, readout.out_channels)


@every_readout
def test_inside_multi_aggregation(name):
    readout = readout_of(name)
    x, ptr, index = batch_of(SIZES)
    both = MultiAggregation([readout, "sum"])(x, index, dim_size=len(SIZES))
    torch.testing.assert_close(both[:, :-CHANNELS], readout(x, ptr=ptr))


@every_readout
def test_as_aggr_of_message_passing(name):
    """Edges into nodes: unsorted, with isolated nodes."""

    class Layer(MessagePassing):
        def forward(self, x, edge_index):
            return self.propagate(edge_index, x=x)

    readout = readout_of(name)
    x = draw_rows(0, 5, CHANNELS)
    edge_index = torch.tensor([[0, 1, 2, 3, 3, 0], [2, 0, 0, 2, 2, 3]])
    got = Layer(aggr=readout)(x, edge_index)
    torch.testing.assert_close(got, readout(x[edge_index[0]], edge_index[1], dim_size=5))


@every_readout
def test_inside_sequential(name):
    readout = readout_of(name)
    model = Sequential("x, batch", [(torch.nn.ReLU(), "x -> x"), (readout, "x, batch -> x")])
    x, ptr, index = batch_of([2, 3])
    torch.testing.assert_close(model(x, index), readout(x.relu(), ptr=ptr))
