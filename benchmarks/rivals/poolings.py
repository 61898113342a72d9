"""Common implementations of each pooling: layers of PyG where they exist, otherwise padding to the largest graph."""

import torch
from torch_geometric.nn import SAGPooling, TopKPooling, dense_diff_pool
from torch_geometric.nn.aggr import (
    AttentionalAggregation,
    MaxAggregation,
    MeanAggregation,
    SortAggregation,
    SumAggregation,
)
from torch_geometric.utils import to_dense_adj, to_dense_batch

CAPACITY = 6e9
"""The size of padded adjacency matrices, in bytes, above which a dense pooling is not run."""


class RefusedError(RuntimeError):
    """Raised if an implementation would not fit into memory."""


class Padded(torch.nn.Module):
    """Nodes padded to the largest graph, then a formula on ``[G, most, F]``."""

    def __init__(self, channels, width, formula):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(channels, width) / channels**0.5) if width else None
        self.formula = formula

    def forward(self, x, batch):
        return self.formula(*to_dense_batch(x, batch), self.weight)


def covariance(h, mask, w):
    z = h if w is None else h @ w
    mean = z.sum(1, keepdim=True) / mask.sum(1).view(-1, 1, 1)
    z = (z - mean) * mask.unsqueeze(2)
    return (z.mT @ z).flatten(1)


PADDED = {
    "sopool": (0, lambda h, mask, w: (h.mT @ h).flatten(1)),
    "sopool-bimap": (32, lambda h, mask, w: ((h @ w).mT @ (h @ w)).flatten(1)),
    "sopool-attn": (1, lambda h, mask, w: (h.mT @ (h @ w)).flatten(1)),
    "sopool-m-attn": (8, lambda h, mask, w: ((h @ w).mT @ h).flatten(1)),
    "covpool": (32, covariance),
}
RIVALS = (*PADDED, "sum", "mean", "max", "attnpool", "sortpool", "topkpool", "sagpool", "diffpool")


class Sorted(torch.nn.Module):
    """PyG's sorting and PyTorch's convolutions, as in DGCNN."""

    def __init__(self, channels, k):
        super().__init__()
        self.sort = SortAggregation(k)
        self.first = torch.nn.Conv1d(1, 16, channels, channels)
        self.second = torch.nn.Conv1d(16, 32, 5)

    def forward(self, x, batch):
        z = self.first(self.sort(x, batch).unsqueeze(1)).relu()
        return self.second(torch.nn.functional.max_pool1d(z, 2)).relu().flatten(1)


class Selected(torch.nn.Module):
    """Layers of PyG that keep half of the nodes, and the maximum and mean of the remaining nodes."""

    def __init__(self, pool):
        super().__init__()
        self.pool = pool

    def forward(self, x, edge_index, batch, size):
        x, _, _, batch, *_ = self.pool(x, edge_index, batch=batch)
        return torch.cat([pool(x, batch, dim_size=size) for pool in (MaxAggregation(), MeanAggregation())], 1)


class Assigned(torch.nn.Module):
    """PyG's DiffPool on padded adjacency matrices, with one dense convolution for the assignment."""

    def __init__(self, channels, clusters=8):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(channels, clusters) / channels**0.5)

    def forward(self, x, edge_index, batch, size):
        h, mask = to_dense_batch(x, batch)
        adj = to_dense_adj(edge_index, batch, batch_size=size)
        loops = adj + torch.eye(adj.shape[1], device=x.device)
        share = loops.sum(2, keepdim=True).clamp(min=1).rsqrt()
        logits = share * (loops @ (share * (h @ self.weight)))
        pooled, _, link, entropy = dense_diff_pool(h, adj, logits, mask)
        return pooled.flatten(1), link + entropy


def rival(name, channels, batch, options, device):
    """Return the layer, and a function that applies it to node features."""
    size = batch.ptr.numel() - 1
    index = torch.repeat_interleave(torch.arange(size, device=device), batch.ptr.diff())
    neighbors = batch.neighbors
    target = torch.repeat_interleave(torch.arange(len(index), device=device), neighbors.ptr.diff())
    edge_index = torch.stack([neighbors.nodes, target])[:, neighbors.nodes != target]
    if name in PADDED:
        layer = Padded(channels, *PADDED[name])
        return layer.to(device), lambda x: (layer(x, index), None)
    if name in ("sum", "mean", "max", "attnpool", "sortpool"):
        gate = torch.nn.Linear(channels, 1, bias=False)
        make = {"sum": SumAggregation, "mean": MeanAggregation, "max": MaxAggregation}
        make |= {"attnpool": lambda: AttentionalAggregation(gate), "sortpool": lambda: Sorted(channels, options["k"])}
        layer = make[name]().to(device)
        if name == "sortpool":
            return layer, lambda x: (layer(x, index), None)
        return layer, lambda x: (layer(x, index, dim_size=size), None)
    if name == "diffpool":
        needed = 4.0 * size * int(batch.ptr.diff().max()) ** 2
        if needed > CAPACITY:
            raise RefusedError(f"A alone {needed / 2**30:.0f} GiB")
        layer = Assigned(channels).to(device)
        return layer, lambda x: layer(x, edge_index, index, size)
    layer = Selected({"topkpool": TopKPooling, "sagpool": SAGPooling}[name](channels)).to(device)
    return layer, lambda x: (layer(x, edge_index, index, size), None)
