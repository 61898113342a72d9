"""Parse the graph on one line of JSON."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from reprlib import repr as show
from types import NoneType
from typing import Any

import numpy as np

from sopool._files.schema import parse_strictly
from sopool.data.formats import limits
from sopool.data.formats.lines import TextLine
from sopool.data.graphs import CATEGORIES, EDGE_FIELDS, KINDS, MAX_TARGET, NAMED, NODE_FIELDS
from sopool.data.names import check_column_names, number_attributes
from sopool.data.pack import Graph
from sopool.data.targets import target_of, targets_of
from sopool.errors import DataError, suggest

KEYS = ("nodes", "edges", "directed", "label", "id", *NODE_FIELDS, *EDGE_FIELDS, "graph_attributes")
MAX_NUMBER = 3.4028235e38  # the largest float32, as it is written


def graph_of_line(line: TextLine) -> tuple[str | int | None, Graph]:
    """Return the id (or None) and the graph of one line; raise a ``DataError`` that says what is wrong."""
    if line.problem:
        raise DataError(line.problem)
    record = _parse(line.text)
    given = record.get("id")
    if given is not None:
        check_names([given], "id")
    try:
        check_nodes(record.get("nodes"), len(line.text))
        return given, _graph(record)
    except DataError as error:
        raise DataError(f"graph {show(given)}: {error}" if given is not None else str(error)) from error


def _parse(text: str) -> dict[str, Any]:
    record = parse_strictly(text)
    if not isinstance(record, dict):
        raise DataError(f'expected an object such as {{"nodes": 2, "edges": [[0, 1]]}}, found {show(record)}.')
    for key in record:
        if key not in KEYS:
            hint = suggest(key, KEYS) or f" The keys are {', '.join(KEYS)}."
            raise DataError(f"unknown key {show(key)}.{hint}")
    return record


def check_nodes(nodes: Any, size: int) -> None:
    """Raise unless ``nodes`` is a valid number of nodes for a line of ``size`` characters."""
    if nodes is None:
        raise DataError("the key nodes is missing: give the number of nodes.")
    largest = limits.MAX_NODES
    _check([nodes], lambda value: type(value) is int and 0 <= value <= largest, f"nodes must be 0 to {largest}")
    if nodes > max(size, limits.MAX_BARE_NODES):
        raise DataError(
            f"{nodes:,} nodes on a line of {size:,} characters: most of them have no edges, labels or attributes, and "
            f"more than {limits.MAX_BARE_NODES:,} such nodes are not accepted. Leave them out."
        )


def _graph(record: dict[str, Any]) -> Graph:
    nodes = record["nodes"]
    label = _label(record.get("label"))
    directed = record.get("directed")
    _check([directed], lambda value: value is None or type(value) is bool, "directed must be true or false")
    edges, rows = _edges(record, nodes, bool(directed))
    values: dict[str, Any] = {key: _values(record, key, nodes) for key in NODE_FIELDS}
    values |= {key: _pick(_values(record, key, len(record["edges"])), rows) for key in EDGE_FIELDS}
    return Graph(nodes, edges, label, **values, graph_attributes=_graph_attributes(record.get("graph_attributes")))


def _label(given: Any) -> Any:
    """Return the class of a graph, its targets (a list of numbers and None, or a single float), or None."""
    if type(given) is list:
        return targets_of(given)
    if type(given) is float:
        try:
            return target_of(given)
        except DataError as error:
            raise DataError(f"the label is {error}.") from error
    if given is not None:
        _check_types([given], (int, str), "label must be a string, a number or a list of numbers")
        check_names([given], "label")
    return given


def _graph_attributes(given: Any) -> dict[str, float | None] | None:
    """Return the numbers given beside a graph by their names; those of a list are numbered."""
    if given is None:
        return None
    if type(given) is list:
        given = dict(zip(number_attributes(len(given)), given, strict=True))
    _check_columns(given, "graph_attributes", "an object of numbers, or a list of them", limits.MAX_TARGETS)
    for name, value in given.items():
        if type(value) not in (int, float, NoneType) or (value is not None and abs(value) > MAX_TARGET):
            raise DataError(
                f"the graph attribute {show(name)} must be null or a number of at most {MAX_TARGET:g} in size, found "
                f"{show(value)}."
            )
    return dict(given)


def _check_columns(given: Any, key: str, expected: str, most: int) -> None:
    """Raise unless an object has columns by name, and not too many of them."""
    _check([given], lambda value: type(value) is dict, f"{key} must be {expected}")
    if len(given) > most:
        raise DataError(f"{len(given):,} {key}, expected at most {most:,}.")
    check_column_names(KINDS[key], list(given))


def _pick(values: Any, rows: np.ndarray) -> Any:
    """Return the values of some edges, which may be in several columns."""
    if isinstance(values, dict):
        return {name: _pick(column, rows) for name, column in values.items()}
    if isinstance(values, list):
        return [values[row] for row in rows.tolist()]
    return None if values is None else values[rows]


def _check(values: Iterable[Any], fine: Callable[[Any], bool], rule: str) -> None:
    for value in values:
        if not fine(value):
            raise DataError(f"{rule}, found {show(value)}.")


def _check_types(values: Sequence[Any], types: tuple[type, ...], rule: str) -> None:
    """Raise unless all values have one of the ``types``; all types are checked at once, because errors are rare."""
    if not set(types).issuperset(map(type, values)):
        _check(values, lambda value: type(value) in types, rule)


def _edges(record: dict[str, Any], nodes: int, directed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return directed edges, ``[E, 2]``, and the index of the list entry that each comes from, ``[E]``."""
    given = record.get("edges")
    if given is None:
        raise DataError("the key edges is missing: give pairs of node numbers, or [] for none.")
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


