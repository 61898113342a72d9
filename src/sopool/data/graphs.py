"""A data set of graphs packed end to end: a few arrays, whatever the number of graphs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sopool._files.bounds import check_pointers, first_outside
from sopool.data.names import LabelNames, name_array, number_names
from sopool.errors import DataError

NODE_FIELDS = ("node_labels", "node_attributes")
NAMED = {"labels": "classes", "node_labels": "node_label_names", "edge_labels": "edge_label_names"}
EDGE_FIELDS = ("edge_labels", "edge_attributes", "edge_weights")
MATRICES = ("edge_index", "node_attributes", "edge_attributes")
"""The arrays of two dimensions; all others have one."""


class GraphBatch(NamedTuple):
    """Some graphs of a store, side by side. ``nodes`` and ``edges`` say where in the store they come from."""

    graphs: Tensor
    """Which graphs of the store [B]."""
    ptr: Tensor
    """Where each graph's nodes start in the batch [B + 1]."""
    edge_ptr: Tensor
    """Where each graph's edges start in the batch [B + 1]."""
    nodes: Tensor
    """The store's number of each node [n]: ``values[batch.nodes]`` are its features."""
    edges: Tensor
    """The store's number of each edge [e]."""
    edge_index: Tensor
    """Edges between the batch's nodes [2, e], int64."""


