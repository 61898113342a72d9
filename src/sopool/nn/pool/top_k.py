import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.layers import project
from sopool.nn.pool.base import EdgePooling, PoolingOutput
from sopool.nn.registry import pooling, readout
from sopool.ops.message_passing.select import Selection, between, select_top
from sopool.ops.message_passing.structure import GraphStructure
from sopool.ops.segment.standard import total


class SelectPooling(EdgePooling):
    r"""Base class of poolings that keep the nodes with the highest scores and the edges between them.

    .. math:: i = \mathrm{top}_{\lceil r n \rceil}(y), \quad H' = H_i \odot \tanh(y_i), \quad A' = A_{i, i}

    Among nodes with equal scores the first ones are kept, so the result may depend on the order of the nodes.

    Args:
        channels: Number of node features ``F``.
        ratio: The fraction :math:`r` of nodes to keep. Default: ``0.5``.
    """

    def __init__(self, channels: int, ratio: float = 0.5) -> None:
        super().__init__(channels)
        if not 0 < ratio <= 1:
            raise ValueError(f"ratio={ratio}: the fraction of nodes to keep must be above 0 and at most 1.")
        self.ratio = ratio
        self.query = torch.nn.Parameter(torch.empty(channels, 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the query as ``torch.nn.Linear`` does."""
        uniform(self.channels, self.query)

    def score(self, x: Tensor, graphs: GraphStructure) -> Tensor:
        """Return the score of each node ``[N, 1]``."""
        raise NotImplementedError(f"{type(self).__name__} must define score(x, graphs).")

    def pool(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """Score the nodes, keep the best, and scale them by their scores."""
        return self._select(x, graphs)

    def pool_exactly(self, x: Tensor, graphs: GraphStructure) -> PoolingOutput:
        """Pool as ``pool`` does, but without unused rows in the output."""
        return self._select(x, graphs, exact=True)

    def _select(self, x: Tensor, graphs: GraphStructure, exact: bool | None = None) -> PoolingOutput:
        score = self.score(x, graphs)
        chosen = select_top(score.detach().squeeze(1), graphs, self.ratio, exact)
        gate = score.index_select(0, chosen.rows).tanh()
        if chosen.spare is not None:
            gate = gate.masked_fill(chosen.spare.unsqueeze(1), 0)
        return PoolingOutput(
            x.index_select(0, chosen.rows) * gate,
            chosen.ptr,
            lambda: GraphStructure(chosen.ptr, between(graphs.neighbors, chosen)),
            lambda y: _lift(y, chosen, x.shape[0]),
        )


@pooling("topkpool")
@readout(
    "topkpool",
    formula="y = H p / |p|, H' = (H * tanh y)[top k], A' = A[top k, top k]",
    cost="N f + N log N + E",
    vector="max and mean of the kept nodes",
    default="k = n / 2",
    paper="Gao and Ji 2019, arXiv 1905.05178",
    vector_from="max-mean",
)
class TopKPooling(SelectPooling):
    r"""Top-k pooling, in which a learned projection scores the nodes.

    .. math:: y = H p / \|p\|, \quad i = \mathrm{top}_{\lceil r n \rceil}(y), \quad H' = H_i \odot \tanh(y_i), \quad
        A' = A_{i, i}

    From the paper `"Graph U-Nets" <https://arxiv.org/abs/1905.05178>`_.

    Args:
        channels: Number of node features ``F``.
        ratio: The fraction :math:`r` of nodes to keep. Default: ``0.5``.

    Shapes:
        - **input:** node features ``[N, F]``, ``edge_index`` ``[2, E]``, ``batch`` ``[N]``
        - **output:** a :class:`~sopool.nn.PoolingOutput`

    Examples:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
        >>> batch = torch.tensor([0, 0, 0, 1, 1])
        >>> TopKPooling(8, ratio=0.5)(torch.randn(5, 8), edge_index, batch).ptr
        tensor([0, 2, 3])
    """

    def score(self, x: Tensor, graphs: GraphStructure) -> Tensor:
        """Compute H p / norm(p)."""
        return project(x, self.query / self.query.norm(dim=-2, keepdim=True), graphs.ptr)


def _lift(y: Tensor, chosen: Selection, nodes: int) -> Tensor:
    """Return the values of the kept nodes at their original positions, and zeros for the other nodes."""
    if chosen.spare is not None:
        y = y.masked_fill(chosen.spare.unsqueeze(1), 0)
    return total(y, chosen.rows, nodes)
