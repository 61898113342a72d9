"""Recognize training graphs among others, by hashes that a model file keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sopool.data.analysis.graph_hashes import graph_hashes, hashed_fields
from sopool.data.graphs import PackedGraphs
from sopool.data.names import Needed


@dataclass(frozen=True, eq=False)
class SeenGraphs:
    """Hashes of the graphs that a model was trained on, eight bytes each.

    The graphs cannot be restored from them, but whoever has a graph can find out whether it was among them.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.estimator.seen_graphs import SeenGraphs
        >>> graphs = load("MUTAG")
        >>> seen = SeenGraphs.of(graphs[:100], {"node_labels": None})
        >>> len(seen.hashes), bool(seen.contain(graphs[:100]).all())
        (100, True)
    """

    hashes: np.ndarray
    """The distinct hashes, sorted, int64 ``[K]``."""
    fields: Sequence[str]
    """The fields of nodes and edges that they depend on."""
    needed: Mapping[str, Needed]
    """The columns of these fields, as an encoder's ``fields``."""

    @classmethod
    def of(cls, store: PackedGraphs, needed: Mapping[str, Needed]) -> "SeenGraphs":
        """Remember graphs with the fields that a model needs, see :class:`~sopool.data.features.encoder.Encoder`."""
        fields = hashed_fields(store, needed)
        hashes = graph_hashes(store, fields, needed)
        assert hashes is not None
        return cls(np.unique(hashes), fields, needed)

    def contain(self, store: PackedGraphs) -> np.ndarray:
        """Return whether each graph is one of them, bool ``[G]``; those without one of the fields are not."""
        hashes = graph_hashes(store, self.fields, self.needed)
        return np.zeros(len(store), bool) if hashes is None else np.isin(hashes, self.hashes)
