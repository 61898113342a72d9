"""One graph out of any source, by the row that predictions name or by its id."""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from sopool.data.formats.limits import MAX_ATOMS
from sopool.data.formats.rows import GraphRow
from sopool.data.graphs import PackedGraphs
from sopool.data.pack import Label, pack
from sopool.data.sources.catalogue import load
from sopool.data.sources.stream import lack, place_of, rows_of
from sopool.errors import DataError, Place, UserError

ID = "id:"
"""Before an id that might be taken for a row."""
SHOWN = 5
"""Ids that are named where the wanted one is not there."""


class FoundGraph(NamedTuple):
    """A graph and what its source says of it."""

    graph: PackedGraphs
    """A store of one graph, without its label."""
    row: int
    id: Label | None
    label: Label | None


def find_graph(
    source: str | Path,
    wanted: str,
    fields: Mapping[str, int | None],
    root: str | Path | None = None,
    smiles_column: str | None = None,
    label_column: str | None = None,
    max_atoms: int = MAX_ATOMS,
) -> FoundGraph:
    """The graph in row ``wanted``, else the first with that id, text or number; read no further than that.

    A number that is both a row and an id is taken for the row; ``id:7`` is the id alone. Rows are those of
    :func:`sopool.data.sources.stream.stream_graphs`: lines and records from 1, graphs of a data set from 0. ``fields``
    are those of an encoder, which the graph must have; what else it has is kept. A molecule of more than ``max_atoms``
    atoms is bad.
    """
    rows = rows_of(source, smiles_column, label_column, max_atoms)
    number = row_number(wanted)
    if rows is None:
        store = load(source, root, smiles_column=smiles_column, label_column=label_column)
        return _of_store(store, number, wanted)
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
        raise DataError(_what_there_is(number, names[-1], numbers, ids), place.path)
    return _graph_of(found, fields, place)


def has_id(
    source: str | Path, name: str, smiles_column: str | None, label_column: str | None, max_atoms: int, last: int
) -> bool:
    """Whether one of the rows of a file, as far as row ``last`` or until one cannot be read, has this id."""
    rows = rows_of(source, smiles_column, label_column, max_atoms)
    try:
        return rows is not None and any(
            row.name is not None and str(row.name) == name for row in takewhile(lambda row: row.number <= last, rows)
        )
    except UserError:
        return False


def row_number(wanted: str) -> int | None:
    """The row that is meant; None for what can be an id only, such as 007."""
    return int(wanted) if re.fullmatch(r"-?(0|[1-9][0-9]*)", wanted, re.ASCII) else None


def _graph_of(row: GraphRow, fields: Mapping[str, int | None], place: Place) -> FoundGraph:
    problem = row.problem or lack(row.graph, fields)
    if problem or row.graph is None:
        raise place.error(row.number, f"{problem} Found {row.text[:60]!r}.")
    graph = pack([replace(row.graph, label=None)], Path(str(place.path)).name)
    return FoundGraph(graph, row.number, row.name, row.graph.label)


def _what_there_is(number: int | None, name: str, numbers: list[int], ids: list[str]) -> str:
    first, last = numbers
    if not last:
        return "there are no graphs."
    missing = f"no graph has the id {name!r}" if number is None else f"row {number} is no graph, nor has one that id"
    known = f", with ids such as {', '.join(map(repr, ids))}" if ids else " and have no ids"
    return f"{missing}. They are in rows {first} to {last}{known}."


def _of_store(store: PackedGraphs, number: int | None, wanted: str) -> FoundGraph:
    if number is None or not 0 <= number < len(store):
        raise DataError(
            f"there is no graph {wanted}: {store.name} has {len(store):,} graphs, numbered from 0 to {len(store) - 1}."
        )
    one = store[number]
    if not one.num_nodes:
        raise DataError(f"graph {number} of {store.name} has no nodes: there is nothing to explain.")
    label = None if one.labels is None else one.classes[int(one.labels[0])]
    return FoundGraph(replace(one, labels=None, classes=()), number, None, label)
