"""Graphs as JSON lines, one object a line. Which keys there are and what they mean: docs/formats.md."""

import difflib
import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from reprlib import repr as show
from typing import Any, NoReturn, TextIO

import numpy as np
import numpy.typing as npt

from sopool.data.errors import DataError
from sopool.data.lines import is_packed, number_lines, read_lines
from sopool.data.names import refuse_fractions
from sopool.data.pack import Graph, pack
from sopool.data.store import EDGE_FIELDS, NAMED, NODE_FIELDS, PackedGraphs, check_values
from sopool.data.whole_file import whole_file

KEYS = ("nodes", "edges", "directed", "label", "id", *NODE_FIELDS, *EDGE_FIELDS)
MAX_NODES = 2**24  # of one graph: a short line may claim any number, and memory is taken for each
MAX_NUMBER = 3.4028235e38  # the largest float32, as it is written

Array = npt.NDArray[Any]


def read_jsonl(source: str | Path | TextIO, name: str | None = None) -> PackedGraphs:
    """Read a ``.jsonl`` or ``.jsonl.gz`` file, or an open stream such as ``sys.stdin``. An empty one has no graphs."""
    if isinstance(source, str | Path):
        path, lines = str(source), read_lines(source)
        name = name or Path(source).name.removesuffix(".gz").removesuffix(".jsonl")
    else:
        path = str(getattr(source, "name", "stream"))
        lines = number_lines(source, path)
    graphs: dict[int, Graph] = {}
    ids: dict[str | int, int] = {}
    for number, text in lines:
        if text.strip():
            try:
                graphs[number] = _read_graph(text, number, ids)
            except DataError as error:
                raise DataError(str(error), path, number) from error
    for key in ("label", *NODE_FIELDS, *EDGE_FIELDS):
        _check_alike(graphs, key, path)
    try:
        return pack(graphs.values(), name or "graphs")
    except DataError as error:
        raise DataError(str(error), path) from error


def write_jsonl(store: PackedGraphs, path: str | Path) -> None:
    """Write ``store`` as JSON lines, packed if the name ends in ``.gz``: whole or not at all, also if interrupted.

    A graph whose edges are all there in both directions, alike, is written as undirected, each edge once; they may
    come back in another order. Other graphs keep the order of their edges.
    """
    path = Path(path)
    check_values(store)
    with whole_file(path) as temporary, temporary.open("wb") as file:
        # Neither name nor time in the gzip header: equal graphs give equal bytes.
        packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if is_packed(path) else file
        with packed:
            for record in _records(store.to("cpu")):
                packed.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


def _read_graph(text: str, number: int, ids: dict[str | int, int]) -> Graph:
    """The graph of one line; ``ids`` are those seen so far, with their lines."""
    given, graph = graph_of_line(text)
    if given is not None and given in ids:
        raise DataError(f"the id {show(given)} is on line {ids[given]} already: each graph needs its own.")
    if given is not None:
        ids[given] = number
    return graph


def graph_of_line(text: str) -> tuple[str | int | None, Graph]:
    """The id, if there is one, and the graph of one line; a ``DataError`` says what is wrong."""
    record = _parse(text)
    given = record.get("id")
    if given is None:
        return None, _graph(record)
    _check_names([given], "id")
    try:
        return given, _graph(record)
    except DataError as error:
        raise DataError(f"graph {show(given)}: {error}") from error


