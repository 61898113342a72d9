"""Read the graphs of a file or of the standard input in chunks, so that memory does not grow with their number."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as show
from types import MappingProxyType
from typing import Any

import numpy as np

from sopool.data.formats import limits
from sopool.data.formats.kinds import kind_of
from sopool.data.formats.molecule_features import columns_beside, needed_features
from sopool.data.formats.rows import USUAL, BadRow, Cells, GraphRow, RowOptions
from sopool.data.graphs import EDGE_FIELDS, KINDS, PackedGraphs
from sopool.data.names import Needed, reads
from sopool.data.pack import Graph, Label, pack
from sopool.data.sources.catalogue import load
from sopool.data.targets import GraphLabel
from sopool.errors import Place

NODES = 2**14
ROWS = 2**12
"""The largest number of nodes and of rows of a chunk; it also ends once ``limits.MAX_LINE`` characters were read."""
ID_ONLY = ("id",)
"""What is kept of a source without columns."""
NO_NODES = "the graph has no nodes."


@dataclass
class GraphChunk:
    """Consecutive graphs of a source."""

    graphs: PackedGraphs | None = None
    """The graphs; None if no row could be read."""
    rows: list[int] = field(default_factory=list)
    """The row of each graph: the line of a text file or the record of an SDF file, from 1, or the index of the graph,
    from 0."""
    ids: list[Label | None] = field(default_factory=list)
    cells: list[Cells | None] = field(default_factory=list)
    """The whole row of each graph, if rows are kept and the source has columns."""
    labels: list[GraphLabel | None] = field(default_factory=list)
    """The class of each graph, or its targets: a number with a fraction, or a list of numbers and None.

    Classes from columns of a file are strings. Graphs of a data set with both classes and targets have their classes
    here.
    """
    bad: list[BadRow] = field(default_factory=list)
    source: str | Path = ""
    """The name or path that was given."""


def stream_graphs(
    source: str | Path,
    fields: Mapping[str, Needed],
    options: RowOptions = USUAL,
    root: str | Path | None = None,
    also: Sequence[str] = (),
) -> Iterator[GraphChunk]:
    """Return an iterator over chunks of the graphs of a source, or of the standard input (``-``).

    JSON lines and molecules are read as needed. The standard input may hold JSON lines, a CSV with column names, or one
    SMILES per line.

    Args:
        source: The name of a data set, the path of a file, or ``-``.
        fields: The fields that graphs must have, as an encoder's ``fields``: each with None, with a number of columns,
            or with the names of columns. Other fields and columns are dropped.
        options: How rows are read, see :func:`~sopool.data.formats.rows.row_options`; labels are always optional.
            Default: usual columns.
        root: The folder to search first for named data sets. Default: None, ``SOPOOL_DATA``.
        also: ``"node_labels"`` or ``"edge_labels"``, which graphs of a chunk have as text, too, if all of them have
            them. Default: none.
    """
    rows = rows_of(source, options._replace(labels="optional"), fields)
    if rows is None:
        return _of_source(source, _slices(load(source, root)))
    return _of_source(source, _chunks(rows, fields, [name for name in also if name not in fields]))


def columns_of(source: str | Path, fields: Mapping[str, Needed], options: RowOptions) -> Sequence[str] | None:
    """Return the columns that the rows of a source keep, only the id if it has none; None if it has no rows.

    Only the first row is read, so that what is wrong with a file's columns is found early; see :func:`stream_graphs`.
    """
    rows = rows_of(source, options._replace(labels="optional"), fields)
    if rows is None:
        return ID_ONLY
    keeps = options.keep and bool(kind_of(source).columns)
    found = next((row for row in rows if row.cells is not None or not keeps), None)
    if found is None:
        return None
    return ID_ONLY if found.cells is None else found.cells.names


def _of_source(source: str | Path, chunks: Iterable[GraphChunk]) -> Iterator[GraphChunk]:
    """Yield chunks with the name of their source."""
    for chunk in chunks:
        chunk.source = source
        yield chunk


def rows_of(
    source: str | Path, options: RowOptions, fields: Mapping[str, Needed] = MappingProxyType({})
) -> Iterator[GraphRow] | None:
    """Return an iterator over the rows of a text file or the standard input, or None for other sources.

    Molecules get the columns that ``fields`` names, see
    :func:`~sopool.data.formats.molecule_features.needed_features`; those with numbers may also be named by the
    ``graph_columns`` of the options.
    """
    kind = kind_of(source)
    kind.check_columns(source, options)
    if kind.rows is None:
        return None
    if "graph_columns" in kind.columns and not options.graph_columns:
        options = options._replace(graph_columns=columns_beside(fields))
    return kind.rows(Path(source), options._replace(features=needed_features(fields)))


def place_of(source: str | Path) -> Place:
    """Return the name of a source and of its rows, for error messages."""
    return kind_of(source).place(source)


def _chunks(rows: Iterable[GraphRow], fields: Mapping[str, Needed], also: Sequence[str] = ()) -> Iterator[GraphChunk]:
    chunk = GraphChunk()
    graphs = list[Graph]()
    nodes = 0
    size = 0
    for row in rows:
        size += row.size
        problem = row.problem or lack(row.graph, fields)
        if problem or row.graph is None:
            chunk.bad.append(BadRow(row.number, row.text, problem))
        else:
            kept = {name: _kept(getattr(row.graph, name), needed) for name, needed in fields.items()}
            kept |= {name: _texts(getattr(row.graph, name)) for name in also}
            graphs.append(Graph(row.graph.num_nodes, row.graph.edges, **kept))
            nodes += row.graph.num_nodes
            chunk.rows.append(row.number)
            chunk.ids.append(row.name)
            chunk.cells.append(row.cells)
            chunk.labels.append(row.graph.label)
        if nodes >= NODES or len(chunk.rows) + len(chunk.bad) >= ROWS or size >= limits.MAX_LINE:
            chunk.graphs = _packed(graphs, also)
            yield chunk
            chunk = GraphChunk()
            graphs = list[Graph]()
            nodes = 0
            size = 0
    if graphs or chunk.bad:
        chunk.graphs = _packed(graphs, also)
        yield chunk


def _packed(graphs: list[Graph], also: Sequence[str]) -> PackedGraphs | None:
    """Pack the graphs of a chunk, if there are any; fields of ``also`` that some of them lack are left out."""
    for name in also:
        lacking = [graph for graph in graphs if getattr(graph, name) is None]
        needless = name in EDGE_FIELDS and not any(len(graph.edges) for graph in lacking)
        for graph in lacking if needless else graphs if lacking else ():
            setattr(graph, name, [] if needless else None)
    return pack(graphs) if graphs else None


def lack(graph: Graph | None, fields: Mapping[str, Needed]) -> str:
    """Return the reason why a graph cannot be used for prediction, or an empty string."""
    if graph is None or not graph.num_nodes:
        return NO_NODES
    for name, needed in fields.items():
        values = getattr(graph, name)
        if name in EDGE_FIELDS and not len(graph.edges):
            continue
        if values is None:
            return f"the graph has no {name}, but the graphs that the model was trained on have."
        if isinstance(needed, tuple):
            missing = next((column for column in needed if column not in values), None)
            if missing is not None:
                lacking = f"{KINDS[name]} {show(missing)}"
                return f"the graph has no {lacking}, but the graphs that the model was trained on have."
        elif needed is not None and np.shape(values)[1] != needed:
            return f"the graph has {np.shape(values)[1]} {name} each, but the model was trained with {needed}."
    return ""


def _kept(values: Any, needed: Needed) -> Any:
    """Return the values of a field in the columns that are needed; a graph without edges may have no values."""
    if isinstance(needed, tuple):
        return {name: [] if values is None else values[name] for name in needed}
    if values is None and needed is not None:
        return np.empty((0, needed), np.float32)
    return values


def _texts(labels: Sequence[Label] | None) -> list[Label] | None:
    """Return labels as text, so that graphs with 1 and with "1" can be packed together."""
    return None if labels is None else [reads(label) for label in labels]


def store_labels(store: PackedGraphs) -> Sequence[GraphLabel | None]:
    """Return the label of each graph as a row of a file has it: its class, else its list of targets, else None."""
    if store.class_labels is not None:
        classes: list[GraphLabel] = store.class_labels.tolist()
        return classes
    if store.targets is not None:
        return [[None if math.isnan(one) else one for one in row] for row in store.targets.tolist()]
    return [None] * len(store)


def _slices(store: PackedGraphs) -> Iterator[GraphChunk]:
    """Yield chunks of a store."""
    labels = store_labels(store)
    piece = (store.node_ptr[1:] // NODES).tolist()
    start = 0
    for end in range(1, len(store) + 1):
        if end == len(store) or piece[end] != piece[start] or end - start == ROWS:
            nothing = [None] * (end - start)
            yield GraphChunk(
                store.stretch(start, end), list(range(start, end)), [*nothing], [*nothing], list(labels[start:end])
            )
            start = end
