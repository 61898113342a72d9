"""Graphs of a file or of the standard input, some at a time: however many there are, memory holds a few thousand."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sopool.data.formats import limits
from sopool.data.formats.kinds import kind_of
from sopool.data.formats.rows import BadRow, GraphRow, RowOptions
from sopool.data.graphs import EDGE_FIELDS, PackedGraphs
from sopool.data.pack import Graph, Label, pack
from sopool.data.sources.catalogue import load
from sopool.errors import Place

NODES = 2**14
ROWS = 2**12
"""Where a chunk ends; it also ends once ``limits.MAX_LINE`` characters are read for it."""
NO_NODES = "the graph has no nodes."


@dataclass
class GraphChunk:
    """Some graphs of a source, in its order."""

    graphs: PackedGraphs | None = None
    """None where all rows were bad."""
    rows: list[int] = field(default_factory=list)
    """The line of a text, the record of an SDF file, from 1; of other sources the number of the graph, from 0."""
    ids: list[Label | None] = field(default_factory=list)
    labels: list[Label | None] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)


def stream_graphs(
    source: str | Path,
    fields: Mapping[str, int | None],
    root: str | Path | None = None,
    smiles_column: str | None = None,
    label_column: str | None = None,
    max_atoms: int = limits.MAX_ATOMS,
) -> Iterator[GraphChunk]:
    """Chunks of the graphs of any source that :func:`sopool.data.load` reads, or of the standard input (``-``).

    JSON lines and molecules are read as they come; the standard input may hold JSON lines, a CSV with a line of names,
    or a SMILES a line. ``fields`` are those of an encoder: a graph that lacks one is bad, other features are dropped.
    ``max_atoms`` is the size of the largest molecule that is not bad.
    """
    rows = rows_of(source, smiles_column, label_column, max_atoms)
    if rows is None:
        return _slices(load(source, root, smiles_column=smiles_column, label_column=label_column))
    return _chunks(rows, fields)


def rows_of(
    source: str | Path, smiles_column: str | None, label_column: str | None, max_atoms: int
) -> Iterator[GraphRow] | None:
    """Return the rows of a text or of the standard input as they come; None for a source that is read as a whole."""
    kind = kind_of(source)
    if kind.rows is None:
        return None
    kind.check_columns(source, smiles_column, label_column)
    return kind.rows(Path(source), RowOptions(smiles_column, label_column, max_atoms, "optional"))


def place_of(source: str | Path) -> Place:
    """Return what a row of a source is called, and what the source is called."""
    return kind_of(source).place(source)


def _chunks(rows: Iterable[GraphRow], fields: Mapping[str, int | None]) -> Iterator[GraphChunk]:
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
            graphs.append(Graph(row.graph.num_nodes, row.graph.edges, **{f: getattr(row.graph, f) for f in fields}))
            nodes += row.graph.num_nodes
            chunk.rows.append(row.number)
            chunk.ids.append(row.name)
            chunk.labels.append(row.graph.label)
        if nodes >= NODES or len(chunk.rows) + len(chunk.bad) >= ROWS or size >= limits.MAX_LINE:
            chunk.graphs = pack(graphs) if graphs else None
            yield chunk
            chunk = GraphChunk()
            graphs = list[Graph]()
            nodes = 0
            size = 0
    if graphs or chunk.bad:
        chunk.graphs = pack(graphs) if graphs else None
        yield chunk


def lack(graph: Graph | None, fields: Mapping[str, int | None]) -> str:
    """What keeps a graph from being predicted."""
    if graph is None or not graph.num_nodes:
        return NO_NODES
    for name, width in fields.items():
        values = getattr(graph, name)
        if name in EDGE_FIELDS and not len(graph.edges):
            continue
        if values is None:
            return f"the graph has no {name}; those that the model was trained on have."
        if width is not None and np.shape(values)[1] != width:
            return f"the graph has {np.shape(values)[1]} {name} each, those that the model was trained on {width}."
    return ""


def _slices(store: PackedGraphs) -> Iterator[GraphChunk]:
    """Of a store that is in memory, or mapped into it."""
    names = store.class_labels
    labels = [None] * len(store) if names is None else names.tolist()
    piece = (store.node_ptr[1:] // NODES).tolist()
    start = 0
    for end in range(1, len(store) + 1):
        if end == len(store) or piece[end] != piece[start] or end - start == ROWS:
            yield GraphChunk(
                store.stretch(start, end), list(range(start, end)), [None] * (end - start), list(labels[start:end])
            )
            start = end
