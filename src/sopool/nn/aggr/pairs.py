import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.aggr.base import repr_of
from sopool.nn.aggr.normalize import check_normalize, normalize_pooled, widen_for
from sopool.nn.layers import project
from sopool.ops.message_passing.pairs import Pairs, find_pairs, list_pairs
from sopool.ops.segment.first_order import segment_sum
from sopool.ops.segment.gram import promote
from sopool.ops.segment.pairs import count_pairs, segment_pairs, segment_walks
from sopool.ops.segment.segments import Segments, check_edges, find_segments

NORMALIZATIONS = (None, "size", "pairs", "norm", "sqrt", "log")


class PairSecondOrderAggregation(torch.nn.Module):
    r"""Second-order pooling across nodes: one matrix for the pairs of nodes at each distance.

    .. math::
        S_k = Z^{\top} D_k Z, \quad Z = H W, \quad W \in \mathbb{R}^{F \times R}, \quad k = 0, \ldots, K

    :math:`D_k` has a one for each pair of nodes that are k steps apart, the number of edges of a shortest path;
    :math:`D_0` is the identity, so :math:`S_0` is what :class:`BilinearSecondOrderAggregation` returns. The matrices of
    each graph are flattened and concatenated.

    Pairs are found in every call from ``edge_index``, or once for a data set by the transform
    :class:`~sopool.nn.AddPairs`.

    Args:
        channels: Number of node features ``F``.
        rank: Width ``R`` of the mapping W; ``None`` for Z = H. Default: ``16``.
        distances: The largest distance ``K``. Default: ``6``.
        rest: Whether to add the matrix of all pairs that are farther apart or not connected. Default: ``False``.
        walks: Whether to use powers of the normalized adjacency matrix in place of the :math:`D_k`. They need no pairs,
            only edges, but tell no more graphs apart than message passing does. Default: ``False``.
        normalize: ``None``, ``"size"`` (divide by the number of nodes), ``"pairs"`` (divide each matrix by the number
            of its pairs), ``"norm"`` (scale all matrices of a graph to unit length together), ``"sqrt"`` (signed
            square root of each entry, then scaled to unit length) or ``"log"`` (log(1 + v) of each entry v, and
            -log(1 - v) if it is negative). Default: ``None``.
        with_sum: Whether to append the sum of the node features of each graph, which is not normalized. Default:
            ``False``.

    Shapes:
        - **input:** node features ``[N, F]``, edges ``[2, E]`` and ``batch`` ``[N]``, or pairs ``[2, P]``, ``[P]``
        - **output:** graph embeddings ``[G, C * R * R]`` with C = K + 1, or K + 2 with the rest; with ``with_sum``, F
          wider

    Examples:
        >>> import torch
        >>> x = torch.randn(5, 8)  # 5 nodes with 8 features
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
        >>> batch = torch.tensor([0, 0, 0, 1, 1])
        >>> PairSecondOrderAggregation(8, rank=4, distances=2)(x, edge_index, batch).shape
        torch.Size([2, 48])
    """

    def __init__(
        self,
        channels: int,
        rank: int | None = 16,
        distances: int = 6,
        rest: bool = False,
        walks: bool = False,
        normalize: str | None = None,
        with_sum: bool = False,
    ) -> None:
        super().__init__()
        for name, value in (("channels", channels), ("distances", distances), ("rank", 1 if rank is None else rank)):
            if value < 1:
                raise ValueError(f"{name}={value}: it must be at least 1.")
        check_normalize(normalize, NORMALIZATIONS, self)
        if walks and (rest or normalize == "pairs"):
            raise ValueError("With walks=True there are no pairs to count: leave out rest=True and normalize='pairs'.")
        self.channels = channels
        self.rank = rank
        self.distances = distances
        self.rest = rest
        self.walks = walks
        self.normalize = normalize
        self.with_sum = with_sum
        self.weight = None if rank is None else torch.nn.Parameter(torch.empty(channels, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize W as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.weight)

    @property
    def out_channels(self) -> int:
        """The width of the output."""
        width = self.channels if self.rank is None else self.rank
        return (self.distances + 1 + self.rest) * width**2 + self.with_sum * self.channels

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        pair_index: Tensor | None = None,
        pair_distance: Tensor | None = None,
    ) -> Tensor:
        """Pool a batch of graphs in PyG's format.

        Args:
            x: Node features ``[N, F]``.
            edge_index: Directed edges ``[2, E]``; repeated edges and self-loops change nothing. Default: ``None``, if
                pairs are given.
            batch: The graph of each node ``[N]``, in any order. Default: ``None``, for a single graph.
            batch_size: The number of graphs. Default: ``None``, which means ``batch.max() + 1``.
            pair_index: All pairs of nodes up to ``distances``, ``[2, P]``, as :class:`~sopool.nn.AddPairs` adds them.
                Default: ``None``, they are found from the edges.
            pair_distance: The distance of each pair ``[P]``. Default: ``None``.
        """
        self._check_features(x)
        if batch is None:
            batch = torch.zeros(x.shape[0], dtype=torch.long, device=x.device)
            batch_size = 1 if batch_size is None else batch_size
        segments = find_segments(x.shape[0], x.device, index=batch, dim_size=batch_size)
        if pair_index is None and pair_distance is None:
            edges = _checked("edge_index", edge_index)
            check_edges(edges, batch)
            return self.pool(x, find_pairs(edges, x.shape[0], self._reach), segments)
        ends, distance = _checked_pairs(pair_index, pair_distance)
        check_edges(ends, batch, "pair")
        return self.pool(x, list_pairs(ends, distance, x.shape[0], self._reach), segments)

    @property
    def _reach(self) -> int:
        """The largest distance whose pairs are needed."""
        return 1 if self.walks else self.distances

    def pool(self, x: Tensor, pairs: Pairs, segments: Segments) -> Tensor:
        """Compute the readout of rows ``[N, F]`` of some graphs, given the pairs of their nodes."""
        dtype = promote(x).dtype
        wide = widen_for(self.normalize, x)
        z = wide
        if self.weight is not None:
            z = project(wide, widen_for(self.normalize, self.weight), *segments)
        options = segments._asdict()
        if self.walks:
            pooled = segment_walks(z, pairs, self.distances, **options)
        else:
            pooled = segment_pairs(z, pairs, rest=self.rest, **options)
        out = self._normalized(pooled, pairs, segments).flatten(1).to(dtype)
        if not self.with_sum:
            return out
        return torch.cat([out, segment_sum(x, *segments)], 1)

    def _normalized(self, pooled: Tensor, pairs: Pairs, segments: Segments) -> Tensor:
        """Normalize the matrices ``[G, C, R, R]``."""
        if self.normalize == "pairs":
            numbers = count_pairs(pairs, rest=self.rest, **segments._asdict())
            return pooled / numbers.clamp(min=1).to(pooled.dtype).unsqueeze(2).unsqueeze(3)
        return normalize_pooled(pooled, segments.ptr, self.normalize)

    def _check_features(self, x: Tensor) -> None:
        if x.dim() != 2 or x.shape[1] != self.channels:
            raise ValueError(f"x has shape {list(x.shape)}: {self!r} expects [nodes, {self.channels}].")
        if not x.is_floating_point():
            raise TypeError(f"x has dtype {x.dtype}: pass floating-point features, for example x.float().")

    def __repr__(self) -> str:
        return repr_of(self)


