"""Read and write graphs as JSON lines, one object per line; docs/formats.md describes the keys."""

import gzip
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from reprlib import repr as show
from typing import Any, TextIO

import numpy as np

from sopool._files.atomic import whole_file
from sopool.data.formats import limits
from sopool.data.formats.json_graph import check_nodes, graph_of_line
from sopool.data.formats.lines import SHOWN, TextLine, is_packed, number_lines, read_lines, stem_of, too_long
from sopool.data.formats.rows import GraphRow
from sopool.data.graphs import CATEGORIES, EDGE_FIELDS, NAMED, NODE_FIELDS, PackedGraphs, check_values
from sopool.data.pack import Graph, pack
from sopool.errors import DataError


def read_jsonl(source: str | Path | TextIO, name: str | None = None, target_names: Sequence[str] = ()) -> PackedGraphs:
    """Read graphs from JSON lines; an empty file has no graphs.

    Args:
        source: The path of a ``.jsonl`` or ``.jsonl.gz`` file, or an open text stream such as ``sys.stdin``.
        name: The name of the data set. Default: None, the file's name.
        target_names: The names of the targets, which the file does not have. If given, whole numbers are targets, too.
            Default: those of :func:`sopool.data.pack`.

    Examples:
        >>> from io import StringIO
        >>> from sopool.data.formats.jsonl import read_jsonl
        >>> read_jsonl(StringIO('{"nodes": 3, "edges": [[0, 1], [1, 2]], "label": "path"}'))
        PackedGraphs(graphs: 1 graphs, 3 nodes (at most 3), 4 directed edges, 1 classes)
    """
    if isinstance(source, str | Path):
        return _pack(json_rows(read_lines(source)), str(source), name or stem_of(source), target_names)
    path = str(getattr(source, "name", "stream"))
    return _pack(json_rows(number_lines(source, path)), path, name or "graphs", target_names)


def json_rows(lines: Iterable[TextLine]) -> Iterator[GraphRow]:
    """Yield the graphs of JSON lines; ids are not checked for duplicates, which would need memory for all of them."""
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


def _pack(rows: Iterable[GraphRow], path: str, name: str, target_names: Sequence[str]) -> PackedGraphs:
    """Pack rows into a store; raise if a row is not a graph, an id is repeated, or graphs have different fields."""
    graphs: dict[int, Graph] = {}
    lines: dict[str | int, int] = {}
    for row in rows:
        if row.graph is None:
            raise DataError(row.problem, path, row.number)
        if row.name is not None:
            first = lines.setdefault(row.name, row.number)
            if first != row.number:
                message = f"the id {show(row.name)} is already on line {first}: each graph needs an id of its own."
                raise DataError(message, path, row.number)
        row.graph.where = f"line {row.number}"
        graphs[row.number] = row.graph
    # A single number may be missing, but not a list: a short line would need as much memory as a long one.
    kinds = {type(graph.label) for graph in graphs.values()}
    may_miss = float in kinds and list not in kinds
    for key in (*(() if may_miss else ("label",)), *NODE_FIELDS, *EDGE_FIELDS, "graph_attributes"):
        _check_alike(graphs, key, path)
    try:
        return pack(graphs.values(), name, target_names)
    except DataError as error:
        raise DataError(str(error), path) from error


def write_jsonl(store: PackedGraphs, path: str | Path) -> None:
    """Write a store as JSON lines; if interrupted, the old file stays as it was.

    A graph whose edges all exist in both directions, with the same features, is written as undirected, with each edge
    once; its edges may be read back in another order. Other graphs keep the order of their edges. Targets are written
    as lists, without their names.

    Args:
        store: The graphs, which have classes or targets, but not both.
        path: The file to write, compressed if its name ends in ``.gz``.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from sopool.data import load
        >>> from sopool.data.formats.jsonl import read_jsonl, write_jsonl
        >>> with TemporaryDirectory() as folder:
        ...     write_jsonl(load("MUTAG"), f"{folder}/mutag.jsonl.gz")
        ...     print(len(read_jsonl(f"{folder}/mutag.jsonl.gz")))
        188
    """
    path = Path(path)
    check_values(store)
    if store.labels is not None and store.targets is not None:
        raise DataError(
            f"{store.name} has both classes and targets, but JSON lines have one label. Write a .graphs file, or leave "
            "one of them out with dataclasses.replace(graphs, targets=None, target_names=())."
        )
    sizes = store.sizes.tolist()
    with whole_file(path) as temporary, temporary.open("wb") as file:
        # No name or time in the gzip header, so that equal graphs give equal bytes.
        packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if is_packed(path) else file
        with packed:
            for graph, record in enumerate(_records(store.to("cpu"))):
                line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
                _check_readable(sizes[graph], len(line), f"{path}: graph {graph}")
                packed.write(line)


def _check_readable(nodes: int, size: int, where: str) -> None:
    """Raise if :func:`read_jsonl` could not read a graph because of its size."""
    try:
        if size > limits.MAX_LINE:
            raise DataError(too_long("line", ""))
        check_nodes(nodes, size)
    except DataError as error:
        raise DataError(f"{where}: {str(error).strip()} A .graphs file can hold this graph.") from error


