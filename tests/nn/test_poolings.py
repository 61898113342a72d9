"""Each pooling layer against its formula, dense and graph by graph; and what PyG's layers do otherwise."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import SAGPooling, dense_diff_pool

from sopool.nn import (
    POOLINGS,
    DiffPooling,
    MultiHeadSecondOrderPooling,
    SelfAttentionPooling,
    TopKPooling,
    make_pooling,
)
from sopool.nn.registry import make_blocks
from sopool.ops.message_passing.dense import Dense, normalize_by_degree
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.ops.message_passing.structure import GraphStructure
from tests.helpers.strategies import draw_rows, index_of, ptr_of, seeds

CHANNELS = 4
sizes = st.lists(st.sampled_from([0, 1, 2, 3, 5, 8]), min_size=1, max_size=5)


def random_graphs(sizes, seed, channels=CHANNELS):
    """Features, edges [2, E] with loops and repeats, and the dense A of each graph, A[i, j]: the weight of j for i."""
    random = torch.Generator().manual_seed(seed)
    edges = [torch.empty(2, 0, dtype=torch.long)]
    dense = []
    for start, n in zip(ptr_of(sizes).tolist(), sizes, strict=False):
        own = torch.randint(0, max(1, n), (2, 2 * n), generator=random)
        edges.append(own + start)
        weights = torch.zeros(n, n, dtype=torch.float64)
        weights.index_put_((own[1], own[0]), torch.tensor(1.0, dtype=torch.float64), accumulate=True)
        dense.append(weights)
    return draw_rows(seed, sum(sizes), channels), torch.cat(edges, dim=1), dense


def pool(layer, x, edge_index, sizes):
    return layer(x, edge_index, batch=index_of(sizes), batch_size=len(sizes))


def evenly(weights):
    """D^(-1/2) (A + I) D^(-1/2)."""
    weights = weights + torch.eye(len(weights), dtype=weights.dtype)
    share = weights.sum(1).rsqrt()
    return share[:, None] * weights * share


def to_dense(pooled):
    """A of each pooled graph, which has no weights."""
    weights = torch.zeros(len(pooled.x), len(pooled.x), dtype=torch.float64)
    source, target = pooled.edge_index
    weights.index_put_((target, source), torch.tensor(1.0, dtype=torch.float64), accumulate=True)
    return [weights[a:b, a:b] for a, b in zip(pooled.ptr[:-1], pooled.ptr[1:], strict=True)]


@pytest.mark.parametrize("kind", [TopKPooling, SelfAttentionPooling])
@pytest.mark.parametrize("ratio", [0.3, 0.5, 1.0])
@given(sizes=sizes, seed=seeds)
def test_selecting(kind, ratio, sizes, seed):
    layer = kind(CHANNELS, ratio).double()
    x, edge_index, dense = random_graphs(sizes, seed)
    out = pool(layer, x, edge_index, sizes)
    left = to_dense(out)
    want = [int(-(-(n * ratio - 1e-9) // 1)) for n in sizes]
    assert out.ptr.diff().tolist() == want
    values = torch.arange(float(len(out.x)), dtype=torch.float64).unsqueeze(1) + 1
    lifted = out.lift(values)
    for g, (h, weights) in enumerate(zip(x.split(sizes), dense, strict=True)):
        score = h @ layer.query / (layer.query.norm() if kind is TopKPooling else 1)
        score = score if kind is TopKPooling else evenly(weights) @ score
        order = score.squeeze(1).argsort(descending=True, stable=True)
        top = score[order[: want[g]]]
        rows = slice(int(out.ptr[g]), int(out.ptr[g + 1]))
        # Which of two nodes with equal scores is kept is a matter of rounding here.
        if score.unique().numel() < len(score) or (score.sort(0).values.diff(dim=0) < 1e-9).any():
            continue
        kept = order[: want[g]]
        torch.testing.assert_close(out.x[rows], h[kept] * top.tanh())
        torch.testing.assert_close(left[g], weights[kept][:, kept])
        back = torch.zeros(len(h), 1, dtype=torch.float64)
        back[kept] = values[rows]
        torch.testing.assert_close(lifted[ptr_of(sizes)[g] : ptr_of(sizes)[g + 1]], back)


@given(sizes=sizes, seed=seeds)
def test_diffpool(sizes, seed):
    layer = DiffPooling(CHANNELS, clusters=3, link=0.7, entropy=0.2).double()
    x, edge_index, dense = random_graphs(sizes, seed)
    out = pool(layer, x, edge_index, sizes)
    for g, (h, weights) in enumerate(zip(x.split(sizes), dense, strict=True)):
        share = (evenly(weights) @ h @ layer.weight).softmax(1)
        torch.testing.assert_close(out.x.view(-1, 3, CHANNELS)[g], share.t() @ h)
        coarse = normalize_by_degree((share.t() @ weights @ share).unsqueeze(0))
        torch.testing.assert_close(out.graphs().neighbors.weights[g], coarse[0])
        n = max(1, len(h))
        link = (weights - share @ share.t()).norm() / n
        entropy = -(share * share.log()).sum() / n
        torch.testing.assert_close(out.loss["link"][g], 0.7 * link, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(out.loss["entropy"][g], 0.2 * entropy, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("normalize", ["norm", "degree", "adjacency", None])
@given(sizes=sizes, seed=seeds)
def test_multi_head_pooling_is_the_layer_for_edges(normalize, sizes, seed):
    """As a block it gives what the layer that takes ``edge_index`` gives; that one has A[i, j] from i to j."""
    layer = MultiHeadSecondOrderPooling(CHANNELS, 3, normalize).double()
    x, edge_index, _ = random_graphs(sizes, seed)
    graphs = GraphStructure(ptr_of(sizes), neighbors_of(edge_index, len(x)))
    want = pool(layer, x, edge_index, sizes)
    out = layer.pool(x, graphs)
    torch.testing.assert_close(out.x, want.x)
    torch.testing.assert_close(out.graphs().neighbors.weights, want.adj.transpose(1, 2))
    lifted = out.lift(want.x)
    naive = [c @ h for c, h in zip(want.contribution.split(sizes), want.x.view(-1, 3, CHANNELS), strict=True)]
    torch.testing.assert_close(lifted, torch.cat(naive))


@pytest.mark.parametrize("name", [name for name in POOLINGS if name != "eigenpool"])
def test_lifting_is_the_transposed_map(name):
    """For what is linear in H with C fixed, <C H, Y> = <H, C^T Y>; for those that scale by a score, without it."""
    layer = make_pooling(name, CHANNELS).double()
    x, edge_index, _ = random_graphs([5, 3, 0, 8], 0)
    out = layer.pool(x, GraphStructure(ptr_of([5, 3, 0, 8]), neighbors_of(edge_index, len(x))))
    y = torch.randn_like(out.x)
    lifted = out.lift(y)
    assert lifted.shape == x.shape
    if name in ("topkpool", "sagpool"):
        assert (lifted.abs().sum(1) > 0).sum() == len(out.x)
    else:
        torch.testing.assert_close((out.x * y).sum(), (x * lifted).sum())


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux to measure memory")
@pytest.mark.parametrize("name", [name for name in POOLINGS if name != "eigenpool"])
def test_memory_is_linear(name):
    """A ring of 20,000 nodes, forward and backward: a matrix of pairs of nodes alone would take 1.6 GB."""
    nodes = 20_000
    ring = torch.stack([torch.arange(nodes), torch.arange(nodes).roll(-1)])
    x = torch.randn(nodes, 8, requires_grad=True)
    graphs = GraphStructure(torch.tensor([0, nodes]), neighbors_of(torch.cat([ring, ring.flip(0)], 1), nodes))
    layer = make_pooling(name, 8)
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    out = layer.pool(x, graphs)
    smaller = out.graphs()
    again = layer.pool(out.x, smaller)
    loss = again.x.sum() + (0 if out.total_loss is None else out.total_loss.sum())
    loss.backward()
    assert memory("VmHWM") - before < 300e6


def memory(kind):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(kind))


def test_weighted_and_signed_edges_count_in_sagpool():
    """PyG's SAGPooling is given edge weights and leaves them out of its scores."""
    torch.manual_seed(0)
    x = draw_rows(0, 6, CHANNELS)
    weights = draw_rows(1, 2, 3, 3)
    layer = SelfAttentionPooling(CHANNELS, ratio=0.6).double()
    graphs = GraphStructure(torch.tensor([0, 3, 6]), Dense(weights))
    score = layer.score(x, graphs)
    for g in range(2):
        own = weights[g]
        share = (1 + own.abs().sum(1)).rsqrt()
        even = share[:, None] * (own + torch.eye(3)) * share
        torch.testing.assert_close(score[3 * g : 3 * g + 3], even @ x[3 * g : 3 * g + 3] @ layer.query)
    out = layer.pool(x, graphs)
    kept = score[:3, 0].argsort(descending=True)[:2]
    torch.testing.assert_close(out.graphs().neighbors.weights[0], weights[0][kept][:, kept])
    theirs = SAGPooling(CHANNELS, ratio=0.6).double()
    edge_index = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]])
    plain, heavy = (theirs(x[:3], edge_index, torch.tensor(w).double())[5] for w in ([1.0] * 4, [9.0, 1.0, 1.0, 1.0]))
    assert torch.equal(plain, heavy)


