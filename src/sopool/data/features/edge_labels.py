"""Encode edge labels as integers that mean the same label in every store."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError


class EdgeCodes(NamedTuple):
    """The edge labels of a store as integers, as returned by :meth:`EdgeLabelEncoder.transform`.

    Examples:
        >>> from sopool.data import EdgeLabelEncoder, load
        >>> graphs = load("MUTAG")
        >>> codes = EdgeLabelEncoder().fit(graphs).transform(graphs)
        >>> codes.kinds, codes.unknown
        (5, 0)
    """

    codes: Tensor
    """The code of each edge's label, int32 ``[E]``."""
    kinds: int
    """The number of codes; the last code stands for labels that were not seen in fitting."""

    @property
    def unknown(self) -> int:
        """The number of edges whose label was not seen in fitting."""
        return int((self.codes == self.kinds - 1).sum())


class EdgeLabelEncoder:
    """Encode edge labels as integers from 0, with one more code for labels that were not seen in fitting.

    Labels are matched by name, so stores may number them differently.

    Examples:
        >>> from sopool.data import EdgeLabelEncoder, load
        >>> EdgeLabelEncoder().fit(load("MUTAG")).values
        ['aromatic', 'double', 'single', 'triple']
    """

    def __init__(self) -> None:
        self.values: list[str | int] = []

    def __repr__(self) -> str:
        return f"EdgeLabelEncoder({f'{len(self.values)} values' if self.values else 'not fitted'})"

    def fit(self, store: PackedGraphs) -> "EdgeLabelEncoder":
        """Learn the edge labels of a store and return the encoder.

        Args:
            store: The graphs, whose edges must have labels.
        """
        used = _labels(store).unique().tolist()
        if not used:
            raise DataError(f"the graphs of {store.name} have no edges, so there are no edge labels to learn.")
        values = [store.edge_label_names[code] for code in used]
        self.values = sorted(values, key=lambda value: (isinstance(value, str), value))
        return self

    def transform(self, store: PackedGraphs) -> EdgeCodes:
        """Return the codes of all edges of a store, on its device.

        Args:
            store: The graphs, whose edges must have labels.
        """
        if not self.values:
            raise RuntimeError("This EdgeLabelEncoder is not fitted yet: call fit first.")
        number = {value: i for i, value in enumerate(self.values)}
        known = [number.get(name, len(number)) for name in store.edge_label_names]
        table = torch.tensor(known, dtype=torch.int32, device=store.device)
        return EdgeCodes(table[_labels(store).long()], len(number) + 1)

    def to_json(self) -> list[str | int]:
        """Return the learned labels as a list for :meth:`from_json`."""
        return list(self.values)

    @classmethod
    def from_json(cls, saved: Any) -> "EdgeLabelEncoder":
        """Create a fitted encoder from what :meth:`to_json` returned; raise a ``DataError`` if it is invalid.

        Args:
            saved: The list of labels.
        """
        plain = isinstance(saved, list) and saved and all(type(value) in (str, int) for value in saved)
        if not plain or len(set(saved)) < len(saved):
            raise DataError("edge labels: expected a list of distinct strings or integers.")
        encoder = cls()
        encoder.values = saved
        return encoder


def _labels(store: PackedGraphs) -> Tensor:
    if store.edge_labels is None and not store.num_edges:
        return torch.empty(0, dtype=torch.int32, device=store.device)
    if store.edge_labels is None:
        raise DataError(
            f"the edges of {store.name} have no labels, which the GNN gine needs: use another one, such as gin-0, or "
            "provide edge labels (edge_label of PyG Data, not edge_attr; label of NetworkX edges)."
        )
    return store.edge_labels
