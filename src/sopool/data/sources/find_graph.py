"""Find one graph of any source, by its row or by its id."""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from sopool.data.formats.kinds import kind_of
from sopool.data.formats.rows import USUAL, GraphRow, RowOptions
from sopool.data.graphs import PackedGraphs
from sopool.data.names import Needed
from sopool.data.pack import Label, pack
from sopool.data.sources.catalogue import load
from sopool.data.sources.stream import lack, place_of, rows_of, store_labels
from sopool.data.targets import GraphLabel
from sopool.errors import DataError, Place, UserError

ID = "id:"
"""The prefix of an id that could be mistaken for a row."""
SHOWN = 5
"""The number of ids that an error message names."""


class FoundGraph(NamedTuple):
    """A graph with its row, id and label in the source."""

    graph: PackedGraphs
    """A store with this graph only, without its label and targets."""
    row: int
    id: Label | None
    label: GraphLabel | None
    """The class of the graph, or its targets: a number with a fraction, or a list of numbers and None."""


def find_graph(
    source: str | Path,
    wanted: str,
    fields: Mapping[str, Needed],
    options: RowOptions = USUAL,
    root: str | Path | None = None,
) -> FoundGraph:
    """Return the graph in row ``wanted``, or else the first graph with that id; reading stops there.

    A number that is both a row and an id means the row; ``id:7`` always means the id. Rows are those of
    :func:`sopool.data.sources.stream.stream_graphs`: lines and records from 1, graphs of a data set from 0.

    Args:
        source: The name of a data set or the path of a file.
        wanted: The row or the id.
        fields: The fields that the graph must have, as an encoder's ``fields``.
        options: How rows are read, see :func:`~sopool.data.formats.rows.row_options`; labels are always optional.
            Default: usual columns.
        root: The folder to search first for named data sets. Default: None, ``SOPOOL_DATA``.
    """
    rows = rows_of(source, options._replace(labels="optional"), fields)
    number = row_number(wanted)
    if rows is None:
        return _of_store(load(source, root), number, wanted)
    place = place_of(source)
    names = (wanted, wanted.removeprefix(ID))
    numbers = [0, 0]
    ids = list[str]()
    found = None
    for row in rows:
        numbers = [numbers[0] or row.number, row.number]
        if row.number == number:
            return _graph_of(row, fields, place)
        if row.name is not None and len(ids) < SHOWN:
            ids.append(str(row.name))
        if found is None and row.name is not None and str(row.name) in names:
            found = row
            if number is None:
                break
    if found is None:
        raise DataError(_what_there_is(number, names[-1], numbers, ids, bool(kind_of(source).columns)), place.path)
    return _graph_of(found, fields, place)


def has_id(source: str | Path, name: str, last: int, options: RowOptions = USUAL) -> bool:
    """Return whether a row of a file up to row ``last`` has this id; reading stops at a file error."""
    rows = rows_of(source, options._replace(labels="ignored"))
    try:
        return rows is not None and any(
            row.name is not None and str(row.name) == name for row in takewhile(lambda row: row.number <= last, rows)
        )
    except UserError:
        return False


def row_number(wanted: str) -> int | None:
    """Return the row that is meant, or None for what can only be an id, such as 007."""
    return int(wanted) if re.fullmatch(r"-?(0|[1-9][0-9]*)", wanted, re.ASCII) else None


def _graph_of(row: GraphRow, fields: Mapping[str, Needed], place: Place) -> FoundGraph:
    problem = row.problem or lack(row.graph, fields)
    if problem or row.graph is None:
        raise place.error(row.number, f"{problem} Found {row.text[:60]!r}.")
    graph = pack([replace(row.graph, label=None)], Path(str(place.path)).name)
    return FoundGraph(graph, row.number, row.name, row.graph.label)


def _what_there_is(number: int | None, name: str, numbers: list[int], ids: list[str], has_columns: bool) -> str:
    first, last = numbers
    if not last:
        return "the file has no graphs."
    missing = f"no graph has the id {name!r}" if number is None else f"no graph is in row {number} or has that id"
    known = f", with ids such as {', '.join(map(repr, ids))}" if ids else " and have no ids"
    where = " Ids are in a column named id or name, or id_column names it." * has_columns
    return f"{missing}. The graphs are in rows {first} to {last}{known}.{where}"


def _of_store(store: PackedGraphs, number: int | None, wanted: str) -> FoundGraph:
    if number is None or not 0 <= number < len(store):
        raise DataError(
            f"there is no graph {wanted}: {store.name} has {len(store):,} graphs, numbered from 0 to {len(store) - 1}."
        )
    one = store[number]
    if not one.num_nodes:
        raise DataError(f"graph {number} of {store.name} has no nodes, so there is nothing to explain.")
    (label,) = store_labels(one)
    return FoundGraph(replace(one, labels=None, classes=(), targets=None, target_names=()), number, None, label)
