"""Hierarchical classifiers: blocks of one message-passing layer and one pooling, on smaller and smaller graphs.

This is the paper's model, which follows `"Self-Attention Graph Pooling" <https://arxiv.org/abs/1904.08082>`_, with one
of two heads:

    per-block     scores = mean over blocks b of  readout(H_b) W_b
    sum-readout   scores = MLP(sum over blocks b of  readout(H_b)),  widths w - w/2 - w/4 - classes

The readout of a block is the maximum and the mean of its nodes, or all of them side by side. That of the last block may
be ``sopool-pairs`` instead: Z^T P^k Z for powers of its normalized adjacency matrix P, scaled to unit length, beside
the sum of its nodes. Distances are no choice there, since the dense poolings return an edge between any two nodes.

The attributes of graphs are appended to each readout, or to the sum of the readouts. The attributes and weights of
edges are used by the message passing of the first block only: poolings count the edges between nodes, and pooled graphs
have no attributes of edges.
"""

from typing import Any

import torch
from torch import Tensor

from sopool.models.base import Classifier, Scored, add
from sopool.models.config import ModelConfig
from sopool.models.frozen import freeze
from sopool.nn.aggr.pairs import PairSecondOrderAggregation
from sopool.nn.dropout import Dropout
from sopool.nn.gnn import GNN, NO_EDGES
from sopool.nn.layers import Linear
from sopool.nn.pool.base import GraphPooling, VectorFrom, read_out, readout_width
from sopool.nn.pool.output import PoolingOutput
from sopool.nn.registry import make_blocks
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.message_passing.structure import GraphStructure
from sopool.ops.segment.segments import Segments

PAIRS: dict[str, Any] = {"rank": 16, "distances": 6, "walks": True, "normalize": "norm", "with_sum": True}
"""The options of ``sopool-pairs`` in the last block. Files do not contain them: a change would break saved models."""


