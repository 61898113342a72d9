"""Edge labels as numbers that stand for the same label in every store."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError


class EdgeCodes(NamedTuple):
    """The labels of the edges of a store."""

    codes: Tensor
    """[E], int32."""
    kinds: int
    """How many there are, the last of them for labels that are not known."""

    @property
    def unknown(self) -> int:
        """How many edges have a label that is not known."""
        return int((self.codes == self.kinds - 1).sum())


class EdgeLabelEncoder:
    """Numbers edge labels: those seen in fitting from 0 on, all others with the number after.

    Labels are matched by name, so stores that number them differently go together.
    """

    def __init__(self) -> None:
        self.values: list[str | int] = []

    def __repr__(self) -> str:
        return f"EdgeLabelEncoder({f'{len(self.values)} values' if self.values else 'not fitted'})"

    def fit(self, store: PackedGraphs) -> "EdgeLabelEncoder":
        """Learn which labels the edges of a store have."""
        used = _labels(store).unique().tolist()
        if not used:
            raise DataError(f"the graphs of {store.name} have no edges: there is no edge label to learn.")
        values = [store.edge_label_names[code] for code in used]
        self.values = sorted(values, key=lambda value: (isinstance(value, str), value))
        return self

    def transform(self, store: PackedGraphs) -> EdgeCodes:
        """The numbers of all edges of a store, on its device."""
        if not self.values:
            raise RuntimeError("This EdgeLabelEncoder has not seen any graphs yet: call fit first.")
        number = {value: i for i, value in enumerate(self.values)}
        known = [number.get(name, len(number)) for name in store.edge_label_names]
        table = torch.tensor(known, dtype=torch.int32, device=store.device)
        return EdgeCodes(table[_labels(store).long()], len(number) + 1)

    def to_json(self) -> list[str | int]:
        """What it has learned, for :meth:`from_json`."""
        return list(self.values)

    @classmethod
    def from_json(cls, saved: Any) -> "EdgeLabelEncoder":
        """From what :meth:`to_json` gave. Everything is checked: the file may come from anywhere."""
        plain = isinstance(saved, list) and saved and all(type(value) in (str, int) for value in saved)
        if not plain or len(set(saved)) < len(saved):
            raise DataError("edge labels: expected a list of distinct words or whole numbers.")
        encoder = cls()
        encoder.values = saved
        return encoder


def _labels(store: PackedGraphs) -> Tensor:
    if store.edge_labels is None and not store.num_edges:
        return torch.empty(0, dtype=torch.int32, device=store.device)
    if store.edge_labels is None:
        raise DataError(
            f"the edges of {store.name} have no labels, and gine uses them in its messages: take another GNN, such as "
            "gin-0, or give edge labels (edge_label of PyG Data, not edge_attr; label of NetworkX edges)."
        )
    return store.edge_labels
