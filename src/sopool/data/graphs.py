"""A data set of graphs, stored in a few concatenated arrays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sopool._files.bounds import check_pointers, first_outside
from sopool.data.names import (
    CategoryColumn,
    LabelNames,
    check_column_names,
    name_array,
    number_names,
    smallest_integers,
)
from sopool.errors import DataError

NODE_FIELDS = ("node_labels", "node_categories", "node_attributes")
NAMED = {"labels": "classes", "node_labels": "node_label_names", "edge_labels": "edge_label_names"}
CATEGORIES = {"node_categories": "node_category_columns", "edge_categories": "edge_category_columns"}
COLUMNS = {"targets": "target_names", "graph_attributes": "graph_attribute_names", "split_values": "split_columns"}
"""The matrices of numbers whose columns have names."""
KINDS = {
    "targets": "target",
    "graph_attributes": "graph attribute",
    "split_values": "column of split values",
    "node_categories": "column of node categories",
    "edge_categories": "column of edge categories",
}
"""What the columns with names are called in messages."""
EDGE_FIELDS = ("edge_labels", "edge_categories", "edge_attributes", "edge_weights")
GRAPH_FIELDS = ("labels", "targets", "graph_attributes", "split_values")
MATRICES = ("edge_index", *COLUMNS, *CATEGORIES, "node_attributes", "edge_attributes")
"""The names of the two-dimensional arrays; all others have one dimension."""
MAX_TARGET = 1e38
"""The largest magnitude of a target and of a number given beside a graph: squares of single-precision numbers of this
size are still finite in double precision."""


class GraphBatch(NamedTuple):
    """A batch of graphs of a store, as returned by :meth:`PackedGraphs.batch`.

    ``nodes`` and ``edges`` are the indices of the batch's nodes and edges in the store.

    Examples:
        >>> from sopool.data import load
        >>> batch = load("MUTAG").batch([0, 1])
        >>> batch.ptr.tolist()
        [0, 23, 49]
    """

    graphs: Tensor
    """The indices of the graphs in the store, ``[B]``."""
    ptr: Tensor
    """The offset of each graph's first node in the batch, ``[B + 1]``."""
    edge_ptr: Tensor
    """The offset of each graph's first edge in the batch, ``[B + 1]``."""
    nodes: Tensor
    """The index of each node in the store, ``[N]``: ``values[batch.nodes]`` selects the features of the batch."""
    edges: Tensor
    """The index of each edge in the store, ``[E]``."""
    edge_index: Tensor
    """The edges between the nodes of the batch, int64 ``[2, E]``."""