def _both_ways(edges: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each edge followed by its reverse; a self-loop occurs once."""
    pairs = set(zip(*edges.T.tolist(), strict=True))
    double = next(((a, b) for a, b in pairs if a < b and (b, a) in pairs), None)
    if double is not None:
        raise DataError(
            f"the edges {list(double)} and {list(double[::-1])} are the same, because directed is not true. "
            'List it once, or add "directed": true if all edges are listed in both directions.'
        )
    rows = rows.repeat(2 - (edges[:, 0] == edges[:, 1]))
    result = edges[rows]
    second = np.flatnonzero(rows[1:] == rows[:-1]) + 1
    result[second] = result[second, ::-1]
    return result, rows


def _values(record: dict[str, Any], key: str, count: int) -> Any:
    """Return the values of all nodes or edges of a graph, or None if they are not given.

    Labels are a list, numbers an array, and categories a mapping of column names to lists.
    """
    given = record.get(key)
    if given is None:
        return None
    if key in CATEGORIES:
        _check_columns(given, key, "an object of column names and lists", limits.MAX_CATEGORIES)
        return {name: _labels(column, f"{key} of {show(name)}", key, count) for name, column in given.items()}
    if key in NAMED:
        return _labels(given, key, key, count)
    _check_list(given, key, key, count)
    return _numbers(given, key)


def _check_list(given: Any, what: str, key: str, count: int) -> None:
    """Raise unless there is a list with one entry for each node or edge."""
    of = "nodes" if key in NODE_FIELDS else "edges"
    if type(given) is not list:
        raise DataError(f"{what} must be a list, one entry for each of the {of}, found {show(given)}.")
    if len(given) != count:
        raise DataError(f"{len(given)} {what} for {count} {of}.")


def _labels(given: Any, what: str, key: str, count: int) -> list[str | int]:
    """Return the labels of all nodes or edges, or their categories in one column."""
    _check_list(given, what, key, count)
    check_names(given, what)
    labels: list[str | int] = given
    return labels


def check_names(given: list[Any], key: str) -> None:
    """Raise unless all labels are integers or strings that can be encoded."""
    _check_types(given, (int, str), f"{key} must be whole numbers or strings")
    try:
        "".join(value for value in set(given) if type(value) is str).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{key} contains half a character (a lone surrogate): {show(error.object)}.") from error


def _numbers(given: list[Any], key: str) -> np.ndarray:
    """Return weights as ``[N]`` or attributes as ``[N, F]``; a flat list of attributes has one per entry."""
    table = key.endswith("attributes")
    if table and any(type(row) is list for row in given):
        _check(given, lambda row: type(row) is list, f"{key} must be all lists or all numbers")
        _check(
            given, lambda row: len(row) == len(given[0]), f"{key} must have {len(given[0])} numbers each, as the first"
        )
        width = len(given[0])
        flat = list(chain.from_iterable(given))
    else:
        width, flat = 1, given
    _check_types(flat, (int, float), f"{key} must be numbers")
    _check(flat, lambda value: abs(value) <= MAX_NUMBER, f"{key} must be at most {MAX_NUMBER} in size")
    array = np.array(flat, dtype=np.float32)
    return array.reshape(len(given), width) if table else array
