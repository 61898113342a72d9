"""The usual ways to write the second-order readouts: padding, a loop over the graphs, or adding up weighted rows."""

import torch
from torch import Tensor
from torch_geometric.utils import to_dense_batch


def padded_bimap(
    x: Tensor, weight: Tensor, batch: Tensor, graphs: int | None = None, largest: int | None = None
) -> Tensor:
    """Return W^T H^T H W of each graph by padding all graphs to the largest: [G, rank^2].

    Without the number of ``graphs`` and the nodes of the ``largest``, both are read from ``batch``.
    """
    z, _ = to_dense_batch(x @ weight, batch, max_num_nodes=largest, batch_size=graphs)
    pooled: Tensor = torch.bmm(z.transpose(1, 2), z).flatten(1)
    return pooled


def looped_bimap(x: Tensor, weight: Tensor, ptr: Tensor) -> Tensor:
    """Return the same by a product for each graph."""
    return torch.stack([z.t() @ z for z in (x @ weight).split(ptr.diff().tolist())]).flatten(1)


def index_add_attn(x: Tensor, query: Tensor, batch: Tensor, graphs: int) -> Tensor:
    """Return H^T H mu of each graph by adding up weighted rows: [G, channels]."""
    return x.new_zeros(graphs, x.shape[1]).index_add(0, batch, x * (x @ query))
