"""Encode the numbers given beside graphs, such as a temperature."""

from typing import Any

import torch
from torch import Tensor

from sopool.data.features.encoder import Fields
from sopool.data.features.numbers import Moments, Numbers, moments_from_json, moments_to_json
from sopool.data.graphs import PackedGraphs
from sopool.data.names import check_column_names
from sopool.errors import DataError


class GraphAttributeEncoder:
    """Encode the attributes of graphs, matched by name and standardized over the fitted graphs.

    A missing attribute has the mean of the others, unless a model has moments of its own: then their mean. Attributes
    that the fitted graphs do not have are not used.

    Examples:
        >>> from sopool.data import Graph, GraphAttributeEncoder, pack
        >>> graphs = pack([Graph(1, graph_attributes={"heat": heat, "pH": None}) for heat in (10.0, 30.0)])
        >>> encoder = GraphAttributeEncoder().fit(graphs)
        >>> encoder.names, encoder.transform(graphs).take()[:, 0]
        (['heat', 'pH'], tensor([-1.,  1.]))
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.moments = Moments.neutral(0)

    def __repr__(self) -> str:
        return f"GraphAttributeEncoder({self.names or 'not fitted'})"

    @property
    def fields(self) -> Fields:
        """The fields of :class:`~sopool.data.Graph` that graphs must have, each with the names of its columns."""
        return {"graph_attributes": tuple(self.names)}

    def fit(self, store: PackedGraphs) -> "GraphAttributeEncoder":
        """Learn the names and the moments of the attributes of graphs, and return the encoder.

        Args:
            store: The graphs.
        """
        if store.graph_attributes is None or not store.graph_attribute_names:
            raise DataError(f"the graphs of {store.name} have no graph_attributes.")
        self.names = list(store.graph_attribute_names)
        self.moments = Numbers.of(store.graph_attributes).moments
        return self

    def transform(self, store: PackedGraphs) -> Numbers:
        """Return the attributes of all graphs of a store in the order of ``names``, on its device.

        Args:
            store: The graphs, which must have all attributes, in any order; values may be missing.
        """
        if not self.names:
            raise RuntimeError("This GraphAttributeEncoder is not fitted yet: call fit first.")
        return Numbers.given(self._values(store), self.moments)

    def _values(self, store: PackedGraphs) -> Tensor:
        known = {name: column for column, name in enumerate(store.graph_attribute_names)}
        missing = [name for name in self.names if name not in known]
        if missing or store.graph_attributes is None:
            raise DataError(
                f"the graphs of {store.name} have no graph_attributes {', '.join(map(repr, missing))}, which the "
                f"training graphs had. They have {', '.join(map(repr, known)) or 'none'}: give all of "
                f"{', '.join(map(repr, self.names))}, NaN where a number is not known."
            )
        return store.graph_attributes[:, torch.tensor([known[name] for name in self.names], device=store.device)]

    def to_json(self) -> dict[str, Any]:
        """Return the fitted encoder as a dictionary for :meth:`from_json`."""
        return {"names": list(self.names), **moments_to_json(self.moments)}

    @classmethod
    def from_json(cls, saved: Any) -> "GraphAttributeEncoder":
        """Create a fitted encoder from what :meth:`to_json` returned; raise a ``DataError`` if it is invalid.

        Args:
            saved: The dictionary.
        """
        if (
            not isinstance(saved, dict)
            or set(saved) != {"names", "mean", "std"}
            or not isinstance(saved["names"], list)
        ):
            raise DataError("graph attributes: expected names, mean and std.")
        check_column_names("graph attribute", saved["names"])
        encoder = cls()
        encoder.names = saved["names"]
        encoder.moments = moments_from_json({name: saved[name] for name in ("mean", "std")}, "graph attributes")
        if encoder.moments.shift.numel() != len(encoder.names):
            raise DataError(
                f"graph attributes: there are {len(encoder.names)} names and {encoder.moments.shift.numel()} means, "
                "expected as many."
            )
        return encoder
