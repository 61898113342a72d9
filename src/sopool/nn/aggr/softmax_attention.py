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
    r"""Attentional pooling (AttnPool) as defined in the `"Second-Order Pooling for Graph Neural Networks"
    <https://arxiv.org/abs/2007.10467>`_ paper, the softmax over the nodes of each graph.

    .. math::
        \mathrm{AttnPool}(H) = H^{\top} \mathrm{softmax}(H \mu) \in \mathbb{R}^{f}, \quad \mu \in \mathbb{R}^{f}

    It cannot tell graphs apart whose node embeddings are equal in proportion (the paper's Figure 2). The values are
    those of PyG's ``AttentionalAggregation(Linear(channels, 1, bias=False))``, which is not used here since with
    ``ptr`` it has no second derivative and takes two-dimensional input only.

    Args:
        channels: Number of node features :math:`f`.

    Shapes:
        - **input:** node features :math:`(*, |\mathcal{V}|, f)`, index :math:`(|\mathcal{V}|)` or ptr
        - **output:** graph embeddings :math:`(*, |\mathcal{G}|, f)`
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.query = torch.nn.Parameter(torch.empty(channels, 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the query anew, as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.query)

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """H^T softmax(H mu)."""
        segments = Segments(ptr, order)
        weight = segment_softmax(segments.sort(widen(project(x, self.query, ptr, order))), ptr)
        pooled = segment_gram(widen(x), segments.unsort(weight), ptr, order=order)
        return pooled.squeeze(2).to(promote(x).dtype)

    def terms(self, x: Tensor) -> Terms | None:
        """Take one graph apart: each node adds itself, weighted by the softmax."""
        return Terms(None, Sums(x * (x @ self.query).softmax(0), identity(x)), lambda s: s, True)
