"""A transform of PyG that adds the pairs of nodes at each distance to graphs."""

from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from sopool.ops.message_passing.pairs import find_pairs


class AddPairs(BaseTransform):
    r"""Add the pairs of nodes that are up to ``distances`` steps apart, for :class:`PairSecondOrderAggregation`.

    The graph gets the attributes ``pair_index`` ``[2, P]``, the first and the second node of each pair, and
    ``pair_distance`` ``[P]``, the number of edges of a shortest path from the first to the second node. In an
    undirected graph each pair occurs in both orders. In batches, PyG increments ``pair_index`` as it does
    ``edge_index``. Use it as ``pre_transform``, so that pairs are found once.

    Args:
        distances: The largest distance ``K``, at least that of the readout. Default: ``6``.

    Examples:
        >>> import torch
        >>> from torch_geometric.data import Batch, Data
        >>> path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> path = AddPairs(distances=2)(path)
        >>> path.pair_index, path.pair_distance
        (tensor([[0, 0, 1, 1, 2, 2],
                [1, 2, 0, 2, 1, 0]]), tensor([1, 2, 1, 1, 1, 2]))
        >>> Batch.from_data_list([path, path]).pair_index[0]
        tensor([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    """

    def __init__(self, distances: int = 6) -> None:
        if distances < 1:
            raise ValueError(f"distances={distances}: it must be the largest distance between two nodes, at least 1.")
        self.distances = distances

    def forward(self, data: Data) -> Data:
        """Return the graph with the attributes ``pair_index`` and ``pair_distance``."""
        if data.edge_index is None:
            raise ValueError("The graph has no edge_index, from which pairs are found: add one, empty without edges.")
        pairs = find_pairs(data.edge_index, data.num_nodes, self.distances)
        data.pair_index, data.pair_distance = pairs.coordinates()
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}(distances={self.distances})"
