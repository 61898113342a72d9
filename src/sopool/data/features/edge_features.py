"""Encode what edges have: labels and further categories as codes, attributes as numbers, and weights."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from sopool.data.features.categories import (
    column_of,
    columns_from_json,
    columns_to_json,
    matched,
    occurring,
    values_from_json,
)
from sopool.data.features.encoder import Fields
from sopool.data.features.numbers import Moments, Numbers, moments_from_json, moments_to_json
from sopool.data.graphs import PackedGraphs
from sopool.data.names import CategoryColumn, LabelNames
from sopool.errors import DataError

ADVICE = (
    "use another one, such as gin-0, or provide edge labels (edge_label of PyG Data; label of NetworkX edges) or edge "
    "attributes (edge_attr of PyG Data)."
)


@dataclass(frozen=True, eq=False)
class EdgeFeatures:
    """The features of the E edges of a store, as returned by :meth:`EdgeEncoder.transform`.

    Examples:
        >>> from sopool.data import EdgeEncoder, load
        >>> graphs = load("MUTAG")
        >>> edges = EdgeEncoder().fit(graphs).transform(graphs)
        >>> edges.kinds, edges.unknown
        (5, 0)
    """

    codes: Tensor | None = None
    """The code of each edge's label, or of its combination of categories, int32 ``[E]``; None if none are used."""
    kinds: int = 0
    """The number of codes."""
    combinations: Tensor | None = None
    """The C categories that each code stands for, int64 ``[kinds, C]``, numbered across the columns, each of which ends
    with its category for values that were not seen in fitting. None for a single column, whose last code this is."""
    sizes: tuple[int, ...] = ()
    """The number of known values of each of the C columns."""
    attributes: Numbers | None = None
    """The attributes of each edge ``[E, D]``; None if they are not used."""
    weights: Tensor | None = None
    """The weight of each edge, float32 ``[E]``; None if they are not used."""

    @property
    def unknown(self) -> int:
        """The number of edges with a label or category that was not seen in fitting."""
        return 0 if self.codes is None else int(self._unknown[self.codes.long()].sum())

    @property
    def _unknown(self) -> Tensor:
        """Whether each code stands for a value that was not seen, bool ``[kinds]``."""
        assert self.codes is not None
        if self.combinations is None:
            return torch.arange(self.kinds, device=self.codes.device) == self.kinds - 1
        last = _starts(self.sizes, self.codes.device) + torch.tensor(self.sizes, device=self.codes.device)
        return (self.combinations == last).any(1)

    def known_values(self, codes: Tensor) -> Tensor:
        """Return which known values of all columns some codes stand for, bool ``[L]`` with L the sum of ``sizes``.

        Args:
            codes: Which codes are meant, bool ``[kinds]``.
        """
        if self.combinations is None:
            return codes[:-1]
        found = torch.zeros(sum(self.sizes) + len(self.sizes), dtype=torch.bool, device=codes.device)
        found[self.combinations[codes].flatten()] = True
        return torch.cat([part[:-1] for part in found.split([size + 1 for size in self.sizes])])

    def stretch(self, first: int, last: int) -> "EdgeFeatures":
        """Return the features of the edges from ``first`` up to but not including ``last``, as views."""
        return replace(
            self,
            codes=None if self.codes is None else self.codes[first:last],
            attributes=None if self.attributes is None else self.attributes.stretch(first, last),
            weights=None if self.weights is None else self.weights[first:last],
        )

    def to(self, device: torch.device | str) -> "EdgeFeatures":
        """Return the same features on another device.

        Args:
            device: The target device.
        """
        return EdgeFeatures(
            None if self.codes is None else self.codes.to(device),
            self.kinds,
            None if self.combinations is None else self.combinations.to(device),
            self.sizes,
            None if self.attributes is None else self.attributes.to(device),
            None if self.weights is None else self.weights.to(device),
        )


NO_EDGE_FEATURES = EdgeFeatures()
"""What models use that use nothing of edges."""