def test_repeated_edges_count_in_sagpool():
    x = draw_rows(0, 3, CHANNELS)
    layer = SelfAttentionPooling(CHANNELS).double()
    once = torch.tensor([[0, 1], [1, 2]])
    twice = torch.tensor([[0, 0, 1], [1, 1, 2]])
    scores = [layer.score(x, GraphStructure(torch.tensor([0, 3]), neighbors_of(edges, 3))) for edges in (once, twice)]
    assert not torch.allclose(*scores)


def test_diffpool_losses_do_not_count_padding():
    """PyG divides by the padded size: a graph's part in the loss depends on the largest in the batch."""
    sizes = [3, 9]
    x, edge_index, dense = random_graphs(sizes, 1)
    layer = DiffPooling(CHANNELS, clusters=3).double()
    together = pool(layer, x, edge_index, sizes).total_loss
    own = edge_index[:, edge_index[0] < 3]
    alone = pool(layer, x[:3], own, [3]).total_loss
    torch.testing.assert_close(together[:1], alone)
    logits = evenly(dense[0]) @ x[:3] @ layer.weight
    _, _, link, entropy = dense_diff_pool(x[:3], dense[0], logits)
    torch.testing.assert_close(alone[0], 3 * link + entropy, rtol=1e-6, atol=1e-6)  # theirs is divided by n n
    padded = torch.nn.functional.pad
    mask = torch.arange(9) < 3
    _, _, padded_link, padded_entropy = dense_diff_pool(
        padded(x[:3], (0, 0, 0, 6)), padded(dense[0], (0, 6, 0, 6)), padded(logits, (0, 0, 0, 6)), mask
    )
    torch.testing.assert_close(padded_link, link / 9)
    torch.testing.assert_close(padded_entropy, entropy / 3)