def _check_alike(graphs: dict[int, Graph], key: str, path: str) -> None:
    """Raise unless all lines have the field, in the same columns, or none has it; an empty list may be omitted."""
    first = next((line for line, graph in graphs.items() if getattr(graph, key) is not None), None)
    known = None
    for line, graph in graphs.items():
        value = getattr(graph, key)
        empty = _needs_no(graph, key)
        if value is None and first is not None:
            if not empty:
                are_targets = key == "label" and isinstance(graphs[first].label, list)
                everywhere = "give it on every line or on none"
                advice = "where no target is known, give a list of null" if are_targets else everywhere
                raise DataError(f"this line has no {key}, but line {first} has: {advice}.", path, line)
            setattr(graph, key, [])
        elif (columns := None if empty else _columns(value)) is not None:
            known = known or (columns, line)
            if columns != known[0]:
                named = f"the {key} are {show(columns)}, but {show(known[0])}"
                counted = f"{columns} {key} each, but {known[0]}"
                message = f"{named if isinstance(value, dict) else counted} on line {known[1]}."
                raise DataError(message, path, line)


def _columns(value: Any) -> int | list[str] | None:
    """Return the number of columns of attributes or the sorted names of others; None for a field without columns."""
    if isinstance(value, dict):
        return sorted(value)
    return value.shape[1] if isinstance(value, np.ndarray) and value.ndim == 2 else None


def _needs_no(graph: Graph, key: str) -> bool:
    """Return whether a field has no values, because the graph has no nodes or no edges."""
    return (key in NODE_FIELDS and not graph.num_nodes) or (key in EDGE_FIELDS and not len(graph.edges))


def _records(store: PackedGraphs) -> Iterator[dict[str, Any]]:
    """Yield one JSON object for each graph."""
    arrays = {key: tensor.detach().numpy() for key, tensor in store.tensors().items()}
    undirected = _undirected(arrays)
    for g in range(len(store)):
        nodes, edges = (slice(*arrays[ptr][g : g + 2].tolist()) for ptr in ("node_ptr", "edge_ptr"))
        record: dict[str, Any] = {"nodes": nodes.stop - nodes.start}
        if store.labels is not None:
            record["label"] = store.classes[int(arrays["labels"][g])]
        elif store.targets is not None:
            record["label"] = [None if math.isnan(value) else value for value in arrays["targets"][g].tolist()]
        pairs = arrays["edge_index"][:, edges]
        kept = pairs[0] <= pairs[1] if undirected[g] else slice(None)
        if not undirected[g]:
            record["directed"] = True
        record["edges"] = pairs[:, kept].T.tolist()
        for key in NODE_FIELDS + EDGE_FIELDS:
            if key in arrays:
                record[key] = _written(
                    store, key, arrays[key][nodes] if key in NODE_FIELDS else arrays[key][edges][kept]
                )
        if store.graph_attributes is not None:
            numbers = _short(arrays["graph_attributes"][g])
            known = [None if math.isnan(value) else value for value in numbers]
            record["graph_attributes"] = dict(zip(store.graph_attribute_names, known, strict=True))
        yield record


def _written(store: PackedGraphs, key: str, values: np.ndarray) -> Any:
    """Return what JSON says of the nodes or edges of a graph: labels and categories by name, or numbers."""
    if key in CATEGORIES:
        columns = zip(getattr(store, CATEGORIES[key]), values.T.tolist(), strict=True)
        return {column.name: [column.values[code] for code in codes] for column, codes in columns}
    if key in NAMED:
        names = getattr(store, NAMED[key])
        return [names[code] for code in values.tolist()]
    return _short(values)


def _undirected(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return which graphs have every edge equally often in both directions, with the same features, bool ``[G]``."""
    source, target = arrays["edge_index"]
    count = len(arrays["edge_ptr"]) - 1
    graph = np.arange(count).repeat(np.diff(arrays["edge_ptr"]))
    given = [arrays[key].view(f"i{arrays[key].itemsize}") for key in EDGE_FIELDS if key in arrays]
    features = [column for values in given for column in np.atleast_2d(values.T)]
    there = (source, target, *features)
    back = (target, source, *features)
    # Edges are sorted by graph first, so those of each graph keep its positions in both directions.
    order, other = (np.lexsort((*some, graph)) for some in (there, back))
    same = np.all([a[order] == b[other] for a, b in zip(there, back, strict=True)], axis=0)
    result: np.ndarray = np.bincount(graph, weights=~same, minlength=count) == 0
    return result


def _short(values: np.ndarray) -> list[Any]:
    """Return numbers with the fewest digits that give the same float32; a single attribute gives a flat list."""
    short = values.astype(str).astype(np.float64)
    exact = np.where(short.astype(np.float32) == values, short, values)
    return exact.ravel().tolist() if exact.shape[1:] == (1,) else exact.tolist()