@dataclass(frozen=True, eq=False, repr=False)
class PackedGraphs:
    """G graphs, their nodes laid end to end in arrays [N, ...], their edges in arrays [E, ...].

    Graph g has the nodes ``node_ptr[g]:node_ptr[g + 1]`` and the edges ``edge_ptr[g]:edge_ptr[g + 1]``. An edge is
    directed; an undirected one is there in both directions, a self-loop once. Labels are numbers from 0; the values
    they had in the source are in ``classes``, ``node_label_names`` and ``edge_label_names``.
    """

    node_ptr: Tensor
    """[G + 1], int64."""
    edge_ptr: Tensor
    """[G + 1], int64."""
    edge_index: Tensor
    """[2, E], int32: source and target, numbered from 0 within each graph."""
    labels: Tensor | None = None
    """The class of each graph [G], int64; None where they are not known."""
    classes: LabelNames = ()
    """The names of the classes: ``classes[i]`` is that of label i. All readers and :func:`sopool.data.pack` give them
    sorted, numbers before words. A part of a store keeps all of them, also those that none of its graphs has."""
    node_labels: Tensor | None = None
    """[N], int32."""
    node_label_names: LabelNames = ()
    node_attributes: Tensor | None = None
    """[N, d], float32."""
    edge_labels: Tensor | None = None
    """[E], int32."""
    edge_label_names: LabelNames = ()
    edge_attributes: Tensor | None = None
    """[E, d], float32."""
    edge_weights: Tensor | None = None
    """[E], float32."""
    name: str = "graphs"

    def __post_init__(self) -> None:
        _check_shapes(self)

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @property
    def num_nodes(self) -> int:
        """Of all graphs together."""
        return int(self.node_ptr[-1])

    @property
    def num_edges(self) -> int:
        """Directed edges of all graphs together."""
        return self.edge_index.shape[1]

    @property
    def sizes(self) -> Tensor:
        """The number of nodes of each graph [G]."""
        return self.node_ptr.diff()

    @property
    def empty(self) -> list[int]:
        """The graphs that have no nodes."""
        graphs: list[int] = self.sizes.eq(0).nonzero().flatten().tolist()
        return graphs

    @property
    def class_labels(self) -> np.ndarray | None:
        """The class of each graph by its name in the source [G]: the ``y`` of scikit-learn; None as ``labels``."""
        return None if self.labels is None else name_array(self.classes)[self.labels.cpu().numpy()]

    def present_classes(self) -> tuple[Tensor, LabelNames]:
        """Return the class of each graph as a number from 0 [G], int64, and the names of the classes that graphs have.

        The names are sorted, numbers before words. They are those in ``classes`` less the ones without a graph.
        """
        if self.labels is None:
            raise DataError(f"the graphs of {self.name} have no labels.")
        used, place = self.labels.unique(return_inverse=True)
        codes, names = number_names([self.classes[code] for code in used.tolist()])
        return codes.to(self.device)[place], names

    @property
    def device(self) -> torch.device:
        """Where the arrays live."""
        return self.node_ptr.device

    def tensors(self) -> dict[str, Tensor]:
        """The arrays that are there, by name."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def to(self, device: torch.device | str) -> "PackedGraphs":
        """The same graphs on another device."""
        moved: dict[str, Any] = {name: tensor.to(device) for name, tensor in self.tensors().items()}
        return replace(self, **moved)

    def batch(self, graphs: Tensor | Sequence[int]) -> GraphBatch:
        """Lay some graphs side by side, repeats allowed: index operations only, wherever the store lives."""
        graphs = torch.as_tensor(graphs, dtype=torch.long, device=self.device)
        ptr, nodes = take_segments(self.node_ptr, graphs)
        edge_ptr, edges = take_segments(self.edge_ptr, graphs)
        shift = ptr[:-1].repeat_interleave(edge_ptr.diff(), output_size=edges.numel())
        edge_index = self.edge_index.index_select(1, edges) + shift
        return GraphBatch(graphs, ptr, edge_ptr, nodes, edges, edge_index)

    def __getitem__(self, which: int | slice | Sequence[int] | Tensor) -> "PackedGraphs":
        """Some of the graphs, or one, as a store of their own: by number, slice, list, or boolean mask."""
        graphs = self._numbers(which)
        ptr, nodes = take_segments(self.node_ptr, graphs)
        edge_ptr, edges = take_segments(self.edge_ptr, graphs)
        taken: dict[str, Any] = {"node_ptr": ptr, "edge_ptr": edge_ptr}
        taken["edge_index"] = self.edge_index.index_select(1, edges)
        if self.labels is not None:
            taken["labels"] = self.labels.index_select(0, graphs)
        for names, rows in ((NODE_FIELDS, nodes), (EDGE_FIELDS, edges)):
            for name in names:
                value = getattr(self, name)
                taken[name] = None if value is None else value.index_select(0, rows)
        return replace(self, **taken)

    def stretch(self, first: int, last: int) -> "PackedGraphs":
        """Graphs ``first`` to ``last``, the latter left out; the arrays of nodes and edges are shared, not copied."""
        taken: dict[str, Any] = {}
        for name, ptr in (("node_ptr", self.node_ptr), ("edge_ptr", self.edge_ptr)):
            taken[name] = ptr[first : last + 1] - ptr[first]
        nodes, edges = (slice(int(ptr[first]), int(ptr[last])) for ptr in (self.node_ptr, self.edge_ptr))
        taken["edge_index"] = self.edge_index[:, edges]
        for names, rows in ((("labels",), slice(first, last)), (NODE_FIELDS, nodes), (EDGE_FIELDS, edges)):
            for name in names:
                value = getattr(self, name)
                taken[name] = None if value is None else value[rows]
        return replace(self, **taken)

    def __iter__(self) -> Iterator["PackedGraphs"]:
        return (self[g] for g in range(len(self)))

    def __repr__(self) -> str:
        return f"PackedGraphs({_summary(self)})"

    def _numbers(self, which: int | slice | Sequence[int] | Tensor) -> Tensor:
        """Graph numbers [B] from anything that selects, negative ones counted from the end."""
        count = len(self)
        if isinstance(which, slice):
            return torch.tensor(range(count)[which], dtype=torch.long, device=self.device)
        chosen = torch.as_tensor([which] if isinstance(which, int) else which, device=self.device)
        if chosen.dtype == torch.bool:
            if chosen.shape != (count,):
                raise IndexError(f"A mask of shape {list(chosen.shape)} cannot select among {count} graphs.")
            return chosen.nonzero().flatten()
        # A mask of 0.0 and 1.0 would be graphs 0 and 1, over and over.
        if chosen.is_floating_point() and chosen.numel():
            raise IndexError(f"Graphs are chosen by whole numbers or by true and false, not by {chosen.dtype}.")
        chosen = chosen.long().flatten()
        wrong = (chosen < -count) | (chosen >= count)
        if bool(wrong.any()):
            raise IndexError(f"There is no graph {int(chosen[wrong][0])}: the store has {count}, numbered from 0.")
        return torch.where(chosen < 0, chosen + count, chosen)


def check_values(store: PackedGraphs) -> None:
    """Raise unless every value makes sense: pointers rise, edges stay within their graph, labels have names."""
    check_pointers("node_ptr", store.node_ptr)
    check_pointers("edge_ptr", store.edge_ptr)
    at = first_outside(store.edge_index, store.edge_ptr, store.sizes)
    if at is not None:
        graph = int(torch.searchsorted(store.edge_ptr, at, right=True)) - 1
        ends = store.edge_index[:, at].tolist()
        size = int(store.sizes[graph])
        raise DataError(f"edge {at} is {ends} in graph {graph}, which has {size} nodes.")
    for name, names in NAMED.items():
        codes = getattr(store, name)
        known = len(getattr(store, names))
        if codes is not None and codes.numel() and not 0 <= int(codes.min()) <= int(codes.max()) < known:
            raise DataError(f"{name} must lie between 0 and {known - 1}, the number of {names} less one.")
    for name in ("node_attributes", "edge_attributes", "edge_weights"):
        values = getattr(store, name)
        if values is not None and not bool(values.isfinite().all()):
            raise DataError(
                f"{name} must be finite: entry {int((~values.isfinite()).flatten(1).any(1).nonzero()[0])} is not."
            )


def concatenate(stores: Sequence[PackedGraphs], name: str = "graphs") -> PackedGraphs:
    """All graphs of several stores, one after the other; labels are matched by their names."""
    if not stores:
        raise DataError("There is nothing to concatenate.")
    joined: dict[str, Any] = {"name": name}
    for item in ("node_ptr", "edge_ptr"):
        steps = torch.cat([getattr(store, item).diff() for store in stores])
        joined[item] = torch.cat([steps.new_zeros(1), steps.cumsum(0)])
    joined["edge_index"] = torch.cat([store.edge_index for store in stores], dim=1)
    for item in ("labels", *NODE_FIELDS, *EDGE_FIELDS):
        values = [getattr(store, item) for store in stores]
        if all(value is None for value in values):
            continue
        if any(value is None for value in values):
            raise DataError(f"Some of the stores have {item} and some have not.")
        names = NAMED.get(item)
        if names is not None:
            values, joined[names] = _match_names(values, [getattr(store, names) for store in stores])
        elif len({value.shape[1:] for value in values}) > 1:
            raise DataError(f"{item} differ in width: {[list(value.shape[1:]) for value in values]}.")
        joined[item] = torch.cat(values)
    return PackedGraphs(**joined)


def _summary(store: PackedGraphs) -> str:
    """One line of statistics."""
    graphs = len(store)
    nodes = store.num_nodes
    parts = [
        f"{store.name}: {graphs:,} graphs",
        f"{nodes:,} nodes (at most {int(store.sizes.max()) if graphs else 0:,})",
    ]
    parts.append(f"{store.num_edges:,} directed edges")
    if store.labels is not None:
        parts.append(f"{len(store.classes)} classes")
    if store.node_labels is not None:
        parts.append(f"{len(store.node_label_names)} node labels")
    if store.node_attributes is not None:
        parts.append(f"{store.node_attributes.shape[1]} node attributes")
    if store.edge_labels is not None:
        parts.append(f"{len(store.edge_label_names)} edge labels")
    if store.edge_attributes is not None:
        parts.append(f"{store.edge_attributes.shape[1]} edge attributes")
    if store.edge_weights is not None:
        parts.append("edge weights")
    return ", ".join(parts)


def take_segments(ptr: Tensor, segments: Tensor) -> tuple[Tensor, Tensor]:
    """The ``ptr`` of some segments laid end to end [B + 1], and where their members come from [n]."""
    starts = ptr.index_select(0, segments)
    counts = ptr.index_select(0, segments + 1) - starts
    new = torch.zeros(segments.numel() + 1, dtype=torch.long, device=ptr.device)
    torch.cumsum(counts, 0, out=new[1:])
    members = expand_segments(starts - new[:-1], new)
    return new, members.add_(torch.arange(members.numel(), device=ptr.device))


def expand_segments(values: Tensor, ptr: Tensor) -> Tensor:
    """Each segment's value for each of its members: [B] -> [n]; how many there are is read from the device."""
    return values.repeat_interleave(ptr.diff(), output_size=int(ptr[-1]))