def test_hierarchies_halve_the_number_of_nodes():
    assert [layer.heads for layer in make_blocks("sopool-m-attn", 8, 3, {})] == [16, 8, 4]
    assert [layer.clusters for layer in make_blocks("diffpool", 8, 3, {"clusters": 5})] == [5, 3, 2]
    assert [layer.ratio for layer in make_blocks("topkpool", 8, 2, {"ratio": 0.8})] == [0.8, 0.8]
    with pytest.raises(ValueError, match="blocks=4"):
        make_blocks("topkpool", 8, 4, {})


def test_normalising_the_adjacency_only():
    x, edge_index, _ = random_graphs([5], 0)
    plain, adjacency, degree, norm = (
        MultiHeadSecondOrderPooling(CHANNELS, 3, how).double() for how in (None, "adjacency", "degree", "norm")
    )
    for other in (adjacency, degree, norm):
        other.load_state_dict(plain.state_dict())
    outs = [layer(x, edge_index) for layer in (plain, adjacency, degree, norm)]
    torch.testing.assert_close(outs[1].x, outs[0].x)
    torch.testing.assert_close(outs[1].adj, normalize_by_degree(outs[0].adj))
    torch.testing.assert_close(outs[2].x, outs[0].x / 5)
    torch.testing.assert_close(outs[3].x, outs[0].x / x.norm())
    torch.testing.assert_close(outs[3].adj, outs[1].adj)