def _checked_pairs(pair_index: Tensor | None, pair_distance: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the pairs; raise unless they have valid shapes, types and distances."""
    ends = _checked("pair_index", pair_index)
    if pair_distance is None:
        raise ValueError("pair_index is given without pair_distance: pass both, as AddPairs adds them.")
    if pair_distance.shape != ends.shape[1:] or pair_distance.is_floating_point():
        raise ValueError(
            f"pair_distance has dtype {pair_distance.dtype} and shape {list(pair_distance.shape)} for "
            f"{ends.shape[1]} pairs: it must have one integer per pair."
        )
    if pair_distance.device.type == "cpu" and bool((pair_distance < 1).any()):
        at = int((pair_distance < 1).nonzero()[0])
        raise ValueError(
            f"pair_distance[{at}] is {int(pair_distance[at])}: distances begin with 1. Leave out the pairs of a node "
            "and itself, which are known."
        )
    return ends, pair_distance


def _checked(name: str, index: Tensor | None) -> Tensor:
    """Return ``index``; raise unless it is given with a valid shape and type."""
    if index is None:
        raise ValueError(f"{name} is not given: pass edge_index, or both pair_index and pair_distance.")
    if index.dim() != 2 or index.shape[0] != 2 or index.is_floating_point():
        what = name.removesuffix("_index")
        raise ValueError(
            f"{name} has dtype {index.dtype} and shape {list(index.shape)}: it must be integers of shape [2, {what}s]."
        )
    return index
