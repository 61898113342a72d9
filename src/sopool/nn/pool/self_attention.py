from torch import Tensor

from sopool.nn.layers import project
from sopool.nn.pool.top_k import SelectPooling
from sopool.nn.registry import pooling, readout
from sopool.ops.message_passing.structure import GraphStructure, propagate_normalized


@pooling("sagpool")
@readout(
    "sagpool",
    formula="y = D^-1/2 (A + I) D^-1/2 H theta, then as topkpool",
    cost="N f + N log N + E",
    vector="max and mean over the nodes left",
    default="k = n / 2",
    paper="Lee et al. 2019, arXiv 1904.08082",
    vector_from="max-mean",
)
class SelfAttentionPooling(SelectPooling):
    r"""Self-attention graph pooling (SAGPool) from the `"Self-Attention Graph Pooling"
    <https://arxiv.org/abs/1904.08082>`_ paper: a graph convolution scores the nodes.

    .. math:: y = D^{-1/2} (A + I) D^{-1/2} H \theta, \quad i = \mathrm{top}_{\lceil r n \rceil}(y), \quad
        H' = H_i \odot \tanh(y_i), \quad A' = A_{i, i}

    An edge that is given several times, as between clusters, counts as often; PyG's layer leaves weights out.

    Args:
        channels: Number of node features :math:`f`.
        ratio: The share :math:`r` of nodes to keep.
    """

    def score(self, x: Tensor, graphs: GraphStructure) -> Tensor:
        """The convolution to one channel: first the map, so that one number for each node is sent around."""
        return propagate_normalized(project(x, self.query, graphs.ptr), graphs.neighbors)
