"""The attributes of each edge as an extra, for networks with ``forward(x, edge_index, batch)``."""

from dataclasses import dataclass

from sopool.data.extras.base import EdgeRows, Extra
from sopool.data.graphs import PackedGraphs


@dataclass(frozen=True)
class EdgeNumbers(Extra):
    """The D attributes of each edge of a batch ``[E, D]``, in the order of ``edge_index`` as networks get it.

    In a store without attributes of edges, or with labels of edges, D is 0.

    Examples:
        >>> import torch
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.extras import EdgeNumbers
        >>> graph = Graph(3, [(2, 1), (1, 0)], edge_attributes=[[0.5, 2.0], [1.0, 3.0]])
        >>> tables = EdgeNumbers().build(pack([graph]))
        >>> tables.take(torch.tensor([0]), torch.tensor([0, 3]), torch.arange(3))  # of (1, 0) and (2, 1)
        tensor([[1.0000, 3.0000],
                [0.5000, 2.0000]])
    """

    @property
    def key(self) -> str:
        """The version of the method."""
        return "1"

    def reads(self, store: PackedGraphs) -> tuple[str, ...]:
        """Return the attributes, if it takes them."""
        return ("edge_attributes",) if edge_numbers(store) else ()

    def build(self, store: PackedGraphs, cached: bool = True) -> EdgeRows:
        """Return the attributes of all edges."""
        width = edge_numbers(store)
        if not width or store.edge_attributes is None:
            return EdgeRows(store.edge_ptr, store.edge_ptr.new_zeros(store.num_edges, 0).float())
        return EdgeRows.of(store, store.edge_attributes)


def edge_numbers(train: PackedGraphs) -> int:
    """Return the number of attributes that :class:`EdgeNumbers` has, for ``fitted={"width": edge_numbers}``.

    Args:
        train: The training graphs of a fold.
    """
    if train.edge_labels is not None or train.edge_attributes is None:
        return 0
    return train.edge_attributes.shape[1]