def _match_names(codes: list[Tensor], names: list[LabelNames]) -> tuple[list[Tensor], LabelNames]:
    """Codes of several vocabularies as codes of their union."""
    _, union = number_names([name for some in names for name in some])
    number = {name: i for i, name in enumerate(union)}
    tables = [
        torch.tensor([number[name] for name in some], dtype=code.dtype) for code, some in zip(codes, names, strict=True)
    ]
    return [table.to(code.device)[code.long()] for code, table in zip(codes, tables, strict=True)], union


def _check_shapes(store: PackedGraphs) -> None:
    """Array lengths must fit; values are checked where they come in, see ``check_values``."""
    if store.device.type != "cpu":
        return  # it was checked before it moved, and looking again would wait for the device
    for name, value in store.tensors().items():
        if value.ndim != 1 + (name in MATRICES) or (name == "edge_index" and len(value) != 2):
            wanted = "[2, edges]" if name == "edge_index" else f"{1 + (name in MATRICES)} dimensions"
            raise DataError(f"{name} has shape {list(value.shape)}, expected {wanted}.")
    graphs = len(store)
    edges = store.edge_index.shape[1]
    nodes = int(store.node_ptr[-1]) if graphs >= 0 else -1
    if graphs < 0 or store.edge_ptr.numel() != graphs + 1 or int(store.edge_ptr[-1]) != edges:
        raise DataError(
            "node_ptr and edge_ptr must have one entry more than there are graphs, and end at their totals."
        )
    expected = {"labels": graphs} | dict.fromkeys(NODE_FIELDS, nodes) | dict.fromkeys(EDGE_FIELDS, edges)
    for name, length in expected.items():
        value = getattr(store, name)
        if value is not None and value.shape[0] != length:
            raise DataError(f"{name} has {value.shape[0]} entries, expected {length}.")
