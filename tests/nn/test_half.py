"""Half types, on graphs with more nodes than they can count: as exact as the type of the result."""

import pytest
import torch

from sopool.nn import DiffPooling, MultiHeadSecondOrderPooling, make_readout
from sopool.ops.message_passing.neighbors import aggregate, neighbors_of
from sopool.ops.message_passing.structure import GraphStructure, propagate_normalized
from sopool.ops.segment.first_order import segment_softmax
from tests.helpers.readouts import CHANNELS
from tests.helpers.strategies import draw_rows, ptr_of

SIZES = [70_000, 0, 5]
halves = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
WAYS = ["norm", "degree", "adjacency"]
MATRICES = ["size", "trace", "sqrt", "matrix-sqrt", "size+matrix-sqrt"]
READOUTS = [
    ("mean", {}),
    ("max", {}),
    ("attnpool", {}),
    *(("sopool", {"normalize": how}) for how in MATRICES),
    ("sopool", {"normalize": "size", "moments": (1, 2)}),
    ("covpool", {"normalize": "size"}),
    *(
        (name, {"normalize": how})
        for name in ("sopool-attn", "sopool-m-attn", "sopool-bimap")
        for how in ("size", "sqrt")
    ),
]


def assert_rounded(got, want, dtype, times=3):
    """The exact values, up to some roundings of the largest of them."""
    assert got.dtype == dtype
    close = times * torch.finfo(dtype).eps * want.abs().max().item()
    torch.testing.assert_close(got.double(), want.double(), rtol=0, atol=close)


@halves
@pytest.mark.parametrize(("name", "options"), READOUTS)
def test_readouts_of_a_large_graph(name, options, dtype):
    x = (0.25 + 0.5 * draw_rows(0, sum(SIZES), CHANNELS)).to(dtype)
    readout = make_readout(name, CHANNELS, **options).to(dtype)
    got = readout(x, ptr=ptr_of(SIZES))
    assert_rounded(got, readout.double()(x.double(), ptr=ptr_of(SIZES)), dtype)


@pytest.mark.parametrize("options", [{"normalize": "size"}, {"moments": (1, 2)}, {"normalize": "matrix-sqrt"}])
@pytest.mark.parametrize("name", ["covpool", "sopool-bimap"])
def test_autocast_rounds_nothing_that_is_squared(name, options):
    """Rows far from zero have a small covariance, which is lost where they are rounded after the map."""
    x = 10 + 0.1 * draw_rows(0, 200, CHANNELS, dtype=torch.float32)
    ptr = ptr_of([80, 120])
    readout = make_readout(name, CHANNELS, **options | {"rank": 2})
    with torch.autocast("cpu", torch.bfloat16):
        got = readout(x, ptr=ptr)
    torch.testing.assert_close(got, readout(x, ptr=ptr), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("compiled", [False, True])
def test_autocast_leaves_gradients_of_the_root_alone(compiled, fresh_compiler):
    """The compiler takes the backward pass under autocast, too, as who calls it there does."""
    readout = make_readout("sopool", CHANNELS, normalize="matrix-sqrt")
    ptr = ptr_of([2, 5])
    x = draw_rows(0, 7, CHANNELS, dtype=torch.float32).requires_grad_()
    function = torch.compile(readout, fullgraph=True, backend="aot_eager") if compiled else readout
    with torch.autocast("cpu", torch.bfloat16):
        (got,) = torch.autograd.grad(function(x, ptr=ptr).sum(), x)
    (want,) = torch.autograd.grad(readout(x, ptr=ptr).sum(), x)
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3)


@halves
def test_equal_weights_of_a_large_graph(dtype):
    x = torch.ones(sum(SIZES), 1, dtype=dtype)
    ptr = ptr_of(SIZES)
    assert_rounded(segment_softmax(x, ptr), segment_softmax(x.double(), ptr), dtype)
    assert_rounded(segment_softmax(x, ptr)[:9], segment_softmax(x.double(), ptr)[:9], dtype, times=16)


@halves
def test_a_node_with_many_neighbours(dtype):
    nodes = SIZES[0]
    star = torch.stack([torch.arange(1, nodes), torch.zeros(nodes - 1, dtype=torch.long)])
    neighbors = neighbors_of(star, nodes)
    x = draw_rows(0, nodes, 2).abs().to(dtype)
    assert_rounded(aggregate(x, neighbors, "mean"), aggregate(x.double(), neighbors, "mean"), dtype)
    # Each part of the sum is small: it is not what is tested here.
    few = x.clone()
    few[9:] = 0
    graphs = GraphStructure(torch.tensor([0, nodes]), neighbors)
    assert_rounded(
        propagate_normalized(few, graphs.neighbors)[:1],
        propagate_normalized(few.double(), graphs.neighbors)[:1],
        dtype,
        times=16,
    )


@halves
@pytest.mark.parametrize(
    ("kind", "options"),
    [(DiffPooling, {"clusters": 2}), *((MultiHeadSecondOrderPooling, {"heads": 2, "normalize": how}) for how in WAYS)],
)
def test_edges_of_a_large_graph_between_few_nodes(kind, options, dtype):
    """As many as a half type cannot hold, until their weights are normalised."""
    torch.manual_seed(0)
    nodes = SIZES[0]
    layer = kind(CHANNELS, **options).to(dtype)
    x = (1 + draw_rows(0, nodes, CHANNELS)).to(dtype)
    ring = torch.arange(nodes)
    edges = torch.cat([torch.stack([ring, ring.roll(step)]) for step in (1, 2, 3)], dim=1)
    graphs = GraphStructure(torch.tensor([0, nodes]), neighbors_of(edges, nodes))
    got = layer(x, edges)
    in_a_block = layer.pool(x, graphs)
    exact = layer.double()
    assert_rounded(got.edge_weight, exact(x.double(), edges).edge_weight, dtype)
    assert_rounded(in_a_block.edge_weight, exact.pool(x.double(), graphs).edge_weight, dtype)