@dataclass(frozen=True, eq=False, repr=False)
class PackedGraphs:
    """A data set of G graphs whose N nodes and E edges are concatenated in a few arrays.

    Graph ``g`` has the nodes ``node_ptr[g]:node_ptr[g + 1]`` and the edges ``edge_ptr[g]:edge_ptr[g + 1]``. Edges are
    directed: an undirected edge is stored in both directions, a self-loop once. Labels are integers from 0; their
    values in the source are in ``classes``, ``node_label_names`` and ``edge_label_names``. Use :func:`load`,
    :func:`pack`, :func:`from_pyg` or :func:`from_networkx` to create one.

    Args:
        node_ptr: The offset of each graph's first node, int64 ``[G + 1]``.
        edge_ptr: The offset of each graph's first edge, int64 ``[G + 1]``.
        edge_index: The source and target of each edge, numbered from 0 within each graph, int32 ``[2, E]``.
        labels: The class of each graph, int64 ``[G]``. Default: None, the classes are not known.
        classes: The names of the classes. Default: none.
        targets: The numbers to predict of each graph, float64 ``[G, T]``, NaN where one is missing. Default: None.
        target_names: The names of the T targets. Default: none.
        node_labels: The label of each node, int32 ``[N]``. Default: None, nodes have no labels.
        node_label_names: The names of the node labels. Default: none.
        node_categories: More categories of each node, in C columns, a small integer type ``[N, C]``. Default: None.
        node_category_columns: The names and the values of the C columns. Default: none.
        node_attributes: The attributes of each node, float32 ``[N, F]``. Default: None.
        edge_labels: The label of each edge, int32 ``[E]``. Default: None, edges have no labels.
        edge_label_names: The names of the edge labels. Default: none.
        edge_categories: More categories of each edge, in C columns, a small integer type ``[E, C]``. Default: None.
        edge_category_columns: The names and the values of the C columns. Default: none.
        edge_attributes: The attributes of each edge, float32 ``[E, F]``. Default: None.
        edge_weights: The weight of each edge, float32 ``[E]``. Default: None.
        graph_attributes: Numbers given beside each graph, such as a temperature, float32 ``[G, D]``, NaN where one is
            missing. Default: None.
        graph_attribute_names: The names of the D numbers. Default: none.
        split_values: What cross-validation divides the graphs by, such as the group of each graph, float64 ``[G, S]``;
            never a feature. See :func:`with_split`. Default: None, graphs are divided at random.
        split_columns: The names of the S columns. Default: none.
        name: The name of the data set. Default: ``"graphs"``.

    Examples:
        >>> from sopool.data import load
        >>> graphs = load("MUTAG")
        >>> len(graphs), graphs.num_nodes, graphs.classes
        (188, 3371, (-1, 1))
        >>> len(graphs[:10])
        10
    """

    node_ptr: Tensor
    """The offset of each graph's first node, int64 ``[G + 1]``."""
    edge_ptr: Tensor
    """The offset of each graph's first edge, int64 ``[G + 1]``."""
    edge_index: Tensor
    """The source and target of each edge, numbered from 0 within each graph, int32 ``[2, E]``."""
    labels: Tensor | None = None
    """The class of each graph, int64 ``[G]``; None if the classes are not known."""
    classes: LabelNames = ()
    """The names of the classes: ``classes[i]`` is the name of label ``i``. All readers and :func:`sopool.data.pack`
    sort them, numbers before strings. A subset of a store keeps all names, even those that none of its graphs has."""
    targets: Tensor | None = None
    """The numbers to predict of each graph, float64 ``[G, T]``, NaN where one is missing: measurements for a
    regression, or 0 and 1 for several labels at once."""
    target_names: tuple[str, ...] = ()
    """The names of the T targets."""
    node_labels: Tensor | None = None
    """The label of each node, int32 ``[N]``."""
    node_label_names: LabelNames = ()
    node_categories: Tensor | None = None
    """More categories of each node, in C columns, ``[N, C]``, in the smallest of uint8, int16 and int32 that holds
    them: a code of the column's values in ``node_category_columns``."""
    node_category_columns: tuple[CategoryColumn, ...] = ()
    node_attributes: Tensor | None = None
    """The attributes of each node, float32 ``[N, F]``."""
    edge_labels: Tensor | None = None
    """The label of each edge, int32 ``[E]``."""
    edge_label_names: LabelNames = ()
    edge_categories: Tensor | None = None
    """More categories of each edge, in C columns, ``[E, C]``, as those of nodes."""
    edge_category_columns: tuple[CategoryColumn, ...] = ()
    edge_attributes: Tensor | None = None
    """The attributes of each edge, float32 ``[E, F]``."""
    edge_weights: Tensor | None = None
    """The weight of each edge, float32 ``[E]``."""
    graph_attributes: Tensor | None = None
    """Numbers given beside each graph, float32 ``[G, D]``, NaN where one is missing."""
    graph_attribute_names: tuple[str, ...] = ()
    """The names of the D numbers."""
    split_values: Tensor | None = None
    """What cross-validation divides the graphs by, float64 ``[G, S]``; see :class:`~sopool.data.division.Division`."""
    split_columns: tuple[str, ...] = ()
    """The names of the S columns."""
    name: str = "graphs"

    def __post_init__(self) -> None:
        _check_shapes(self)

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @property
    def num_nodes(self) -> int:
        """The number of nodes of all graphs together."""
        return int(self.node_ptr[-1])

    @property
    def num_edges(self) -> int:
        """The number of directed edges of all graphs together."""
        return self.edge_index.shape[1]

    @property
    def sizes(self) -> Tensor:
        """The number of nodes of each graph, ``[G]``."""
        return self.node_ptr.diff()

    @property
    def empty(self) -> list[int]:
        """The indices of the graphs that have no nodes."""
        graphs: list[int] = self.sizes.eq(0).nonzero().flatten().tolist()
        return graphs

    @property
    def class_labels(self) -> np.ndarray | None:
        """The class of each graph by its name in the source, ``[G]``, as scikit-learn's ``y``; None without labels."""
        return None if self.labels is None else name_array(self.classes)[self.labels.cpu().numpy()]

    def present_classes(self) -> tuple[Tensor, LabelNames]:
        """Return the class of each graph as int64 ``[G]`` and the names of the classes that occur.

        The names are sorted, numbers before strings. Classes without a graph are left out.
        """
        if self.labels is None:
            raise DataError(f"the graphs of {self.name} have no labels.")
        used, place = self.labels.unique(return_inverse=True)
        codes, names = number_names([self.classes[code] for code in used.tolist()])
        return codes.to(self.device)[place], names

    @property
    def device(self) -> torch.device:
        """The device of the arrays."""
        return self.node_ptr.device

    def tensors(self) -> dict[str, Tensor]:
        """Return the arrays that are not None, by name."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def to(self, device: torch.device | str) -> "PackedGraphs":
        """Return the same graphs on another device.

        Args:
            device: The target device.
        """
        moved: dict[str, Any] = {name: tensor.to(device) for name, tensor in self.tensors().items()}
        return replace(self, **moved)

    def batch(self, graphs: Tensor | Sequence[int]) -> GraphBatch:
        """Collect some graphs into a batch, on the device of the store.

        Args:
            graphs: The indices of the graphs; a graph may occur more than once.
        """
        graphs = torch.as_tensor(graphs, dtype=torch.long, device=self.device)
        ptr, nodes = take_segments(self.node_ptr, graphs)
        edge_ptr, edges = take_segments(self.edge_ptr, graphs)
        shift = ptr[:-1].repeat_interleave(edge_ptr.diff(), output_size=edges.numel())
        edge_index = self.edge_index.index_select(1, edges) + shift
        return GraphBatch(graphs, ptr, edge_ptr, nodes, edges, edge_index)

    def __getitem__(self, which: int | slice | Sequence[int] | Tensor) -> "PackedGraphs":
        """Return one or several graphs as a new store, selected by index, slice, list or boolean mask."""
        graphs = self._numbers(which)
        ptr, nodes = take_segments(self.node_ptr, graphs)
        edge_ptr, edges = take_segments(self.edge_ptr, graphs)
        taken: dict[str, Any] = {"node_ptr": ptr, "edge_ptr": edge_ptr}
        taken["edge_index"] = self.edge_index.index_select(1, edges)
        for names, rows in ((GRAPH_FIELDS, graphs), (NODE_FIELDS, nodes), (EDGE_FIELDS, edges)):
            for name in names:
                value = getattr(self, name)
                taken[name] = None if value is None else value.index_select(0, rows)
        return replace(self, **taken)

    def stretch(self, first: int, last: int) -> "PackedGraphs":
        """Return the graphs from ``first`` up to but not including ``last``, as views that share the arrays."""
        taken: dict[str, Any] = {}
        for name, ptr in (("node_ptr", self.node_ptr), ("edge_ptr", self.edge_ptr)):
            taken[name] = ptr[first : last + 1] - ptr[first]
        nodes, edges = (slice(int(ptr[first]), int(ptr[last])) for ptr in (self.node_ptr, self.edge_ptr))
        taken["edge_index"] = self.edge_index[:, edges]
        for names, rows in ((GRAPH_FIELDS, slice(first, last)), (NODE_FIELDS, nodes), (EDGE_FIELDS, edges)):
            for name in names:
                value = getattr(self, name)
                taken[name] = None if value is None else value[rows]
        return replace(self, **taken)

    def __iter__(self) -> Iterator["PackedGraphs"]:
        return (self[g] for g in range(len(self)))

    def __repr__(self) -> str:
        return f"PackedGraphs({_summary(self)})"

    def _numbers(self, which: int | slice | Sequence[int] | Tensor) -> Tensor:
        """Convert any selection to the indices of graphs, ``[B]``; negative indices count from the end."""
        count = len(self)
        if isinstance(which, slice):
            return torch.tensor(range(count)[which], dtype=torch.long, device=self.device)
        chosen = torch.as_tensor([which] if isinstance(which, int) else which, device=self.device)
        if chosen.dtype == torch.bool:
            if chosen.shape != (count,):
                raise IndexError(f"A mask of shape {list(chosen.shape)} cannot select among {count} graphs.")
            return chosen.nonzero().flatten()
        # A mask of 0.0 and 1.0 would select graphs 0 and 1 repeatedly.
        if chosen.is_floating_point() and chosen.numel():
            raise IndexError(f"Graphs are selected by integers or a boolean mask, not by {chosen.dtype}.")
        chosen = chosen.long().flatten()
        wrong = (chosen < -count) | (chosen >= count)
        if bool(wrong.any()):
            raise IndexError(f"There is no graph {int(chosen[wrong][0])}: the store has {count} graphs, from 0.")
        return torch.where(chosen < 0, chosen + count, chosen)


def check_values(store: PackedGraphs) -> None:
    """Raise a ``DataError`` if a pointer decreases, an edge leaves its graph or a label has no name."""
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
            raise DataError(f"{name} must lie between 0 and {known - 1}, because there are {known} {names}.")
    for name, columns in CATEGORIES.items():
        _check_categories(name, getattr(store, name), getattr(store, columns))
    for name in ("node_attributes", "edge_attributes", "edge_weights"):
        _check_finite(name, getattr(store, name), store.edge_ptr if name in EDGE_FIELDS else store.node_ptr)
    if store.split_values is not None and not bool(store.split_values.isfinite().all()):
        graph = int((~store.split_values.isfinite()).any(1).nonzero()[0])
        raise DataError(f"graph {graph}: split_values must be finite.")
    if store.targets is not None:
        check_targets(store.targets, store.target_names)
    if store.graph_attributes is not None:
        _check_numbers("", store.graph_attributes, store.graph_attribute_names)


def _check_finite(name: str, values: Tensor | None, ptr: Tensor) -> None:
    """Raise a ``DataError`` that gives graph and place if a number of a node or of an edge is not finite."""
    if values is None or bool(values.isfinite().all()):
        return
    at = int((~values.isfinite()).nonzero()[0, 0])
    graph = int(torch.searchsorted(ptr, at, right=True)) - 1
    value = values[at][~values[at].isfinite()][0] if values.ndim > 1 else values[at]
    raise DataError(f"graph {graph}: {name} must be finite, found {float(value)} at {name[:4]} {at - int(ptr[graph])}.")


def _check_categories(name: str, codes: Tensor | None, columns: Sequence[CategoryColumn]) -> None:
    """Raise a ``DataError`` if a category has no name."""
    for place, column in enumerate(columns if codes is not None and len(codes) else ()):
        found = codes[:, place]  # type: ignore[index]
        known = len(column.values)
        if not 0 <= int(found.min()) <= int(found.max()) < known:
            raise DataError(
                f"{name} of column {column.name!r} must lie between 0 and {known - 1}, because it has {known} values."
            )


def check_targets(targets: Tensor, names: Sequence[str]) -> None:
    """Raise a ``DataError`` if a target is infinite or very large; NaN is a missing target."""
    _check_numbers("the target ", targets, names)


def _check_numbers(what: str, numbers: Tensor, names: Sequence[str]) -> None:
    """Raise a ``DataError`` if a number of a graph is infinite or very large; NaN is a missing one."""
    wrong = (numbers.abs() > MAX_TARGET).nonzero()
    if len(wrong):
        graph, column = wrong[0].tolist()
        value = float(numbers[graph, column])
        raise DataError(
            f"graph {graph}: {what}{names[column]!r} is {value:g}, expected a number of at most {MAX_TARGET:g} in "
            "size, or NaN if it is missing."
        )


def concatenate(stores: Sequence[PackedGraphs], name: str = "graphs") -> PackedGraphs:
    """Concatenate the graphs of several stores; labels are matched by name.

    Args:
        stores: The stores, at least one. If one has labels or attributes, all must have them.
        name: The name of the result. Default: ``"graphs"``.

    Examples:
        >>> from sopool.data import concatenate, load
        >>> graphs = load("MUTAG")
        >>> len(concatenate([graphs[:10], graphs[50:]]))
        148
    """
    if not stores:
        raise DataError("stores is empty: give at least one store to concatenate.")
    joined: dict[str, Any] = {"name": name}
    for item in ("node_ptr", "edge_ptr"):
        steps = torch.cat([getattr(store, item).diff() for store in stores])
        joined[item] = torch.cat([steps.new_zeros(1), steps.cumsum(0)])
    joined["edge_index"] = torch.cat([store.edge_index for store in stores], dim=1)
    for item, names in COLUMNS.items():
        every = [getattr(store, names) for store in stores]
        if len(set(every)) > 1:
            raise DataError(f"the stores have different {item.replace('_', ' ')}: {list(map(list, every))}.")
        joined[names] = every[0]
    for item in (*GRAPH_FIELDS, *NODE_FIELDS, *EDGE_FIELDS):
        values = [getattr(store, item) for store in stores]
        if all(value is None for value in values):
            continue
        if any(value is None for value in values):
            raise DataError(f"some of the stores have {item} and some do not, expected all or none.")
        if item in NAMED:
            known = NAMED[item]
            values, joined[known] = _match_names(values, [getattr(store, known) for store in stores])
        elif item in CATEGORIES:
            columns = CATEGORIES[item]
            values, joined[columns] = _match_columns(item, values, [getattr(store, columns) for store in stores])
        elif len({value.shape[1:] for value in values}) > 1:
            raise DataError(f"{item} differ in width: {[list(value.shape[1:]) for value in values]}.")
        joined[item] = torch.cat(values)
    return PackedGraphs(**joined)


def _summary(store: PackedGraphs) -> str:
    """Return one line of statistics."""
    graphs = len(store)
    nodes = store.num_nodes
    parts = [
        f"{store.name}: {graphs:,} graphs",
        f"{nodes:,} nodes (at most {int(store.sizes.max()) if graphs else 0:,})",
    ]
    parts.append(f"{store.num_edges:,} directed edges")
    if store.labels is not None:
        parts.append(f"{len(store.classes)} classes")
    if store.targets is not None:
        parts.append(_counted(len(store.target_names), "target"))
    if store.node_labels is not None:
        parts.append(f"{len(store.node_label_names)} node labels")
    if store.node_categories is not None:
        parts.append(f"{_counted(store.node_categories.shape[1], 'column')} of node categories")
    if store.node_attributes is not None:
        parts.append(f"{store.node_attributes.shape[1]} node attributes")
    if store.edge_labels is not None:
        parts.append(f"{len(store.edge_label_names)} edge labels")
    if store.edge_categories is not None:
        parts.append(f"{_counted(store.edge_categories.shape[1], 'column')} of edge categories")
    if store.edge_attributes is not None:
        parts.append(f"{store.edge_attributes.shape[1]} edge attributes")
    if store.edge_weights is not None:
        parts.append("edge weights")
    if store.graph_attributes is not None:
        parts.append(_counted(store.graph_attributes.shape[1], "graph attribute"))
    return ", ".join(parts)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def take_segments(ptr: Tensor, segments: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ``ptr`` of the concatenated segments, ``[B + 1]``, and the original indices of their members."""
    starts = ptr.index_select(0, segments)
    counts = ptr.index_select(0, segments + 1) - starts
    new = torch.zeros(segments.numel() + 1, dtype=torch.long, device=ptr.device)
    torch.cumsum(counts, 0, out=new[1:])
    members = expand_segments(starts - new[:-1], new)
    return new, members.add_(torch.arange(members.numel(), device=ptr.device))


