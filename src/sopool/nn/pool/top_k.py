from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform
from torch_geometric.nn.resolver import activation_resolver

from sopool.nn.layers import project
from sopool.nn.pool.base import GraphPooling
from sopool.nn.pool.edge_list import list_edges
from sopool.nn.pool.inputs import sorted_graphs
from sopool.nn.pool.output import KeptNodes, PoolingOutput
from sopool.nn.registry import pooling, readout
from sopool.ops import segment_softmax
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.select import Selection, between, select_above, select_top
from sopool.ops.message_passing.structure import GraphStructure


class SelectPooling(GraphPooling):
    r"""Base class of poolings that keep the nodes with the highest scores and the edges between them.

    .. math:: i = \mathrm{top}_{\lceil r n \rceil}(y), \quad H' = c \, H_i \odot \sigma(y_i), \quad A' = A_{i, i}

    Among nodes with equal scores the first ones are kept, so the result may depend on the order of the nodes. With
    ``min_score`` :math:`\alpha`, the nodes are kept whose scores have a softmax over their graph above :math:`\alpha`,
    and always the highest; this softmax takes the place of :math:`\sigma(y)`.

    Args:
        channels: Number of node features ``F``.
        ratio: The fraction :math:`r` of nodes to keep, or an integer, the number of nodes to keep of each graph. It is
            ignored if ``min_score`` is given. Default: ``0.5``.
        min_score: The threshold :math:`\alpha`. Default: ``None``.
        multiplier: The factor :math:`c`. Default: ``1.0``.
        nonlinearity: The function :math:`\sigma`, or its name. Default: ``"tanh"``.
    """

    def __init__(
        self,
        channels: int,
        ratio: float | None = 0.5,
        min_score: float | None = None,
        multiplier: float = 1.0,
        nonlinearity: str | Callable[[Tensor], Tensor] = "tanh",
    ) -> None:
        super().__init__(channels)
        if not (min_score is None or isinstance(min_score, Real)):  # the third argument of PyG's SAGPooling is GNN
            raise TypeError(f"min_score={min_score!r}: pass a number, or None. The GNN of the scores cannot be chosen.")
        self.ratio: Any = _checked(ratio) if min_score is None else ratio  # PyG's tests pass None beside min_score
        self.min_score = min_score
        self.multiplier = multiplier
        self.nonlinearity = nonlinearity
        self.capturable = min_score is None  # otherwise the number of nodes depends on their scores
        self.activation = activation_resolver(nonlinearity)
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

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        attn: Tensor | None = None,
        batch_size: int | None = None,
        edge_weight: Tensor | None = None,
    ) -> PoolingOutput:
        """Pool a batch of graphs, with the arguments of PyG's layers in their order, and two more.

        On a GPU this waits for the device, since the number of nodes that are kept must be known.

        Args:
            x: Node features ``[N, F]``.
            edge_index: Edges ``[2, E]``.
            edge_attr: Attributes of the edges ``[E, ...]``; those of the edges that are kept are returned. Default:
                ``None``.
            batch: The graph of each node ``[N]``, in any order. Default: ``None``, for a single graph.
            attn: Other features ``[N, F]`` from which to compute the scores. Default: ``None``, which means ``x``.
            batch_size: The number of graphs. Default: ``None``, which means ``batch.max() + 1``.
            edge_weight: The weight of each edge ``[E]``. Default: ``None``, which means 1.
        """
        if attn is not None and attn.shape != x.shape:
            raise ValueError(f"attn has shape {list(attn.shape)}: it must have the shape of x, {list(x.shape)}.")
        edges = Edges(edge_index, edge_weight, edge_attr)
        x, graphs, order = sorted_graphs(self, x, edges, batch, batch_size)
        if attn is not None and order is not None:
            attn = attn.index_select(0, order)
        pooled = self._select(x, graphs, exact=True, attn=attn)
        return pooled if order is None else pooled.reordered(order)

    def _select(
        self, x: Tensor, graphs: GraphStructure, exact: bool | None = None, attn: Tensor | None = None
    ) -> PoolingOutput:
        if self.min_score is not None and isinstance(graphs.neighbors, Dense):  # different sizes are not dense
            graphs = graphs._replace(neighbors=list_edges(graphs.neighbors))
        score = self.score(x if attn is None else attn, graphs)
        chosen, gate = self._choose(score, graphs, exact)
        if chosen.spare is not None:
            gate = gate.masked_fill(chosen.spare.unsqueeze(1), 0)
        kept = x.index_select(0, chosen.rows) * gate
        return PoolingOutput(
            kept if self.multiplier == 1 else kept * self.multiplier,
            chosen.ptr,
            lambda: GraphStructure(chosen.ptr, between(graphs.neighbors, chosen)),
            KeptNodes(chosen.rows, score.squeeze(1), chosen.spare),
            perm=chosen.rows,
            score=gate.squeeze(1),
        )

    def _choose(self, score: Tensor, graphs: GraphStructure, exact: bool | None) -> tuple[Selection, Tensor]:
        """Return the nodes to keep and the factor of each of them ``[R, 1]``."""
        if self.min_score is not None:
            value = segment_softmax(score, graphs.ptr)
            chosen = select_above(value.detach().squeeze(1), graphs, self.min_score)
            return chosen, value.index_select(0, chosen.rows)
        # tanh is increasing, but it rounds large scores to 1: compare the scores themselves.
        late = self.nonlinearity == "tanh"
        value = score if late else self.activation(score)
        chosen = select_top(value.detach().squeeze(1), graphs, self.ratio, exact)
        gate = value.index_select(0, chosen.rows)
        return chosen, self.activation(gate) if late else gate


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

    It is called like PyG's layer and gives the same result. With ``min_score``, :math:`y = H p`. From the paper
    `"Graph U-Nets" <https://arxiv.org/abs/1905.05178>`_.

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
        >>> TopKPooling(8, ratio=0.5)(torch.randn(5, 8), edge_index, batch=batch).ptr
        tensor([0, 2, 3])
    """

    def score(self, x: Tensor, graphs: GraphStructure) -> Tensor:
        """Compute H p / norm(p), or H p with ``min_score``."""
        query = self.query if self.min_score is not None else self.query / self.query.norm(dim=-2, keepdim=True)
        return project(x, query, graphs.ptr)


def _checked(ratio: Any) -> int | float:
    """Return the ratio as an int or a float, since its type says what it means."""
    if isinstance(ratio, bool) or not isinstance(ratio, Real):
        raise TypeError(f"ratio={ratio!r}: pass a fraction of nodes (a float) or a number of nodes (an int).")
    if isinstance(ratio, Integral):
        if ratio < 1:
            raise ValueError(f"ratio={ratio}: the number of nodes to keep must be at least 1.")
        return int(ratio)
    if not 0 < float(ratio) <= 1:
        raise ValueError(
            f"ratio={ratio}: the fraction of nodes to keep must be above 0 and at most 1. Pass an int for a number of "
            "nodes."
        )
    return float(ratio)
