"""What a pooling leaves, as PyG has graphs: against the dense formula, and inside a PyG network."""

import pytest
import torch
from hypothesis import given
from torch.autograd import gradcheck
from torch_geometric.nn import GraphConv, global_add_pool

from sopool.nn import DiffPooling, MultiHeadSecondOrderPooling, SelfAttentionPooling, TopKPooling
from sopool.nn.pool.edge_list import list_edges
from sopool.ops.message_passing.dense import Dense, normalize_by_degree
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.ops.message_passing.select import between, select_top
from sopool.ops.message_passing.structure import GraphStructure
from tests.helpers.strategies import draw_rows, index_of, ptr_of, seeds
from tests.nn.test_poolings import CHANNELS, pool, random_graphs, sizes

SIZES = [5, 0, 1, 8]


def scatter(out):
    """A of all graphs together: the weight of its column for its row."""
    dense = torch.zeros(len(out.x), len(out.x), dtype=torch.float64)
    source, target = out.edge_index
    weight = torch.ones(len(source)) if out.edge_weight is None else out.edge_weight
    return dense.index_put((target, source), weight.double(), accumulate=True)


def batches(out):
    return out.batch.bincount(minlength=out.ptr.numel() - 1).tolist()


@pytest.mark.parametrize("kind", [TopKPooling, SelfAttentionPooling])
@given(sizes=sizes, seed=seeds)
def test_kept_edges(kind, sizes, seed):
    """Directed, with loops and repeats."""
    x, edge_index, dense = random_graphs(sizes, seed)
    out = pool(kind(CHANNELS).double(), x, edge_index, sizes)
    kept = out.lift(torch.eye(len(out.x), dtype=torch.float64))  # [N, n]: 1 where the old node became the new one
    torch.testing.assert_close(scatter(out), kept.t() @ torch.block_diag(*dense)[: len(x), : len(x)] @ kept)
    assert out.edge_weight is None
    assert batches(out) == out.ptr.diff().tolist()
    assert torch.equal(out.batch, out.batch.sort().values)


@pytest.mark.parametrize("kind", [DiffPooling, MultiHeadSecondOrderPooling])
@given(sizes=sizes, seed=seeds)
def test_all_pairs_with_their_weights(kind, sizes, seed):
    x, edge_index, dense = random_graphs(sizes, seed)
    out = kind(CHANNELS, 3).double().pool(x, GraphStructure(ptr_of(sizes), neighbors_of(edge_index, len(x))))
    share = out.lift(torch.eye(3, dtype=torch.float64).repeat(len(sizes), 1)).split(sizes)  # C^T [n, 3] of each graph
    want = [normalize_by_degree((c.t() @ a @ c).unsqueeze(0))[0] for c, a in zip(share, dense, strict=True)]
    torch.testing.assert_close(scatter(out), torch.block_diag(*want))
    assert out.edge_index.shape == (2, 9 * len(sizes))
    assert batches(out) == [3] * len(sizes)


def test_one_direction_for_both_calls():
    """The layer's own record and the one that every pooling gives list the same weight for the same edge."""
    x, edge_index, _ = random_graphs(SIZES, 0)
    layer = MultiHeadSecondOrderPooling(CHANNELS, 3).double()
    record = pool(layer, x, edge_index, SIZES)
    out = layer.pool(x, GraphStructure(ptr_of(SIZES), neighbors_of(edge_index, len(x))))
    torch.testing.assert_close(scatter(out), scatter(record))
    assert torch.equal(out.batch, record.batch)


@given(sizes=sizes, seed=seeds)
def test_listing_is_the_inverse_of_reading(sizes, seed):
    x, edge_index, _ = random_graphs(sizes, seed)
    listed = list_edges(neighbors_of(edge_index, len(x))).edge_index
    assert sorted(listed.t().tolist()) == sorted(edge_index.t().tolist())


def test_spare_rows_have_no_edges():
    x, edge_index, _ = random_graphs(SIZES, 0)
    graphs = GraphStructure(ptr_of(SIZES), neighbors_of(edge_index, len(x)))
    exact, spare = (between(graphs.neighbors, select_top(x[:, 0], graphs, 0.5, exact)) for exact in (True, False))
    assert spare.ptr.numel() > exact.ptr.numel()
    assert torch.equal(list_edges(spare).edge_index, list_edges(exact).edge_index)


def test_edges_are_made_once_and_weights_have_gradients():
    x, edge_index, _ = random_graphs(SIZES, 0)
    layer = DiffPooling(CHANNELS, clusters=2).double()
    out = pool(layer, x, edge_index, SIZES)
    assert out.edge_index is out.edge_index
    assert out.batch is out.batch

    def weights(x, weight):
        return torch.func.functional_call(
            layer, {"weight": weight}, (x, edge_index, None, index_of(SIZES), len(SIZES))
        ).edge_weight

    assert gradcheck(weights, (x.requires_grad_(), layer.weight))


def test_dense_edges_follow_the_record():
    weights = draw_rows(0, 2, 3, 3)
    (source, target), listed, _ = list_edges(Dense(weights))
    assert torch.equal(weights[target // 3, target % 3, source % 3], listed)
    assert torch.equal(target // 3, source // 3)


class Network(torch.nn.Module):
    """As one would write it with PyG's poolings: convolve, shrink, convolve, shrink, convolve, add up."""

    def __init__(self, first, second):
        super().__init__()
        self.convs = torch.nn.ModuleList(GraphConv(CHANNELS, CHANNELS) for _ in range(3))
        self.first = first
        self.second = second
        self.head = torch.nn.Linear(CHANNELS, 2)

    def forward(self, x, edge_index, batch, batch_size):
        one = self.first(self.convs[0](x, edge_index).relu(), edge_index, batch=batch, batch_size=batch_size)
        h = self.convs[1](one.x, one.edge_index, one.edge_weight).relu()
        two = self.second.pool(h, one.graphs())
        h = self.convs[2](two.x, two.edge_index, two.edge_weight).relu()
        return self.head(global_add_pool(h, two.batch, batch_size))


MAKE = {
    "topk": lambda: TopKPooling(CHANNELS, 0.7),
    "self-attention": lambda: SelfAttentionPooling(CHANNELS, 0.7),
    "diff": lambda: DiffPooling(CHANNELS, clusters=3),
}


def network_of(first, second):
    torch.manual_seed(0)
    make = MAKE | {"multi-head": lambda: MultiHeadSecondOrderPooling(CHANNELS, 2)}
    x, edge_index, _ = random_graphs(SIZES, 0)
    return Network(make[first](), make[second]()), (x.float(), edge_index, index_of(SIZES), len(SIZES))


@pytest.mark.parametrize("first", MAKE)
@pytest.mark.parametrize("second", [*MAKE, "multi-head"])
def test_inside_a_pyg_network(first, second):
    network, given = network_of(first, second)
    scores = network(*given)
    assert scores.shape == (len(SIZES), 2)
    scores.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


@pytest.mark.filterwarnings("ignore")  # the compiler's own, of what it does where a graph breaks
@pytest.mark.parametrize(
    ("first", "second"), [("topk", "diff"), pytest.param("diff", "multi-head", marks=pytest.mark.slow)]
)
def test_inside_a_compiled_network(first, second, fresh_compiler):
    network, given = network_of(first, second)
    torch.testing.assert_close(torch.compile(network, backend="aot_eager")(*given), network(*given))
