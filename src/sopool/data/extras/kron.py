"""Coarser graphs by Kron reduction as an extra, for networks that pool on the way."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sopool._files.bounds import check_pointers, first_outside
from sopool.data.analysis.kron import CoarserGraphs, coarsen
from sopool.data.extras.base import Extra
from sopool.data.graphs import PackedGraphs, expand_segments, take_segments
from sopool.data.sources.array_cache import Arrays, kept_arrays

METHOD = 1
"""Part of the key: increase it when the coarser graphs or the arrays of the cache change."""
TYPES = {
    "kept": torch.int64,
    "node_ptr": torch.int64,
    "edge_index": torch.int32,
    "edge_ptr": torch.int64,
    "weights": torch.float64,
}


class CoarserBatch(NamedTuple):
    """The coarser graphs of a batch."""

    kept: Tensor
    """The node of the batch that each coarser node is ``[K]``."""
    edge_index: Tensor
    """The sources and targets of the edges between coarser nodes ``[2, E]``."""
    weights: Tensor
    """The weight of each edge ``[E]``."""
    batch: Tensor
    """The graph of each coarser node ``[K]``."""
    above: "CoarserBatch | None" = None
    """The coarser graphs of these graphs; None at the last level."""


@dataclass(frozen=True)
class KronPyramid(Extra):
    """Coarser and coarser graphs of each graph, see :mod:`sopool.data.analysis.kron`.

    Args:
        levels: The number of coarser graphs of each graph. Default: ``1``.

    Examples:
        >>> import torch
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.extras import KronPyramid
        >>> tables = KronPyramid().build(pack([Graph(4, [(0, 1), (1, 2), (2, 3)])]), cached=False)
        >>> coarser = tables.take(torch.tensor([0]), torch.tensor([0, 4]), torch.arange(4))
        >>> coarser.kept, coarser.edge_index.tolist(), coarser.weights
        (tensor([1, 3]), [[1, 0], [0, 1]], tensor([0.5000, 0.5000]))
    """

    slow = True
    levels: int = 1

    @property
    def key(self) -> str:
        """The number of levels, and the version of the method."""
        return f"{self.levels}-{METHOD}"

    def build(self, store: PackedGraphs, cached: bool = True) -> "PyramidTables":
        """Return the coarser graphs of all graphs."""

        def find() -> Arrays:
            found = enumerate(coarsen(store, self.levels))
            return {f"{name}_{i}": torch.from_numpy(one) for i, level in found for name, one in level._asdict().items()}

        check = partial(_check, store=store, levels=self.levels)
        arrays = kept_arrays(store, self.key, "kron", find, check) if cached else find()
        return PyramidTables.of(store.node_ptr, [_level(arrays, i) for i in range(self.levels)])


def _level(arrays: Arrays, number: int) -> Arrays:
    return {name: arrays[f"{name}_{number}"] for name in CoarserGraphs._fields}


def _check(arrays: Arrays, store: PackedGraphs, levels: int) -> None:
    """Raise a ``ValueError`` or ``KeyError`` if these cannot be coarser graphs of the graphs."""
    below = store.node_ptr
    for number in range(levels):
        level = _level(arrays, number)
        wrong = [name for name, value in level.items() if value.dtype != TYPES[name]]
        if wrong:
            raise ValueError(f"{wrong[0]} has type {level[wrong[0]].dtype}, expected {TYPES[wrong[0]]}")
        kept, node_ptr, edges, edge_ptr, weights = level.values()
        if kept.ndim != 1 or weights.ndim != 1 or edges.shape != (2, len(weights)):
            raise ValueError("the array shapes do not match each other")
        for name, ptr, count in (("node_ptr", node_ptr, len(kept)), ("edge_ptr", edge_ptr, len(weights))):
            if ptr.shape != below.shape:
                raise ValueError(f"{name} does not match these graphs")
            check_pointers(name, ptr)
            if int(ptr[-1]) != count:
                raise ValueError(f"{name} does not match the other arrays")
        own = kept - expand_segments(below[:-1], node_ptr)
        if first_outside(own, node_ptr, below.diff()) is not None:
            raise ValueError("kept must be nodes of their graphs")
        if any(first_outside(ends, edge_ptr, node_ptr.diff()) is not None for ends in edges):
            raise ValueError("edges must be between nodes of their graphs")
        if not bool((weights.isfinite() & (weights > 0)).all()):
            raise ValueError("weights must be positive numbers")
        below = node_ptr


@dataclass(frozen=True, eq=False)
class PyramidTables:
    """One level of coarser graphs of all graphs, on one device."""

    kept: Tensor
    """The node that each coarser node is, numbered from 0 within each graph ``[K]``."""
    node_ptr: Tensor
    """The position of each graph's first coarser node ``[G + 1]``."""
    edge_index: Tensor
    """The sources and targets, numbered from 0 within each graph ``[2, E]``."""
    edge_ptr: Tensor
    """The position of each graph's first edge ``[G + 1]``."""
    weights: Tensor
    """The weight of each edge ``[E]``."""
    above: "PyramidTables | None"
    """The next level; None at the last one."""

    @classmethod
    def of(cls, node_ptr: Tensor, levels: list[Arrays]) -> "PyramidTables":
        """Return the tables of the first level, which contain those of the next one."""
        first, *others = levels
        own = first["kept"] - expand_segments(node_ptr[:-1], first["node_ptr"])
        above = cls.of(first["node_ptr"], others) if others else None
        return cls(own, first["node_ptr"], first["edge_index"], first["edge_ptr"], first["weights"].float(), above)

    def to(self, device: torch.device | str) -> "PyramidTables":
        """Return the tables on another device."""
        moved: dict[str, Any] = {name: one.to(device) for name, one in vars(self).items() if one is not None}
        return replace(self, **moved)

    def take(self, graphs: Tensor, ptr: Tensor, nodes: Tensor) -> CoarserBatch:
        """Return the coarser graphs of a batch of graphs whose ``nodes`` start at ``ptr``."""
        new, coarser = take_segments(self.node_ptr, graphs)
        edge_ptr, edges = take_segments(self.edge_ptr, graphs)
        return CoarserBatch(
            kept=self.kept.index_select(0, coarser) + expand_segments(ptr[:-1], new),
            edge_index=self.edge_index.index_select(1, edges) + expand_segments(new[:-1], edge_ptr),
            weights=self.weights.index_select(0, edges),
            batch=expand_segments(torch.arange(len(graphs), device=ptr.device), new),
            above=None if self.above is None else self.above.take(graphs, new, coarser),
        )
