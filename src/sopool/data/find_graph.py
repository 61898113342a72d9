"""One graph out of any source, by the row that predictions name or by its id."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sopool.data.catalogue import load
from sopool.data.errors import DataError
from sopool.data.pack import Label, pack
from sopool.data.store import PackedGraphs
from sopool.data.stream import STDIN, lack, rows_of


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
) -> FoundGraph:
    """The graph in row ``wanted`` or, if that is no whole number, the first with that id; read no further than that.

    Rows are those of :func:`sopool.data.stream.stream_graphs`: lines and records from 1, graphs of a data set from 0.
    ``fields`` are those of an encoder, which the graph must have; what else it has is kept.
    """
    rows, number = rows_of(source, smiles_column, label_column), int(wanted) if _is_number(wanted) else None
    if rows is None:
        return _of_store(load(source, root), number, wanted)
    path = "standard input" if str(source) == STDIN else source
    first = last = 0
    for row in rows:
        first, last = first or row.number, row.number
        if row.number == number or (number is None and str(row.name) == wanted):
            problem = row.problem or lack(row.graph, fields)
            if problem or row.graph is None:
                raise DataError(f"{problem} Found {row.text[:60]!r}.", path, row.number)
            graph = pack([replace(row.graph, label=None)], Path(str(path)).name)
            return FoundGraph(graph, row.number, row.name, row.label)
    if not last:
        raise DataError("there are no graphs.", path)
    if number is None:
        raise DataError(f"no graph has the id {wanted!r}. Give the row, from {first} to {last}.", path)
    raise DataError(f"row {number} is no graph: they are in rows {first} to {last}, as predictions name them.", path)


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


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii()
