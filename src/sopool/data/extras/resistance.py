"""Histograms of effective resistances as an extra: the FGSD features of graphs."""

from dataclasses import dataclass
from functools import partial

import torch

from sopool.data.analysis.resistance import BINS, resistance_histograms
from sopool.data.extras.base import Extra, GraphRows
from sopool.data.graphs import PackedGraphs
from sopool.data.sources.array_cache import Arrays, kept_arrays

METHOD = 1
"""The key: increase it when the histograms change."""


@dataclass(frozen=True)
class ResistanceHistograms(Extra):
    """How many pairs of nodes of a graph have an effective resistance in each of 64 bins.

    The batch has the logarithms of 1 + these numbers ``[B, 64]``.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.data.extras import ResistanceHistograms
        >>> ResistanceHistograms().build(load("MUTAG"), cached=False).rows.shape
        torch.Size([188, 64])
    """

    slow = True

    @property
    def key(self) -> str:
        """The version of the method."""
        return f"{METHOD}"

    def build(self, store: PackedGraphs, cached: bool = True) -> GraphRows:
        """Return the histograms of all graphs."""

        def find() -> Arrays:
            return {"counts": torch.from_numpy(resistance_histograms(store))}

        check = partial(_check, graphs=len(store))
        arrays = kept_arrays(store, self.key, "resistances", find, check) if cached else find()
        return GraphRows(arrays["counts"].log1p().float())


def _check(arrays: Arrays, graphs: int) -> None:
    """Raise a ``ValueError`` or ``KeyError`` if these cannot be the histograms of so many graphs."""
    counts = arrays["counts"]
    if counts.dtype != torch.float64 or counts.shape != (graphs, BINS):
        raise ValueError("counts has a wrong type or shape")
    if not bool((counts.isfinite() & (counts >= 0)).all()):
        raise ValueError("counts must not be negative")