def expand_segments(values: Tensor, ptr: Tensor) -> Tensor:
    """Repeat the value of each segment for each of its members; the total is read from the device."""
    return values.repeat_interleave(ptr.diff(), output_size=int(ptr[-1]))


def _match_names(codes: list[Tensor], names: list[LabelNames]) -> tuple[list[Tensor], LabelNames]:
    """Map the codes of several vocabularies to codes of their union."""
    _, union = number_names([name for some in names for name in some])
    number = {name: i for i, name in enumerate(union)}
    tables = [
        torch.tensor([number[name] for name in some], dtype=code.dtype) for code, some in zip(codes, names, strict=True)
    ]
    return [table.to(code.device)[code.long()] for code, table in zip(codes, tables, strict=True)], union


def _match_columns(
    item: str, codes: list[Tensor], columns: list[tuple[CategoryColumn, ...]]
) -> tuple[list[Tensor], tuple[CategoryColumn, ...]]:
    """Map several columns of categories to codes of the unions of their values, in the order of the first store."""
    names = [column.name for column in columns[0]]
    for some in columns:
        if {column.name for column in some} != set(names):
            raise DataError(f"{item} have different columns: {[[column.name for column in some] for some in columns]}.")
    matched = []
    union = []
    for name in names:
        places = [[column.name for column in some].index(name) for some in columns]
        own = [code[:, place] for code, place in zip(codes, places, strict=True)]
        values, known = _match_names(own, [some[place].values for some, place in zip(columns, places, strict=True)])
        matched.append(values)
        union.append(CategoryColumn(name, known))
    joined = [torch.stack([some.int() for some in rows], 1) for rows in zip(*matched, strict=True)]
    return [smallest_integers(codes, union) for codes in joined], tuple(union)


