from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.aggr.base import GraphReadout, repr_of
from sopool.nn.aggr.normalize import check_normalize, normalize_pooled, widen_for
from sopool.nn.aggr.terms import LINEAR, PairProducts, Sums, Terms, identity
from sopool.nn.layers import GraphNorm, project
from sopool.nn.registry import readout
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.message_passing.pairs import Pairs, find_pairs, list_pairs
from sopool.ops.message_passing.structure import GraphStructure
from sopool.ops.segment.first_order import segment_sum
from sopool.ops.segment.gram import promote
from sopool.ops.segment.pairs import count_pairs, segment_pairs, segment_walks
from sopool.ops.segment.segments import Segments, check_edges, find_segments
from sopool.ops.segment.standard import exporting

NORMALIZATIONS = (None, "size", "pairs", "norm", "sqrt", "log")


@readout(
    "sopool-pairs",
    formula="W^T H^T D_k H W for k = 0 ... K, D_k: pairs of nodes k steps apart",
    cost="N f r + P r + N K r^2, pairs once per data set",
    vector="flattened, (K + 1) r^2, and the sum, f",
    default="r = 16, K = 6, unit length, all layers, beside the sum",
    paper="this package",
    options={"normalize": "norm", "with_sum": True, "decay": 0.1},
)
class PairSecondOrderAggregation(GraphReadout):
    r"""Second-order pooling across nodes: one matrix for the pairs of nodes at each distance.

    .. math::
        S_k = Z^{\top} D_k Z, \quad Z = H W, \quad W \in \mathbb{R}^{F \times R}, \quad k = 0, \ldots, K

    :math:`D_k` has a one for each pair of nodes that are k steps apart, the number of edges of a shortest path;
    :math:`D_0` is the identity, so :math:`S_0` is what :class:`BilinearSecondOrderAggregation` returns. The matrices of
    each graph are flattened and concatenated.

    Pairs are found in every call from ``edge_index``, or once for a data set by the transform
    :class:`~sopool.nn.AddPairs`.

    Args:
        channels: Number of node features ``F``, or the widths of the layers that they are concatenated from.
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
        layers: How many of the layers in ``channels``, counted from the first, enter the pairs; the sum has all.
            Default: ``None``, which means all.
        batch_norm: Whether to batch normalize the matrices, after ``normalize``. Default: ``False``.
        lr_scale: Learning rate of the pairs relative to the other parameters when training with Adam: that of W, and
            of the weights of a linear layer that follows. W is ``lr_scale`` times the stored parameter, which is
            initialized correspondingly larger, and the matrices are multiplied by ``lr_scale``. Default: ``1.0``.
        decay: Decoupled weight decay of W and of the weights of the linear layer that follows, as in AdamW. The models
            of this package apply it in training; any other optimizer needs it in its parameter groups. Default:
            ``0.0``.

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

    capturable = True

    def __init__(
        self,
        channels: int | Sequence[int],
        rank: int | None = 16,
        distances: int = 6,
        rest: bool = False,
        walks: bool = False,
        normalize: str | None = None,
        with_sum: bool = False,
        layers: int | None = None,
        batch_norm: bool = False,
        lr_scale: float = 1.0,
        decay: float = 0.0,
    ) -> None:
        super().__init__()
        widths = [channels] if isinstance(channels, int) else list(channels)
        counts = {"channels": min(widths, default=0), "distances": distances, "rank": rank, "layers": layers}
        for name, value in counts.items():
            if value is not None and value < 1:
                raise ValueError(f"{name}={value}: it must be at least 1.")
        if not 0 < lr_scale < float("inf"):
            raise ValueError(f"lr_scale={lr_scale!r}: it must be a positive number. To keep W fixed, freeze it.")
        if not 0 <= decay < float("inf"):
            raise ValueError(f"decay={decay!r}: it must be 0 or a positive number.")
        check_normalize(normalize, NORMALIZATIONS, self)
        if walks and (rest or normalize == "pairs"):
            raise ValueError("With walks=True there are no pairs to count: leave out rest=True and normalize='pairs'.")
        self.channels = sum(widths)
        self.paired_channels = sum(widths[:layers])
        self.rank = rank
        self.distances = distances
        self.rest = rest
        self.walks = walks
        self.normalize = normalize
        self.with_sum = with_sum
        self.layers = layers
        self.batch_norm = batch_norm
        self.lr_scale = lr_scale
        self.decay = decay
        self.weight = None if rank is None else torch.nn.Parameter(torch.empty(self.paired_channels, rank))
        self.norm = GraphNorm(self.pair_width) if batch_norm else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize W as ``torch.nn.Linear`` does, and the batch normalization."""
        uniform(self.paired_channels * self.lr_scale**2, self.weight)
        if self.norm is not None:
            self.norm.reset_parameters()

    @property
    def mapping(self) -> Tensor | None:
        """The mapping W; ``None`` if there is none."""
        return self.weight if self.weight is None or self.lr_scale == 1 else self.lr_scale * self.weight

    @property
    def pair_width(self) -> int:
        """The number of entries of all matrices of a graph."""
        width = self.paired_channels if self.rank is None else self.rank
        return (self.distances + 1 + self.rest) * width**2

    @property
    def out_channels(self) -> int:
        """The width of the output."""
        return self.pair_width + self.with_sum * self.channels

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
            return self.pool(x, find_pairs(edges, x.shape[0], self.reach), segments)
        ends, distance = _checked_pairs(pair_index, pair_distance)
        check_edges(ends, batch, "pair")
        return self.pool(x, list_pairs(ends, distance, x.shape[0], self.reach), segments)

    @property
    def reach(self) -> int:
        """The largest distance whose pairs are needed."""
        return 1 if self.walks else self.distances

    def read(self, x: Tensor, graphs: GraphStructure) -> tuple[Tensor, None]:
        """Pool graphs whose pairs were listed in advance; there is no additional loss."""
        self._check_features(x)
        return self.pool(x, self.pairs_of(graphs), Segments(graphs.ptr, None)), None

    def pairs_of(self, graphs: GraphStructure) -> Pairs:
        """Return the pairs of the graphs; raise a ``ValueError`` if they were not listed in advance."""
        neighbors = graphs.neighbors
        pairs: Pairs | None = neighbors.extras.get("pairs") if isinstance(neighbors, Neighbors) else None
        if pairs is None or pairs.distances != self.reach:
            raise ValueError(
                f"{self!r} needs the pairs of nodes up to distance {self.reach}, but the graphs have "
                f"{'no pairs' if pairs is None else f'those up to {pairs.distances}'}. List them with "
                "sopool.data.extras.NodePairs, or call the readout with x, edge_index and batch."
            )
        return pairs

    def pool(self, x: Tensor, pairs: Pairs, segments: Segments) -> Tensor:
        """Compute the readout of rows ``[N, F]`` of some graphs, given the pairs of their nodes."""
        dtype = promote(x).dtype
        z = widen_for(self.normalize, x[:, : self.paired_channels])
        w = self.mapping
        if w is not None:
            z = project(z, widen_for(self.normalize, w), *segments)
        out = self._finish(self.matrices(z, pairs, segments), pairs, segments).to(dtype)
        if not self.with_sum:
            return out
        return torch.cat([out, segment_sum(x, *segments)], 1)

    def matrices(self, z: Tensor, pairs: Pairs, segments: Segments) -> Tensor:
        """Return the matrices of each graph ``[G, C, R, R]``, not normalized."""
        if self.walks:
            return segment_walks(z, pairs, self.distances, **segments._asdict())
        return segment_pairs(z, pairs, rest=self.rest, **segments._asdict())

    def terms(self, x: Tensor, graphs: GraphStructure | None) -> Terms:
        """Return the terms of one graph ``[N, F]``, for explanations."""
        assert graphs is not None
        pairs = self.pairs_of(graphs)
        segments = Segments(graphs.ptr, None)
        rows = x[:, : self.paired_channels]
        weight = identity(rows) if self.mapping is None else self.mapping

        def matrices(z: Tensor) -> Tensor:
            return self.matrices(z, pairs, segments)[0]

        def finish(pooled: Tensor, *sums: Tensor) -> Tensor:
            return torch.cat([self._finish(pooled.unsqueeze(0), pairs, segments)[0], *sums])

        first = Sums(x, identity(x)) if self.with_sum else None
        listed = None if self.walks else pairs
        products = PairProducts(rows, weight, matrices, listed)
        return Terms(products, first, finish, self.normalize in (*LINEAR, "pairs"))

    def _finish(self, pooled: Tensor, pairs: Pairs, segments: Segments) -> Tensor:
        """Normalize, flatten and scale the matrices ``[G, C, R, R]``."""
        out = self._normalized(pooled, pairs, segments).flatten(1)
        if self.norm is not None:
            out = self.norm(out)
        return out if self.lr_scale == 1 else self.lr_scale * out

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
    if pair_distance.device.type == "cpu" and not exporting() and bool((pair_distance < 1).any()):
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
