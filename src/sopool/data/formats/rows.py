"""The rows that readers of text formats yield: each one is a graph, or the reason why it cannot be read.

Every text format has one reader, which yields rows one by one and continues after an invalid row. A stream uses some
rows at a time; a store is packed from all of them.
"""

from collections.abc import Sequence
from reprlib import repr as show
from typing import Any, Literal, NamedTuple

from sopool.data.division import SplitRule, split_rule
from sopool.data.formats.limits import MAX_ATOMS
from sopool.data.formats.molecule_features import MoleculeFeatures
from sopool.data.pack import Graph, Label
from sopool.errors import SettingError

LabelRule = Literal["required", "optional", "ignored"]


class Cells(NamedTuple):
    """What a row of a table holds, as it is given."""

    names: tuple[str, ...]
    """The names of the columns or properties, the same object for all rows of a source."""
    values: tuple[Any, ...]
    """The value in each column; None where the row has none."""


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
    """The graph with its label, if any.

    The label of a CSV or SDF file is a string, or a number if it has a fraction; targets are a list of numbers and
    None.
    """
    problem: str = ""
    columns: tuple[str, ...] = ()
    """The names of the columns or properties with the label or the targets, if they have names."""
    split: str | None = None
    """The cell of the column that the graphs are divided by, or the scaffold of a molecule; None if there is none."""
    cells: Cells | None = None
    """The whole row, if it is kept and the source has columns."""


class BadRow(NamedTuple):
    """A row that was skipped, and the reason."""

    row: int
    """The number of the row, as in :class:`GraphRow`."""
    text: str
    reason: str


class TrainingColumns(NamedTuple):
    """The columns or SDF properties that the training graphs of a model were read from."""

    smiles: str | None = None
    """The column with the SMILES; None if there was none."""
    label: str | None = None
    """The column with the classes or with one number; None if there was none."""
    targets: tuple[str, ...] = ()
    """The columns of the targets, if they were named."""

    @property
    def predicted(self) -> tuple[str, ...]:
        """The columns with what is predicted."""
        return self.targets or (() if self.label is None else (self.label,))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return self._asdict() | {"targets": list(self.targets)}


NO_COLUMNS = TrainingColumns()


class RowOptions(NamedTuple):
    """The options of readers of text formats."""

    smiles_column: str | None = None
    """The column with the SMILES; None for one with a usual name."""
    label_column: str | None = None
    """The column or SDF property with the label; None for one with a usual name."""
    target_columns: tuple[str, ...] = ()
    """The columns or SDF properties with numbers to predict, which are read instead of a label."""
    max_atoms: int = MAX_ATOMS
    """The largest number of atoms of a molecule."""
    labels: LabelRule = "required"
    """Whether molecules without a label are invalid, molecules may have no label, or all labels are ignored."""
    graph_columns: tuple[str, ...] = ()
    """The columns or SDF properties with numbers given beside the molecules, which become graph attributes."""
    features: MoleculeFeatures | None = None
    """What is read of molecules; None for the default, also for a source of other graphs."""
    split: SplitRule | None = None
    """What cross-validation divides the molecules by; None: at random."""
    id_column: str | None = None
    """The column or SDF property that identifies rows; None for a column with a usual name, or the title of a record.
    """
    training: TrainingColumns = NO_COLUMNS
    """The columns that a model was trained on, which are read if no other ones are named. Rows whose label cannot be
    read are not invalid then."""
    keep: bool = False
    """Whether rows have their cells."""


USUAL = RowOptions()
"""The usual columns."""


def row_options(
    smiles_column: str | None = None,
    label_column: str | None = None,
    target_columns: Sequence[str] = (),
    max_atoms: int = MAX_ATOMS,
    labels: LabelRule = "required",
    graph_columns: Sequence[str] = (),
    features: MoleculeFeatures | None = None,
    split: str | None = None,
    id_column: str | None = None,
    training: TrainingColumns = NO_COLUMNS,
    keep: bool = False,
) -> RowOptions:
    """Return the options; raise a ``SettingError`` for columns that are no list of names, or an unknown split."""
    for option, columns in (("target_columns", target_columns), ("graph_columns", graph_columns)):
        if isinstance(columns, str):
            raise SettingError(f"{option}={columns!r} is a string, expected a list of column names.")
        if len(set(columns)) < len(columns):
            raise SettingError(f"{option}={show(list(columns))} names a column twice.")
    if label_column is not None and target_columns:
        raise SettingError(
            f"label_column={label_column!r} and target_columns={show(list(target_columns))} were both given. Give "
            "label_column for a class or one number, or target_columns for numbers or several labels."
        )
    return RowOptions(
        smiles_column,
        label_column,
        tuple(target_columns),
        max_atoms,
        labels,
        tuple(graph_columns),
        features,
        split_rule(split),
        id_column,
        training,
        keep,
    )