def _check_shapes(store: PackedGraphs) -> None:
    """Raise a ``DataError`` if array shapes do not match; for the values see :func:`check_values`."""
    if store.device.type != "cpu":
        return  # it was checked before it was moved, and another check would wait for the device
    for name, value in store.tensors().items():
        if value.ndim != 1 + (name in MATRICES) or (name == "edge_index" and len(value) != 2):
            wanted = "[2, edges]" if name == "edge_index" else f"{1 + (name in MATRICES)} dimensions"
            raise DataError(f"{name} has shape {list(value.shape)}, expected {wanted}.")
    graphs = len(store)
    edges = store.edge_index.shape[1]
    nodes = int(store.node_ptr[-1]) if graphs >= 0 else -1
    if graphs < 0 or store.edge_ptr.numel() != graphs + 1 or int(store.edge_ptr[-1]) != edges:
        raise DataError(
            "node_ptr and edge_ptr must have one entry more than there are graphs, and end with the total counts."
        )
    expected = dict.fromkeys(GRAPH_FIELDS, graphs)
    expected |= dict.fromkeys(NODE_FIELDS, nodes) | dict.fromkeys(EDGE_FIELDS, edges)
    for name, length in expected.items():
        value = getattr(store, name)
        if value is not None and value.shape[0] != length:
            raise DataError(f"{name} has {value.shape[0]} entries, expected {length}.")
    for item, names in (COLUMNS | CATEGORIES).items():
        values = getattr(store, item)
        columns = 0 if values is None else values.shape[1]
        named = getattr(store, names)
        texts = [column.name if isinstance(column, CategoryColumn) else column for column in named]
        check_column_names(KINDS[item], texts)
        if len(named) != columns or (values is not None and not columns):
            raise DataError(
                f"{columns} columns of {item.replace('_', ' ')} have {len(named)} names, expected one name each."
            )
