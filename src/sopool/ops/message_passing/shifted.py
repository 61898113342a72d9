"""Message passing along edges with attributes or weights, where each message depends on the numbers of its edge.

    out_i = x_i + sum_j w_ij relu(x_j + s_ij)        s_ij: the shift of the edge from j to i, w_ij: its weight

The shift is computed for each edge, so unlike in :mod:`sopool.ops.message_passing.labelled` there is memory for each
edge. Sums are computed in one place and in a fixed order there as well.
"""

from torch import Tensor

from sopool.ops.message_passing.entries import Places, collect, gather
from sopool.ops.message_passing.neighbors import Neighbors, senders


def aggregate_shifted(x: Tensor, neighbors: Neighbors, shifts: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return ``x_i + sum_j w_ij relu(x_j + s_ij)`` for each node i, where j runs over its neighbors.

    Args:
        x: Node features ``[N, F]``.
        neighbors: The neighbors of each node, with :class:`~sopool.ops.message_passing.neighbors.EdgeValues`.
        shifts: The shift of the edge to each list entry ``[L, F]``; 0 for the node itself.
        weights: The weight of the edge to each list entry ``[L]``; 1 for the node itself. Default: None, which means 1.

    Returns:
        Node features ``[N, F]``.

    Examples:
        >>> import torch
        >>> from sopool.ops.message_passing.neighbors import neighbors_of
        >>> from sopool.ops.message_passing.shifted import aggregate_shifted
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> graph = neighbors_of(edges, num_nodes=2, edge_attr=torch.tensor([[2.0], [6.0]]))
        >>> aggregate_shifted(torch.tensor([[1.0], [-5.0]]), graph, graph.values.attributes).flatten()
        tensor([ 2., -2.])
    """
    messages = (gather(x, senders(neighbors)) + shifts).relu()
    if weights is not None:
        messages = messages * weights.to(x.dtype).unsqueeze(1)
    total = collect(messages, Places.in_lists(neighbors.ptr, messages.shape[0]))
    return total + x.clamp(max=0)  # the node itself, of which the sum has relu(x_i)
