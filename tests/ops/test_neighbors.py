"""Message passing against dense matrices."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.ops.message_passing.neighbors import Neighbors, aggregate
from tests.helpers.backends import every_way
from tests.helpers.strategies import draw_rows, seeds


def lists(matrix):
    """(ptr, nodes) of the rows of a 0/1 matrix."""
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), matrix.sum(1).long().cumsum(0)])
    return ptr, matrix.nonzero()[:, 1]


def random_graph(nodes, seed, directed):
    """A matrix with A[i, j] = 1 if i aggregates j; every node aggregates itself, some nobody else."""
    adjacency = draw_rows(seed, nodes, nodes).abs() < 0.5
    adjacency = adjacency if directed else adjacency | adjacency.t()
    return (adjacency | torch.eye(nodes, dtype=torch.bool)).double()


def neighbors_of(matrix):
    return Neighbors(*lists(matrix), lists(matrix.t()))


@every_way
@given(st.integers(0, 12), st.integers(1, 4), seeds, st.booleans())
def test_is_the_product_with_the_matrix(nodes, width, seed, directed):
    matrix = random_graph(nodes, seed, directed)
    x = draw_rows(seed + 1, nodes, width)
    total = aggregate(x, neighbors_of(matrix), "sum")
    torch.testing.assert_close(total, matrix @ x)
    mean = aggregate(x, neighbors_of(matrix), "mean")
    torch.testing.assert_close(mean, matrix @ x / matrix.sum(1, keepdim=True))
    largest = aggregate(x, neighbors_of(matrix), "max")
    masked = x.unsqueeze(0).masked_fill(matrix.unsqueeze(2) == 0, -torch.inf)
    torch.testing.assert_close(largest, masked.amax(1) if nodes else x)


@every_way
@pytest.mark.parametrize("how", ["sum", "mean", "max"])
@pytest.mark.parametrize("directed", [False, True])
def test_gradients(how, directed, check_gradients):
    neighbors = neighbors_of(random_graph(6, 3, directed))
    x = draw_rows(4, 6, 3).requires_grad_()
    check_gradients(lambda x: aggregate(x, neighbors, how), (x,), twice=False)


def test_a_list_may_name_a_node_twice(check_gradients):
    twice = (torch.tensor([0, 3, 4]), torch.tensor([0, 1, 1, 1]))
    back = (torch.tensor([0, 1, 4]), torch.tensor([0, 0, 0, 1]))
    x = draw_rows(0, 2, 2).requires_grad_()
    total = aggregate(x, Neighbors(*twice, back), "sum")
    torch.testing.assert_close(total, torch.stack([x[0] + 2 * x[1], x[1]]))
    check_gradients(lambda x: aggregate(x, Neighbors(*twice, back), "sum"), (x,), twice=False)
