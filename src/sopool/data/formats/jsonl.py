"""Graphs as JSON lines, one object a line. Which keys there are and what they mean: docs/formats.md."""

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from reprlib import repr as show
from typing import Any, TextIO

import numpy as np

from sopool._files.atomic import whole_file
from sopool.data.formats import limits
from sopool.data.formats.json_graph import check_nodes, graph_of_line
from sopool.data.formats.lines import SHOWN, TextLine, is_packed, number_lines, read_lines, stem_of, too_long
from sopool.data.formats.rows import GraphRow
from sopool.data.graphs import EDGE_FIELDS, NAMED, NODE_FIELDS, PackedGraphs, check_values
from sopool.data.pack import Graph, pack
from sopool.errors import DataError


def read_jsonl(source: str | Path | TextIO, name: str | None = None) -> PackedGraphs:
    """Read a ``.jsonl`` or ``.jsonl.gz`` file, or an open stream such as ``sys.stdin``. An empty one has no graphs."""
    if isinstance(source, str | Path):
        return _pack(json_rows(read_lines(source)), str(source), name or stem_of(source))
    path = str(getattr(source, "name", "stream"))
    return _pack(json_rows(number_lines(source, path)), path, name or "graphs")


def json_rows(lines: Iterable[TextLine]) -> Iterator[GraphRow]:
    """Read the graphs of JSON lines. Ids are not compared: that would take memory for all of them."""
    for line in lines:
        if not line.blank:
            text = line.text.strip()[:SHOWN]
            size = len(line.text)
            try:
                name, graph = graph_of_line(line)
            except DataError as error:
                yield GraphRow(line.number, text, size, problem=str(error))
            else:
                yield GraphRow(line.number, text, size, name, graph)


def _pack(rows: Iterable[GraphRow], path: str, name: str) -> PackedGraphs:
    """Pack rows, all of which must be graphs, with ids of their own and alike in what they have."""
    graphs: dict[int, Graph] = {}
    lines: dict[str | int, int] = {}
    for row in rows:
        if row.graph is None:
            raise DataError(row.problem, path, row.number)
        if row.name is not None:
            first = lines.setdefault(row.name, row.number)
            if first != row.number:
                message = f"the id {show(row.name)} is on line {first} already: each graph needs its own."
                raise DataError(message, path, row.number)
        graphs[row.number] = row.graph
    for key in ("label", *NODE_FIELDS, *EDGE_FIELDS):
        _check_alike(graphs, key, path)
    try:
        return pack(graphs.values(), name)
    except DataError as error:
        raise DataError(str(error), path) from error


def write_jsonl(store: PackedGraphs, path: str | Path) -> None:
    """Write ``store`` as JSON lines, packed if the name ends in ``.gz``: whole or not at all, also if interrupted.

    A graph whose edges are all there in both directions, alike, is written as undirected, each edge once; they may
    come back in another order. Other graphs keep the order of their edges.
    """
    path = Path(path)
    check_values(store)
    sizes = store.sizes.tolist()
    with whole_file(path) as temporary, temporary.open("wb") as file:
        # Neither name nor time in the gzip header: equal graphs give equal bytes.
        packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if is_packed(path) else file
        with packed:
            for graph, record in enumerate(_records(store.to("cpu"))):
                line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
                _check_readable(sizes[graph], len(line), f"{path}: graph {graph}")
                packed.write(line)


def _check_readable(nodes: int, size: int, where: str) -> None:
    """Raise for a graph that :func:`read_jsonl` would refuse by its size."""
    try:
        if size > limits.MAX_LINE:
            raise DataError(too_long("line", ""))
        check_nodes(nodes, size)
    except DataError as error:
        raise DataError(f"{where}: {str(error).strip()} A .graphs file can hold this graph.") from error


def _check_alike(graphs: dict[int, Graph], key: str, path: str) -> None:
    """What one line has, all must have, in one width. A list of nothing may be left out."""
    first = next((line for line, graph in graphs.items() if getattr(graph, key) is not None), None)
    width = None
    for line, graph in graphs.items():
        value = getattr(graph, key)
        empty = key != "label" and not (graph.num_nodes if key in NODE_FIELDS else len(graph.edges))
        if value is None and first is not None:
            if not empty:
                raise DataError(f"no {key} here, but on line {first}: give it on every line or on none.", path, line)
            setattr(graph, key, [])
        elif isinstance(value, np.ndarray) and value.ndim == 2 and not empty:
            width = width or (value.shape[1], line)
            if value.shape[1] != width[0]:
                message = f"{value.shape[1]} {key} each, but {width[0]} on line {width[1]}."
                raise DataError(message, path, line)


def _records(store: PackedGraphs) -> Iterator[dict[str, Any]]:
    """One JSON object for each graph."""
    arrays = {key: tensor.detach().numpy() for key, tensor in store.tensors().items()}
    undirected = _undirected(arrays)
    for g in range(len(store)):
        nodes, edges = (slice(*arrays[ptr][g : g + 2].tolist()) for ptr in ("node_ptr", "edge_ptr"))
        record: dict[str, Any] = {"nodes": nodes.stop - nodes.start}
        if store.labels is not None:
            record["label"] = store.classes[int(arrays["labels"][g])]
        pairs = arrays["edge_index"][:, edges]
        kept = pairs[0] <= pairs[1] if undirected[g] else slice(None)
        if not undirected[g]:
            record["directed"] = True
        record["edges"] = pairs[:, kept].T.tolist()
        for key in NODE_FIELDS + EDGE_FIELDS:
            if key in arrays:
                values = arrays[key][nodes] if key in NODE_FIELDS else arrays[key][edges][kept]
                names = getattr(store, NAMED[key]) if key in NAMED else None
                record[key] = _short(values) if names is None else [names[code] for code in values.tolist()]
        yield record


def _undirected(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Whether each graph has every edge in both directions, equally often and alike [G]."""
    source, target = arrays["edge_index"]
    count = len(arrays["edge_ptr"]) - 1
    graph = np.arange(count).repeat(np.diff(arrays["edge_ptr"]))
    given = [arrays[key].view(f"i{arrays[key].itemsize}") for key in EDGE_FIELDS if key in arrays]
    features = [column for values in given for column in np.atleast_2d(values.T)]
    there = (source, target, *features)
    back = (target, source, *features)
    # Sorted by graph first, the edges of each graph stay in its stretch, in either reading.
    order, other = (np.lexsort((*some, graph)) for some in (there, back))
    same = np.all([a[order] == b[other] for a, b in zip(there, back, strict=True)], axis=0)
    result: np.ndarray = np.bincount(graph, weights=~same, minlength=count) == 0
    return result


def _short(values: np.ndarray) -> list[Any]:
    """Numbers in as few digits as give back the same 32 bits; one attribute each as a flat list."""
    short = values.astype(str).astype(np.float64)
    exact = np.where(short.astype(np.float32) == values, short, values)
    return exact.ravel().tolist() if exact.shape[1:] == (1,) else exact.tolist()