def _parse(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {error.msg} at column {error.colno}.") from error
    except DataError:
        raise
    except (ValueError, RecursionError) as error:  # a number of too many digits, lists in lists in lists
        raise DataError(f"not JSON that can be read: {error}.") from error
    if not isinstance(record, dict):
        raise DataError(f'expected an object such as {{"nodes": 2, "edges": [[0, 1]]}}, found {show(record)}.')
    for key in record:
        if key not in KEYS:
            close = difflib.get_close_matches(key, KEYS, 1)
            hint = f"Did you mean {close[0]!r}?" if close else f"The keys are {', '.join(KEYS)}."
            raise DataError(f"unknown key {show(key)}. {hint}")
    return record


def _refuse(constant: str) -> NoReturn:
    raise DataError(f"{constant} is not JSON: numbers must be finite.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise DataError(f"the key {show(next(key for key in keys if keys.count(key) > 1))} is there twice.")
    return record


def _graph(record: dict[str, Any]) -> Graph:
    nodes, label, directed = record.get("nodes"), record.get("label"), record.get("directed")
    if nodes is None:
        raise DataError("nodes is missing: give the number of nodes.")
    _check([nodes], lambda value: type(value) is int and 0 <= value <= MAX_NODES, f"nodes must be 0 to {MAX_NODES}")
    _check([directed], lambda value: value is None or type(value) is bool, "directed must be true or false")
    if label is not None:
        refuse_fractions([label])
        _check_names([label], "label")
    edges, rows = _edges(record, nodes, bool(directed))
    values: dict[str, Any] = {key: _values(record, key, nodes) for key in NODE_FIELDS}
    values |= {key: _pick(_values(record, key, len(record["edges"])), rows) for key in EDGE_FIELDS}
    return Graph(nodes, edges, label, **values)


def _pick(values: Any, rows: Array) -> Any:
    if isinstance(values, list):
        return [values[row] for row in rows.tolist()]
    return None if values is None else values[rows]


def _check(values: Iterable[Any], fine: Callable[[Any], bool], rule: str) -> None:
    for value in values:
        if not fine(value):
            raise DataError(f"{rule}, found {show(value)}.")


def _check_types(values: Sequence[Any], types: tuple[type, ...], rule: str) -> None:
    """Likewise for their types, all at once: there may be millions of values, and one that is wrong is rare."""
    if not set(types).issuperset(map(type, values)):
        _check(values, lambda value: type(value) in types, rule)


def _edges(record: dict[str, Any], nodes: int, directed: bool) -> tuple[Array, Array]:
    """Directed edges [e, 2], and the entry of the list that each comes from [e]."""
    given = record.get("edges")
    if given is None:
        raise DataError("edges is missing: give pairs of node numbers, [] for none.")
    _check([given], lambda value: type(value) is list, "edges must be a list of pairs")
    _check_types(given, (list,), "an edge must be a pair [source, target]")
    if not {2}.issuperset(map(len, given)):
        _check(given, lambda pair: len(pair) == 2, "an edge must be a pair [source, target]")
    ends = list(chain.from_iterable(given))
    if not {int}.issuperset(map(type, ends)):
        _check(given, lambda pair: type(pair[0]) is type(pair[1]) is int, "an edge must be two whole numbers")
    if ends and not (min(ends) >= 0 and max(ends) < nodes):
        pair = next(pair for pair in given if not (min(pair) >= 0 and max(pair) < nodes))
        within = f"whose nodes are 0 to {nodes - 1}" if nodes else "which has no nodes"
        raise DataError(f"the edge {show(pair)} leaves the graph, {within}.")
    edges = np.array(ends, dtype=np.int32).reshape(-1, 2)
    rows = np.arange(len(edges))
    return (edges, rows) if directed else _both_ways(edges, rows)


def _both_ways(edges: Array, rows: Array) -> tuple[Array, Array]:
    """Each edge followed by its reverse, a self-loop alone."""
    pairs = set(zip(*edges.T.tolist(), strict=True))
    double = next(((a, b) for a, b in pairs if a < b and (b, a) in pairs), None)
    if double is not None:
        raise DataError(
            f"the edges {list(double)} and {list(double[::-1])} are the same one, as directed is not true. "
            'List it once, or add "directed": true if all edges are listed both ways.'
        )
    rows = rows.repeat(2 - (edges[:, 0] == edges[:, 1]))
    result = edges[rows]
    second = np.flatnonzero(rows[1:] == rows[:-1]) + 1
    result[second] = result[second, ::-1]
    return result, rows


def _values(record: dict[str, Any], key: str, count: int) -> Any:
    """The names (a list) or numbers (an array) of all nodes or edges of a graph, None if not given."""
    given = record.get(key)
    if given is None:
        return None
    what = "nodes" if key in NODE_FIELDS else "edges"
    if type(given) is not list:
        raise DataError(f"{key} must be a list, one entry for each of the {what}, found {show(given)}.")
    if len(given) != count:
        raise DataError(f"{len(given)} {key} for {count} {what}.")
    if key in NAMED:
        _check_names(given, key)
        return given
    return _numbers(given, key)


def _check_names(given: list[Any], key: str) -> None:
    _check_types(given, (int, str), f"{key} must be whole numbers or strings")
    try:
        "".join(value for value in set(given) if type(value) is str).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{key} has half a character (a lone surrogate): {show(error.object)}.") from error


def _numbers(given: list[Any], key: str) -> Array:
    """[n] for weights, [n, d] for attributes; a flat list of attributes is one each."""
    table = key.endswith("attributes")
    if table and any(type(row) is list for row in given):
        _check(given, lambda row: type(row) is list, f"{key} must be all lists or all numbers")
        _check(
            given, lambda row: len(row) == len(given[0]), f"{key} must have {len(given[0])} numbers each, as the first"
        )
        width, flat = len(given[0]), list(chain.from_iterable(given))
    else:
        width, flat = 1, given
    _check_types(flat, (int, float), f"{key} must be numbers")
    _check(flat, lambda value: abs(value) <= MAX_NUMBER, f"{key} must be at most {MAX_NUMBER} in size")
    array = np.array(flat, dtype=np.float32)
    return array.reshape(len(given), width) if table else array


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


def _undirected(arrays: dict[str, Array]) -> Array:
    """Whether each graph has every edge in both directions, equally often and alike [G]."""
    source, target = arrays["edge_index"]
    count = len(arrays["edge_ptr"]) - 1
    graph = np.arange(count).repeat(np.diff(arrays["edge_ptr"]))
    given = [arrays[key].view(f"i{arrays[key].itemsize}") for key in EDGE_FIELDS if key in arrays]
    features = [column for values in given for column in np.atleast_2d(values.T)]
    there, back = (source, target, *features), (target, source, *features)
    # Sorted by graph first, the edges of each graph stay in its stretch, in either reading.
    order, other = (np.lexsort((*some, graph)) for some in (there, back))
    same = np.all([a[order] == b[other] for a, b in zip(there, back, strict=True)], axis=0)
    result: Array = np.bincount(graph, weights=~same, minlength=count) == 0
    return result


def _short(values: Array) -> list[Any]:
    """Numbers in as few digits as give back the same 32 bits; one attribute each as a flat list."""
    short = values.astype(str).astype(np.float64)
    exact = np.where(short.astype(np.float32) == values, short, values)
    return exact.ravel().tolist() if exact.shape[1:] == (1,) else exact.tolist()