class EdgeEncoder:
    """Encode what edges have so that it means the same in every store.

    Labels and categories are matched by name, so stores may number them differently, and each column has one more value
    for those that were not seen in fitting. Attributes are standardized over the edges of the fitted graphs, unless a
    model has moments of its own.

    Args:
        labels: Whether to encode edge labels. Default: True.
        categories: Whether to encode the columns of edge categories. Default: False.
        attributes: Whether to encode edge attributes. Default: False.
        weights: Whether to pass on edge weights. Default: False.

    Examples:
        >>> from sopool.data import EdgeEncoder, load
        >>> EdgeEncoder().fit(load("MUTAG")).values
        ['aromatic', 'double', 'single', 'triple']
    """

    def __init__(
        self, labels: bool = True, categories: bool = False, attributes: bool = False, weights: bool = False
    ) -> None:
        self.labels = labels
        self.categories = categories
        self.attributes = attributes
        self.weights = weights
        self.values: list[str | int] = []
        self.columns: list[CategoryColumn] = []
        self.moments: Moments | None = None
        self._fitted = False

    def __repr__(self) -> str:
        parts = [f"{len(self.values)} labels"] * bool(self.values)
        parts += [f"{len(self.columns)} columns"] * bool(self.columns)
        parts += [f"{self.width} attributes"] * bool(self.width) + ["weights"] * self.weights
        return f"EdgeEncoder({', '.join(parts) if self._fitted else 'not fitted'})"

    @property
    def width(self) -> int:
        """The number of attributes."""
        return 0 if self.moments is None else self.moments.shift.numel()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of known values of each column of categories, that of the labels first."""
        return (*([len(self.values)] * self.labels), *(len(column.values) for column in self.columns))

    @property
    def fields(self) -> Fields:
        """The fields of :class:`~sopool.data.Graph` that graphs must have, with their columns, see :data:`Fields`."""
        found: Fields = {"edge_labels": None} if self.labels else {}
        found |= {"edge_categories": tuple(column.name for column in self.columns)} if self.categories else {}
        found |= {"edge_attributes": self.width} if self.attributes else {}
        return found | ({"edge_weights": None} if self.weights else {})

    def fit(self, store: PackedGraphs) -> "EdgeEncoder":
        """Learn the labels, categories and attributes of a store and return the encoder.

        Args:
            store: The graphs, whose edges must have what is encoded.
        """
        if not store.num_edges:
            raise DataError(f"the graphs of {store.name} have no edges, so there are no edge labels to learn.")
        if self.labels:
            self.values = occurring(*_labels(store))
        if self.categories:
            names = [column.name for column in store.edge_category_columns]
            found = [(name, *column_of(store, "edge_categories", name)) for name in names]
            self.columns = [CategoryColumn(name, tuple(occurring(codes, values))) for name, codes, values in found]
        if self.attributes:
            self.moments = Numbers.of(_attributes(store)).moments
        if self.weights:
            _weights(store)
        self._fitted = True
        return self

    def transform(self, store: PackedGraphs) -> EdgeFeatures:
        """Return the features of all edges of a store, on its device.

        Args:
            store: The graphs, whose edges must have what is encoded.
        """
        if not self._fitted:
            raise RuntimeError("This EdgeEncoder is not fitted yet: call fit first.")
        columns = [matched(*_labels(store), self.values)] if self.labels else []
        for column in self.columns:
            columns.append(matched(*_categories(store, column.name), column.values))
        numbers = weights = None
        if self.moments is not None:
            numbers = Numbers.given(_attributes(store, self.width), self.moments)
        if self.weights:
            weights = _weights(store)
        return EdgeFeatures(*_combined(columns, self.sizes), self.sizes, numbers, weights)

    def to_json(self) -> dict[str, Any]:
        """Return the fitted encoder as a dictionary for :meth:`from_json`."""
        return {
            "labels": list(self.values) if self.labels else None,
            "categories": columns_to_json(self.columns),
            "attributes": None if self.moments is None else moments_to_json(self.moments),
            "weights": self.weights,
        }

    @classmethod
    def from_json(cls, saved: Any) -> "EdgeEncoder":
        """Create a fitted encoder from what :meth:`to_json` returned; raise a ``DataError`` if it is invalid.

        Args:
            saved: The dictionary, or a list of edge labels, as earlier versions wrote it.
        """
        if not isinstance(saved, dict):
            saved = {"labels": values_from_json(saved, "edge labels"), "categories": [], "attributes": None}
            saved["weights"] = False
        if set(saved) != {"labels", "categories", "attributes", "weights"} or not isinstance(saved["weights"], bool):
            raise DataError("edges: expected labels, categories, attributes, and true or false for weights.")
        encoder = cls(saved["labels"] is not None, weights=saved["weights"])
        if encoder.labels:
            encoder.values = values_from_json(saved["labels"], "edge labels")
        encoder.columns = columns_from_json(saved["categories"], "edge categories")
        encoder.categories = bool(encoder.columns)
        if saved["attributes"] is not None:
            encoder.moments = moments_from_json(saved["attributes"], "edge attributes")
            encoder.attributes = True
        encoder._fitted = True
        return encoder


def only_encoded_edges(store: PackedGraphs, encoder: EdgeEncoder | None) -> PackedGraphs:
    """Return graphs without the labels and attributes of edges that an encoder does not have.

    Labels have the numbers of the encoder's values; all that it has not seen have the next one.

    Args:
        store: The graphs.
        encoder: The fitted encoder; ``None`` if there is nothing to encode.

    Examples:
        >>> from sopool.data import EdgeEncoder, Graph, pack
        >>> from sopool.data.features.edge_features import only_encoded_edges
        >>> first, other = (pack([Graph(2, [(0, 1), (1, 0)], edge_labels=labels)]) for labels in ("ba", "bc"))
        >>> only_encoded_edges(other, EdgeEncoder().fit(first)).edge_labels
        tensor([1, 2], dtype=torch.int32)
    """
    found = replace(store, edge_labels=None, edge_label_names=(), edge_attributes=None)
    if encoder is None:
        return found
    codes = encoder.transform(store).codes
    if codes is not None:
        names = tuple(range(len(encoder.values) + 1))
        found = replace(found, edge_labels=codes.int(), edge_label_names=names)
    return replace(found, edge_attributes=store.edge_attributes) if encoder.attributes else found


def _combined(columns: list[Tensor], sizes: tuple[int, ...]) -> tuple[Tensor | None, int, Tensor | None]:
    """Return the code of each edge, the number of codes and, for several columns, what the codes stand for."""
    if not columns:
        return None, 0, None
    if len(columns) == 1:
        return columns[0], sizes[0] + 1, None
    rows = torch.stack(columns, 1).long() + _starts(sizes, columns[0].device)
    if not len(rows):  # a network needs a combination at least, if only of unknown values
        rows = (_starts(sizes, rows.device) + torch.tensor(sizes, device=rows.device)).unsqueeze(0)
        return columns[0], 1, rows
    combinations, codes = rows.unique(dim=0, return_inverse=True)
    return codes.int(), len(combinations), combinations


def _starts(sizes: tuple[int, ...], device: torch.device) -> Tensor:
    """Return the number of the first category of each column ``[C]``, if each has one more for unknown values."""
    return torch.tensor([0, *(size + 1 for size in sizes[:-1])], device=device).cumsum(0)


def _labels(store: PackedGraphs) -> tuple[Tensor, LabelNames]:
    if store.edge_labels is None and not store.num_edges:
        return torch.empty(0, dtype=torch.int32, device=store.device), ()
    if store.edge_labels is None:
        raise DataError(f"the edges of {store.name} have no labels, which the GNN gine needs: {ADVICE}")
    return store.edge_labels, store.edge_label_names


def _categories(store: PackedGraphs, name: str) -> tuple[Tensor, LabelNames]:
    if store.edge_categories is None and not store.num_edges:
        return torch.empty(0, dtype=torch.int32, device=store.device), ()
    if store.edge_categories is None:
        raise DataError(f"the edges of {store.name} have no categories, but those of the training graphs had.")
    return column_of(store, "edge_categories", name)


def _attributes(store: PackedGraphs, width: int | None = None) -> Tensor:
    """Return the attributes of edges; raise a ``DataError`` if there are not ``width``."""
    if store.edge_attributes is None and not store.num_edges:
        return torch.empty(0, width or 0, device=store.device)
    found = 0 if store.edge_attributes is None else store.edge_attributes.shape[1]
    if store.edge_attributes is None or width not in (None, found):
        raise DataError(
            f"{store.name} has {found or 'no'} attributes per edge, but the training graphs had {width or 'some'}."
        )
    return store.edge_attributes


def _weights(store: PackedGraphs) -> Tensor:
    if store.edge_weights is None and not store.num_edges:
        return torch.empty(0, device=store.device)
    if store.edge_weights is None:
        raise DataError(f"the edges of {store.name} have no weights, but those of the training graphs had.")
    return store.edge_weights
