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
    vector="max and mean of the kept nodes",
    default="k = n / 2",
    paper="Lee et al. 2019, arXiv 1904.08082",
    vector_from="max-mean",
)
class SelfAttentionPooling(SelectPooling):
    r"""Self-attention graph pooling (SAGPool), in which a graph convolution scores the nodes.

    .. math:: y = D^{-1/2} (A + I) D^{-1/2} H \theta, \quad i = \mathrm{top}_{\lceil r n \rceil}(y), \quad
        H' = H_i \odot \tanh(y_i), \quad A' = A_{i, i}

    It is called like PyG's ``SAGPooling``, and gives the same result as that layer with ``GNN=GCNConv`` and
    ``bias=False``. Edge weights and repeated edges count in the scores, with their absolute values in :math:`D`. From
    the paper `"Self-Attention Graph Pooling" <https://arxiv.org/abs/1904.08082>`_.

    Args:
        channels: Number of node features ``F``.
        ratio: The fraction :math:`r` of nodes to keep, or an integer, the number of nodes to keep of each graph. It is
            ignored if ``min_score`` is given. Default: ``0.5``.
        min_score: Keep the nodes whose softmax of :math:`y` is above this value, instead. Default: ``None``.
        multiplier: A factor of the new features. Default: ``1.0``.
        nonlinearity: The function in place of tanh, or its name. Default: ``"tanh"``.

    Shapes:
        - **input:** node features ``[N, F]``, ``edge_index`` ``[2, E]``, ``edge_attr`` ``[E, ...]``, ``batch`` ``[N]``
        - **output:** a :class:`~sopool.nn.PoolingOutput`

    Examples:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
        >>> batch = torch.tensor([0, 0, 0, 1, 1])
        >>> SelfAttentionPooling(8, ratio=0.5)(torch.randn(5, 8), edge_index, batch=batch).ptr
        tensor([0, 2, 3])
    """

    def score(self, x: Tensor, graphs: GraphStructure) -> Tensor:
        """Return a graph convolution to one channel, which maps first so that one number per node is propagated."""
        return propagate_normalized(project(x, self.query, graphs.ptr), graphs.neighbors)