class HierarchicalClassifier(Classifier):
    """A classifier that pools step by step, in blocks of one message-passing layer and one pooling.

    It is one model or a stack of models (see :func:`sopool.models.stack`).

    Args:
        config: The architecture.
        in_channels: Number of input features ``F``.
        classes: Number of classes ``C``.

    Examples:
        >>> import torch
        >>> from sopool.models import ModelConfig
        >>> from sopool.ops.message_passing.neighbors import neighbors_of
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> config = ModelConfig(pool="diffpool", blocks=2, hidden=8)
        >>> model = HierarchicalClassifier(config, in_channels=3, classes=2)
        >>> model(torch.randn(4, 3), neighbors_of(edge_index, 4), ptr=torch.tensor([0, 2, 4])).shape
        torch.Size([2, 2])
    """

    def __init__(self, config: ModelConfig, in_channels: int, classes: int) -> None:
        super().__init__()
        self.config = config
        pools = make_blocks(config.pool, config.hidden, config.blocks, config.effective_options)
        inputs = [in_channels, *(pool.out_channels for pool in pools[:-1])]
        edges = [config.edges, *[NO_EDGES] * (config.blocks - 1)]
        pairs = zip(inputs, edges, strict=True)
        self.gnns = torch.nn.ModuleList(GNN(config.gnn, width, config.hidden, 1, used) for width, used in pairs)
        self.pools = torch.nn.ModuleList(pools)
        self.pairs: PairSecondOrderAggregation | None = None
        if config.block_readout == "sopool-pairs":
            self.pairs = PairSecondOrderAggregation(pools[-1].out_channels, **PAIRS)
            freeze(self.pairs, every=config.frozen)
        freeze(self.pools, every=config.frozen)
        widths = [readout_width(pool, self.vector_from) for pool in pools]
        if self.pairs is not None:
            widths[-1] = self.pairs.out_channels
        self.heads = torch.nn.ModuleList(self._heads(widths, classes))

    def _heads(self, widths: list[int], classes: int) -> list[Linear]:
        if self.config.head == "per-block":
            return [Linear(width + self.config.graph_attributes, classes) for width in widths]
        if len(set(widths)) > 1:
            raise ValueError(
                f"The readouts of the blocks have the widths {widths} and cannot be summed. Choose "
                'head="per-block" or block_readout="max-mean".'
            )
        width = widths[0] + self.config.graph_attributes
        pairs = [(width, max(1, width // 2)), (max(1, width // 2), max(1, width // 4)), (max(1, width // 4), classes)]
        return [Linear(*pair) for pair in pairs]

    @property
    def vector_from(self) -> VectorFrom:
        """How the nodes of all blocks become vectors, except of a last one whose readout is ``sopool-pairs``."""
        return "max-mean" if self.config.block_readout == "sopool-pairs" else self.config.block_readout

    def blocks(self, x: Tensor, neighbors: Neighbors, ptr: Tensor) -> list[PoolingOutput]:
        """Return the pooled graphs of each block."""
        graphs = GraphStructure(ptr, neighbors)
        left = list[PoolingOutput]()
        for gnn, pool in zip(self.gnns, self.pools, strict=True):
            if left:
                x = left[-1].x
                graphs = left[-1].graphs()
            x = gnn(x, graphs.neighbors, graphs.ptr, self.models)[-1]
            assert isinstance(pool, GraphPooling)
            left.append(pool.pool(x, graphs))
        return left

    def embed(
        self, x: Tensor, neighbors: Neighbors, ptr: Tensor, graph_x: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor | None]]:
        """Return the readout of each block ``[G, F]``, with the additional loss of each graph ``[G]`` or ``None``.

        The attributes of graphs are at the end of each readout, except of those that are summed.
        """
        left = self.blocks(x, neighbors, ptr)
        every = [(readout, block.total_loss) for readout, block in zip(self._read(left), left, strict=True)]
        if self.config.head == "sum-readout":
            return every
        return [(self.append(readout, graph_x), extra) for readout, extra in every]

    def classify(
        self,
        x: Tensor,
        neighbors: Neighbors,
        ptr: Tensor,
        graph_x: Tensor | None = None,
        dropout: Dropout | None = None,
    ) -> Scored:
        """Return scores and penalties of graphs with features ``[N, F]`` and first nodes ``ptr`` ``[G + 1]``."""
        embedded = self.embed(x, neighbors, ptr, graph_x)
        penalty: Tensor | None = None
        for _, extra in embedded:
            penalty = add(penalty, extra)
        readouts = [readout for readout, _ in embedded]
        if self.config.head == "per-block":
            return Scored(self._each(readouts, dropout), penalty)
        total = self.append(torch.stack(readouts).sum(0), graph_x)
        return Scored(self._together(total, dropout), penalty)

    def _read(self, left: list[PoolingOutput]) -> list[Tensor]:
        """Return the readout of each block ``[G, F]``."""
        if self.pairs is None:
            return [self._vectors(*each) for each in zip(left, self.pools, strict=True)]
        *earlier, last = left
        graphs = last.graphs()
        pairs = self.pairs.pool(last.x, graphs.neighbors, Segments(graphs.ptr, None))
        return [*(self._vectors(*each) for each in zip(earlier, self.pools, strict=False)), pairs]

    def _vectors(self, block: PoolingOutput, pool: torch.nn.Module) -> Tensor:
        assert isinstance(pool, GraphPooling)
        return read_out(block, pool, self.vector_from)

    def _each(self, readouts: list[Tensor], dropout: Dropout | None) -> Tensor:
        each = enumerate(zip(readouts, self.heads, strict=True))
        return torch.stack([self.score(readout, head, place, dropout) for place, (readout, head) in each]).mean(0)

    def _together(self, total: Tensor, dropout: Dropout | None) -> Tensor:
        first, second, last = self.heads
        x = first(total).relu()
        x = x if dropout is None else dropout(x)
        scores: Tensor = last(second(x).relu())
        return scores
