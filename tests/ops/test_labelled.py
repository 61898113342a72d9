"""Message passing along edges with labels, against a loop over edges and against PyG's layer."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import GINEConv

from sopool.ops.many_models.model_rows import Rows
from sopool.ops.message_passing.labelled import aggregate_labelled
from sopool.ops.message_passing.neighbors import EdgeLabels, Neighbors, neighbors_of
from tests.helpers.backends import every_way
from tests.helpers.strategies import draw_rows, seeds


def labelled(edges, labels, nodes, kinds):
    """The lists of some edges [2, E] with a label each [E], every node in its own list as well."""
    loops = torch.arange(nodes).expand(2, -1)
    edges = torch.cat([edges, loops], 1)
    labels = torch.cat([labels, torch.full((nodes,), -1)])
    lists = []
    for receiver, sender in (edges.flip(0), edges):
        order = (receiver * max(1, nodes) + sender).argsort(stable=True)
        ptr = torch.cat([torch.zeros(1, dtype=torch.long), torch.bincount(receiver, minlength=nodes).cumsum(0)])
        lists.append((ptr, sender[order], labels[order]))
    (ptr, members, along), (back, others, backwards) = lists
    return Neighbors(ptr, members, (back, others), labels=EdgeLabels(along, backwards, kinds))


def random_graphs(seed, sizes, kinds):
    """Edges, loops and repeats among them, within each model's nodes; labels counted through the models."""
    random = torch.Generator().manual_seed(seed)
    edges = []
    labels = []
    first = 0
    for model, size in enumerate(sizes):
        count = 3 * size
        edges.append(torch.randint(first, first + size, (2, count), generator=random) if size else torch.empty(2, 0))
        labels.append(torch.randint(0, kinds, (count,), generator=random) + model * kinds)
        first += size
    return torch.cat(edges, 1).long(), torch.cat(labels)


def by_hand(x, edges, labels, vectors):
    rows = list(x)
    for source, target, label in zip(*edges.tolist(), labels.tolist(), strict=True):
        rows[target] = rows[target] + (x[source] + vectors.flatten(0, 1)[label]).relu()
    return torch.stack(rows) if rows else x


def rows_of(sizes):
    return Rows(torch.tensor([0, *sizes]).cumsum(0))


@every_way
@given(st.lists(st.integers(0, 6), min_size=1, max_size=3), st.integers(1, 3), st.integers(1, 4), seeds)
def test_is_the_loop_over_edges(sizes, width, kinds, seed):
    edges, labels = random_graphs(seed, sizes, kinds)
    x = draw_rows(seed, sum(sizes), width).requires_grad_()
    vectors = draw_rows(seed + 1, len(sizes) * kinds, width).view(-1, kinds, width).requires_grad_()
    got = aggregate_labelled(x, labelled(edges, labels, len(x), kinds), vectors, rows_of(sizes))
    want = by_hand(x, edges, labels, vectors)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    weight = draw_rows(seed + 2, *got.shape)
    gradients, expected = (
        torch.autograd.grad(out, (x, vectors), weight, allow_unused=True, materialize_grads=True) for out in (got, want)
    )
    torch.testing.assert_close(gradients, expected, rtol=1e-12, atol=1e-12)


@every_way
def test_gradients(check_gradients):
    sizes = [5, 4]
    kinds = 3
    edges, labels = random_graphs(0, sizes, kinds)
    neighbors = labelled(edges, labels, 9, kinds)
    rows = rows_of(sizes)
    inputs = draw_rows(1, 9, 2).requires_grad_(), draw_rows(2, 6, 2).view(2, 3, 2).requires_grad_()
    check_gradients(lambda x, vectors: aggregate_labelled(x, neighbors, vectors, rows), inputs, twice=False)


@given(st.integers(1, 12), st.integers(1, 4), seeds)
def test_is_pyg_s_layer(nodes, width, seed):
    """With a multi-layer perceptron that changes nothing; eps is added by the layer around."""
    edges, labels = random_graphs(seed, [nodes], 4)
    x = draw_rows(seed, nodes, width)
    vectors = draw_rows(seed + 1, 4, width)
    layer = GINEConv(torch.nn.Identity())
    want = layer(x, edges, vectors[labels])
    got = aggregate_labelled(x, labelled(edges, labels, nodes, 4), vectors.unsqueeze(0), rows_of([nodes]))
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


def test_values_may_lie_apart():
    """As those of a layer do that lies beside the others."""
    edges, labels = random_graphs(0, [6], 2)
    neighbors = labelled(edges, labels, 6, 2)
    vectors = draw_rows(1, 2, 3).unsqueeze(0)
    wide = draw_rows(2, 6, 8)
    results = []
    for x in (wide[:, 2:5], wide[:, 2:5].contiguous()):
        inputs = x.detach().requires_grad_(), vectors.clone().requires_grad_()
        out = aggregate_labelled(inputs[0], neighbors, inputs[1], rows_of([6]))
        results.append((out, *torch.autograd.grad(out.square().sum(), inputs)))
    torch.testing.assert_close(*results)


def test_edges_without_labels_are_refused():
    plain = neighbors_of(torch.tensor([[0], [1]]), 2)
    with pytest.raises(ValueError, match=r"the edges have none.*such as gin-0"):
        aggregate_labelled(torch.ones(2, 3), plain, torch.ones(1, 2, 3), rows_of([2]))


def test_vectors_of_another_shape_are_refused():
    neighbors = labelled(torch.tensor([[0], [1]]), torch.tensor([0]), 2, 2)
    with pytest.raises(ValueError, match=r"shape \[1, 3, 3\].*require \[1, 2, 3\]"):
        aggregate_labelled(torch.ones(2, 3), neighbors, torch.ones(1, 3, 3), rows_of([2]))
