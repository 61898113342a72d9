"""The rows that readers of text formats yield: each one is a graph, or the reason why it cannot be read.

Every text format has one reader, which yields rows one by one and continues after an invalid row. A stream uses some
rows at a time; a store is packed from all of them.
"""

from typing import Literal, NamedTuple

from sopool.data.formats.limits import MAX_ATOMS
from sopool.data.pack import Graph, Label


class GraphRow(NamedTuple):
    """A graph, or the reason why it cannot be read."""

    number: int
    """The line of a text file or the record of an SDF file, from 1, or the index in a list, from 0."""
    text: str
    """The beginning of the text of the row."""
    size: int
    """The number of characters of the row."""
    name: Label | None = None
    graph: Graph | None = None
    """The graph with its label, if any; labels of CSV and SDF files are strings."""
    problem: str = ""


class BadRow(NamedTuple):
    """A row that was skipped, and the reason."""

    row: int
    """The number of the row, as in :class:`GraphRow`."""
    text: str
    reason: str


class RowOptions(NamedTuple):
    """The options of readers of text formats."""

    smiles_column: str | None = None
    """The column with the SMILES; None for one with a usual name."""
    label_column: str | None = None
    """The column or SDF property with the label; None for one with a usual name."""
    max_atoms: int = MAX_ATOMS
    """The largest number of atoms of a molecule."""
    labels: Literal["required", "optional", "ignored"] = "required"
    """Whether molecules without a label are invalid, molecules may have no label, or all labels are ignored."""
