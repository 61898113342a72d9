import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.aggr.terms import Sums, Terms, identity
from sopool.nn.layers import project
from sopool.nn.registry import SOPOOL, readout
from sopool.ops import segment_gram, segment_softmax
from sopool.ops.segment.gram import promote
from sopool.ops.segment.segments import Segments
from sopool.ops.segment.torch_backend import widen


@readout("attnpool", formula="H^T softmax(H mu)", cost="N f", paper=SOPOOL)
class SoftmaxAttentionAggregation(SegmentAggregation):
    r"""Attentional pooling (AttnPool) with a softmax over the nodes of each graph.

    .. math::
        \mathrm{AttnPool}(H) = H^{\top} \mathrm{softmax}(H \mu) \in \mathbb{R}^{F}, \quad \mu \in \mathbb{R}^{F}

    It cannot distinguish graphs in which the same node embeddings occur in the same proportions (Figure 2 of the
    paper). The values equal those of PyG's ``AttentionalAggregation(Linear(channels, 1, bias=False))``, which with
    ``ptr`` has no second derivative and accepts two-dimensional input only. As defined in
    `"Second-Order Pooling for Graph Neural Networks" <https://arxiv.org/abs/2007.10467>`_.

    Args:
        channels: Number of node features ``F``.

    Shapes:
        - **input:** node features ``[*, N, F]``, with ``index`` ``[N]`` or ``ptr`` ``[G + 1]``
        - **output:** graph embeddings ``[*, G, F]``

    Examples:
        >>> import torch
        >>> x = torch.randn(6, 8)  # 6 nodes with 8 features
        >>> batch = torch.tensor([0, 0, 0, 1, 1, 1])
        >>> SoftmaxAttentionAggregation(8)(x, batch).shape
        torch.Size([2, 8])
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.query = torch.nn.Parameter(torch.empty(channels, 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the query as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.query)

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """Compute H^T softmax(H mu) for each graph."""
        segments = Segments(ptr, order)
        weight = segment_softmax(segments.sort(widen(project(x, self.query, ptr, order))), ptr)
        pooled = segment_gram(widen(x), segments.unsort(weight), ptr, order=order)
        return pooled.squeeze(2).to(promote(x).dtype)

    def terms(self, x: Tensor) -> Terms | None:
        """Return the terms of one graph: each node adds its features times its softmax weight."""
        return Terms(None, Sums(x * (x @ self.query).softmax(0), identity(x)), lambda s: s, True)
