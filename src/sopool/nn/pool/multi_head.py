import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.aggr.normalize import widen_for
from sopool.nn.layers import project
from sopool.nn.pool.base import EdgePooling, dense_pooled
from sopool.nn.pool.output import PoolingOutput
from sopool.nn.registry import pooling
from sopool.ops import segment_gram, segment_spread, segment_sum
from sopool.ops.message_passing.dense import normalize_by_degree
from sopool.ops.message_passing.structure import GraphStructure, propagate
from sopool.ops.segment.first_order import segment_amax, segment_sizes
from sopool.ops.segment.gram import promote


@pooling("sopool-m-attn", options={"heads": 16}, nodes_option="heads")
class MultiHeadSecondOrderPooling(EdgePooling):
    r"""Multi-head attentional second-order pooling (SOPool\ :sub:`m_attn`) as a pooling layer.

    .. math::
        C = U H^{\top}, \quad H' = C H \in \mathbb{R}^{K \times F}, \quad A' = C A C^{\top} \in \mathbb{R}^{K \times K}

    Here :math:`A_{ij}` is the summed weight of the edges :math:`i \to j` (``edge_index[0] = i``, ``edge_index[1] =
    j``). Time and memory are linear in nodes and edges. From the paper
    `"Second-Order Pooling for Graph Neural Networks" <https://arxiv.org/abs/2007.10467>`_.

    Args:
        channels: Number of node features ``F``.
        heads: Number of queries ``K``, the nodes of each pooled graph.
        normalize: ``"adjacency"`` divides each entry of :math:`A'` by the square roots of the sums of absolute values
            of its row and its column; :math:`A'` may be negative. ``"norm"`` also divides :math:`C` by the Frobenius
            norm of the graph's :math:`H`, so that :math:`H'` is as large as the features and grows with the square root
            of the number of nodes. ``"degree"`` divides :math:`C` by the number of nodes instead. ``None`` is the
            paper's formula, whose values grow from block to block. Default: ``"norm"``.

    Shapes:
        - **input:** node features ``[N, F]``, ``edge_index`` ``[2, E]``, ``edge_weight`` ``[E]``, ``batch`` ``[N]``
        - **output:** a :class:`~sopool.nn.PoolingOutput` with node features ``[G * K, F]``

    Examples:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
        >>> batch = torch.tensor([0, 0, 0, 1, 1])
        >>> pooled = MultiHeadSecondOrderPooling(8, heads=4)(torch.randn(5, 8), edge_index, batch=batch)
        >>> pooled.x.shape, pooled.adj.shape
        (torch.Size([8, 8]), torch.Size([2, 4, 4]))
    """

    def __init__(self, channels: int, heads: int, normalize: str | None = "norm") -> None:
        super().__init__(channels)
        if heads < 1:
            raise ValueError(f"heads={heads}: it must be at least 1.")
        if normalize not in ("norm", "degree", "adjacency", None):
            raise ValueError(
                f"normalize={normalize!r}: choose 'norm', 'degree', 'adjacency', or None for the paper's formula."
            )
        self.heads = heads
        self.normalize = normalize
        self.queries = torch.nn.Parameter(torch.empty(heads, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the queries as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.queries)

    @property
    def nodes(self) -> int:
        """The number of nodes of each pooled graph, ``heads``."""
        return self.heads

    def pool(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """Compute C H and C A C^T as a batch of graphs for the next block."""
        dtype = promote(x).dtype
        rows = widen_for(self.normalize, x)
        contribution = self._contribution(rows, graphs.ptr)
        aggregated = propagate(contribution, graphs.neighbors) - contribution
        both = segment_gram(contribution, torch.cat([rows, aggregated], 1), graphs.ptr)
        pooled, adj = both.split([self.channels, self.heads], dim=2)
        by_degree = normalize_by_degree if self.normalize else lambda weights: weights
        return dense_pooled(pooled.to(dtype), lambda: by_degree(adj).to(dtype), contribution.to(dtype), graphs.ptr)

    def _contribution(self, rows: Tensor, ptr: Tensor) -> Tensor:
        """Return C transposed ``[N, K]``, divided as ``normalize`` says."""
        queries = widen_for(self.normalize, self.queries.mT)
        contribution = project(unit_norm(rows, ptr) if self.normalize == "norm" else rows, queries, ptr)
        if self.normalize == "degree":
            share = 1 / segment_sizes(ptr, like=contribution)
            contribution = contribution * segment_spread(share, ptr, rows.shape[0])
        return contribution


def unit_norm(x: Tensor, ptr: Tensor) -> Tensor:
    """Divide the rows ``[N, F]`` of each graph by their Frobenius norm; rows of zeros stay zero.

    They are first divided by the largest entry of their graph, so that neither squares nor gradients overflow.
    """
    kind = torch.finfo(x.dtype)
    with torch.no_grad():  # the scale cancels out, so it needs no gradient
        largest = segment_amax(x.abs().amax(1, keepdim=True), ptr)
        scale = torch.where(largest <= kind.tiny / kind.eps, 1.0, largest)
    scaled = x * segment_spread(1 / scale, ptr, x.shape[0])
    squares = segment_sum(scaled.square().sum(1, keepdim=True), ptr)
    return scaled * segment_spread(torch.where(squares == 0, 1.0, squares).rsqrt(), ptr, x.shape[0])
