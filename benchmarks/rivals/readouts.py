"""Common implementations of second-order readouts: padding, a loop over graphs, or sums of weighted rows."""

import torch
from torch import Tensor
from torch_geometric.utils import to_dense_batch


def padded_bimap(
    x: Tensor, weight: Tensor, batch: Tensor, graphs: int | None = None, largest: int | None = None
) -> Tensor:
    """Return W^T H^T H W of each graph ``[G, R^2]``, by padding all graphs to the largest one.

    If ``graphs`` (the number of graphs) and ``largest`` (the largest size) are missing, they are read from ``batch``.
    """
    z, _ = to_dense_batch(x @ weight, batch, max_num_nodes=largest, batch_size=graphs)
    pooled: Tensor = torch.bmm(z.transpose(1, 2), z).flatten(1)
    return pooled


def looped_bimap(x: Tensor, weight: Tensor, ptr: Tensor) -> Tensor:
    """Return W^T H^T H W of each graph, by a matrix product for each graph."""
    return torch.stack([z.t() @ z for z in (x @ weight).split(ptr.diff().tolist())]).flatten(1)


def index_add_attn(x: Tensor, query: Tensor, batch: Tensor, graphs: int) -> Tensor:
    """Return H^T H mu of each graph ``[G, F]``, by adding up weighted rows."""
    return x.new_zeros(graphs, x.shape[1]).index_add(0, batch, x * (x @ query))
