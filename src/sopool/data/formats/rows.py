"""The rows of a text that holds graphs: each is a graph, or says why it is none.

Every text format has one reader, which yields rows as they are read; what is wrong with one does not keep the next from
coming. A stream of graphs takes the rows some at a time; a store is made of all of them.
"""

from typing import Literal, NamedTuple

from sopool.data.formats.limits import MAX_ATOMS
from sopool.data.pack import Graph, Label


class GraphRow(NamedTuple):
    """One graph, or why it is none."""

    number: int
    """From 1: the line of a text, the record of an SDF file. The place in a list, from 0."""
    text: str
    """The beginning of what was read."""
    size: int
    """How many characters were read."""
    name: Label | None = None
    graph: Graph | None = None
    """With its label, if it has one: a text as it stands in a CSV or SDF file."""
    problem: str = ""


class BadRow(NamedTuple):
    """A row that was left out, and why."""

    row: int
    """The number of a :class:`GraphRow`."""
    text: str
    reason: str


class RowOptions(NamedTuple):
    """What the reader of a text is told, apart from what it reads."""

    smiles_column: str | None = None
    """None for one of the usual names."""
    label_column: str | None = None
    """Of a CSV, or the property of an SDF file; None for one of the usual names."""
    max_atoms: int = MAX_ATOMS
    """A molecule of more atoms is bad."""
    labels: Literal["required", "optional", "ignored"] = "required"
    """What to do about the labels of molecules: one without is bad; it has none; all have none."""
