"""Convert molecules to graphs, for the readers of SMILES and SDF files. Needs RDKit."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from sopool.data.division import SCAFFOLD, SplitRule
from sopool.data.formats.atoms import ATOM_COLUMNS, BOND_COLUMNS, STEREO, assign_labels, bond_type, element
from sopool.data.formats.descriptors import calculator
from sopool.data.formats.molecule_features import MoleculeFeatures, chosen_features
from sopool.data.formats.rdkit import rdkit_module
from sopool.data.formats.rows import Cells, GraphRow, RowOptions, TrainingColumns
from sopool.data.formats.scaffolds import scaffold_of
from sopool.data.names import label_of_text
from sopool.data.pack import Graph, Label
from sopool.data.targets import is_missing, target_of_text
from sopool.errors import DataError, SettingError, UserError, suggest

LABEL_NAMES = ("label", "class", "target", "y", "activity")
"""The usual names of the column or property with labels."""
LONGEST = 1000
"""The number of characters that are kept of a molecule's source."""


class MoleculeText(NamedTuple):
    """A molecule that is not parsed yet."""

    row: int
    text: str
    """The text for messages: the SMILES, or the title of an SDF record."""
    source: str
    """The text to parse: the SMILES, or the whole SDF record."""
    label: Any = None
    """The label or, for targets in a file, the list of their texts."""
    name: str | None = None
    problem: str = ""
    """The reason why the molecule cannot be used, found before parsing, or an empty string."""
    numbers: Sequence[str | None] = ()
    """The texts of the numbers given beside the molecule, in the order of ``RowOptions.graph_columns``."""
    split: str | None = None
    """The cell of the column that molecules are divided by; None if there is none."""
    cells: Cells | None = None
    """The whole row, if it is kept."""


def graph_of_molecule(molecule: Any, features: MoleculeFeatures | None = None) -> Graph:
    """Convert an RDKit molecule to a graph with elements as node labels and bond types as edge labels.

    Atoms keep their order, and bonds become edges in both directions. Hydrogens are nodes only if they are explicit
    atoms.

    Args:
        molecule: The RDKit molecule, sanitized.
        features: What else to read of the molecule. Default: None, all features of atoms.
    """
    features = features or chosen_features()
    if not STEREO.isdisjoint(features.atoms + features.bonds):
        assign_labels(molecule)
    atoms = list(molecule.GetAtoms())
    bonds = list(molecule.GetBonds())
    edges: list[tuple[int, int]] = []
    for bond in bonds:
        pair = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        edges += [pair, pair[::-1]]
    return Graph(
        len(atoms),
        edges,
        node_labels=[element(atom) for atom in atoms],
        node_categories={name: ATOM_COLUMNS[name](atoms) for name in features.atoms} or None,
        edge_labels=_both_ways([bond_type(bond) for bond in bonds]),
        edge_categories={name: _both_ways(BOND_COLUMNS[name](bonds)) for name in features.bonds} or None,
        graph_attributes=calculator(features.descriptors)(molecule) if features.descriptors else None,
    )


def _both_ways(values: Sequence[Label]) -> list[Label]:
    """Return the values of bonds for their edges, of which each has two."""
    return [value for value in values for _ in range(2)]


class LabelColumns:
    """The columns of a table, or the properties of an SDF file, with the label or the targets.

    Args:
        names: The names of the columns.
        targets: Whether all cells must be numbers, and each molecule gets a list of them.
        path: The file, for error messages.
        lenient: Whether text in a column of targets is kept, so that its molecule is not invalid. Default: False.
    """

    def __init__(
        self,
        names: Sequence[str] = (),
        targets: bool = False,
        path: str | Path | None = None,
        lenient: bool = False,
    ) -> None:
        self.names = tuple(names)
        self.targets = targets
        self.path = path
        self.lenient = lenient
        self._rows = 0
        self._texts = Counter[str]()

    def cells(self, texts: Sequence[str | None]) -> Any:
        """Return what :class:`MoleculeText` has as label: the texts of targets, one label, or None without columns."""
        if self.targets:
            return list(texts)
        return label_of_text(texts[0]) if texts and texts[0] is not None else None

    def label(self, given: Any) -> Any:
        """Return the label of a molecule, or None if it is missing; raise if a target is not a number."""
        label = self._numbers(given) if self.targets else given
        return None if is_missing(label) else label

    def read_with(self, smiles: str | None) -> TrainingColumns:
        """Return the columns that molecules are read from."""
        label = None if self.targets or not self.names else self.names[0]
        return TrainingColumns(smiles, label, self.names if self.targets else ())

    def _numbers(self, cells: Sequence[str | None]) -> list[Any]:
        self._rows += 1
        found: list[Any] = []
        problems: list[str] = []
        for name, cell in zip(self.names, cells, strict=True):
            try:
                found.append(target_of_text(cell))
            except DataError as error:
                if self.lenient:
                    found.append(cell)
                    continue
                self._texts[name] += 1
                problems.append(f"The target {name!r} is {error}.")
        if problems:
            raise DataError(problems[0])
        return found

    def check_any_number(self) -> None:
        """Raise if a column of targets had text in all rows."""
        for name, count in self._texts.items():
            if count == self._rows:
                raise DataError(f"the column {name!r} holds no numbers, so it cannot be a target.", self.path)


def molecule_rows(
    molecules: Iterable[MoleculeText],
    parse: Callable[[Any, str, int], Any],
    options: RowOptions,
    columns: LabelColumns | None = None,
) -> Iterator[GraphRow]:
    """Yield the graph of each molecule; ``parse(chem, source, max_atoms)`` returns RDKit's molecule or None."""
    columns = columns or LabelColumns()
    chem = rdkit_module("Chem")
    block_logs = rdkit_module("rdBase").BlockLogs
    for molecule in molecules:
        row = _row(molecule, columns)
        try:
            label = _label(molecule, options, columns)
            numbers = _numbers_beside(molecule.numbers, options.graph_columns)
            with block_logs():
                graph, split = _read(chem, parse, molecule, options)
        except DataError as error:
            yield row._replace(problem=str(error))
        else:
            graph.label = label
            if numbers:
                graph.graph_attributes = {**numbers, **(graph.graph_attributes or {})}
            yield row._replace(graph=graph, split=split)
    columns.check_any_number()


def _row(molecule: MoleculeText, columns: LabelColumns) -> GraphRow:
    """Return the row of a molecule without its graph."""
    cells = molecule.label if isinstance(molecule.label, list) else [molecule.label]
    kept = () if molecule.cells is None else molecule.cells.values
    texts = [molecule.source, molecule.name, *cells, *kept]
    size = len(kept) + sum(len(text) for text in texts if isinstance(text, str))
    return GraphRow(
        molecule.row,
        molecule.text[:LONGEST],
        size,
        molecule.name or None,
        columns=columns.names,
        cells=molecule.cells,
    )


def _label(molecule: MoleculeText, options: RowOptions, columns: LabelColumns) -> Any:
    """Return the label of a molecule; raise if there is a problem with its row or its label."""
    if molecule.problem:
        raise DataError(molecule.problem)
    label = None if options.labels == "ignored" else columns.label(molecule.label)
    if label is None and options.labels == "required":
        raise DataError("All targets are missing." if columns.targets else "The molecule has no label.")
    return label


def _numbers_beside(texts: Sequence[str | None], names: Sequence[str]) -> dict[str, float | None]:
    """Return the numbers given beside a molecule by the names of their columns, None where one is missing."""
    found: dict[str, float | None] = {}
    for name, text in zip(names, texts, strict=True):
        try:
            found[name] = target_of_text(text)
        except DataError as error:
            raise DataError(f"The graph attribute {name!r} is {error}.") from error
    return found


def _read(
    chem: Any, parse: Callable[[Any, str, int], Any], molecule: MoleculeText, options: RowOptions
) -> tuple[Graph, str | None]:
    """Return the graph of a molecule and the value that it is divided by; raise a ``DataError`` if that fails."""
    try:
        parsed = parse(chem, molecule.source, options.max_atoms)
        if parsed is None:
            raise DataError("RDKit cannot parse the molecule.")
        chem.SanitizeMol(parsed)
        if not parsed.GetNumAtoms():
            raise DataError("The molecule has no atoms.")
        split = scaffold_of(parsed) if options.split == SplitRule(SCAFFOLD) else molecule.split
        return graph_of_molecule(parsed, options.features), split
    except UserError:
        raise
    except (ValueError, RuntimeError) as error:
        raise DataError(f"RDKit rejects the molecule: {str(error).strip()}.") from error


def find_name(
    names: list[str],
    wanted: str | None,
    usual: tuple[str, ...],
    option: str,
    path: str | Path,
    trained: str | None = None,
) -> int:
    """Return the index of the wanted column or property, or of one with a usual name if ``wanted`` is None.

    ``trained`` is the column that a model was trained on, for error messages.
    """
    kind = "property" if option == "label_property" else "column"
    for name in usual if wanted is None else (wanted,):
        hits = _named(names, name)
        if len(hits) > 1:
            plural = "properties" if kind == "property" else "columns"
            raise DataError(f"{name!r} names {len(hits)} {plural}: {_listing(names)}. Rename all but one.", path)
        if hits:
            return hits[0]
    if wanted is not None:
        found = f"Found: {_listing(names)}.{suggest(wanted, names)}"
        raise SettingError(f"there is no {kind} {wanted!r} ({option}). {found}", path)
    what = option.partition("_")[0]
    more = (
        " or, of several, as target_columns, or labelled=False to read no labels"
        if what == "label"
        else "; the first line has the column names"
    )
    known = " or ".join(filter(None, [", ".join(usual[:-1]), usual[-1]]))
    model = "" if trained is None else f" The model was trained on the column {trained!r}."
    raise DataError(
        f"no {kind} is called {known}.{model} Found: {_listing(names)}. Give its name as {what}_column{more}.", path
    )


def _named(names: Sequence[str], wanted: str) -> list[int]:
    """Return the indices of the names that are ``wanted`` or, if there are none, differ from it only in case."""
    exact = [i for i, given in enumerate(names) if given == wanted]
    return exact or [i for i, given in enumerate(names) if given.lower() == wanted.lower()]


def trained_columns(names: Sequence[str], training: TrainingColumns) -> tuple[Sequence[int | None], LabelColumns]:
    """Return the indices of the columns with what a model predicts, None for those that a source lacks.

    There are none if it lacks all of them.
    """
    hits = [_named(names, name) for name in training.predicted]
    found = [own[0] if len(own) == 1 else None for own in hits]
    if all(at is None for at in found):
        return [], LabelColumns()
    return found, LabelColumns(training.predicted, bool(training.targets), lenient=True)


def find_names(names: list[str], wanted: Sequence[str], path: str | Path, option: str = "target_columns") -> list[int]:
    """Return the indices of the columns or properties that an option names."""
    found = [find_name(names, name, (), option, path) for name in wanted]
    twice = next((at for place, at in enumerate(found) if at in found[:place]), None)
    if twice is not None:
        raise SettingError(f"{option} names the column {names[twice]!r} twice.", path)
    return found


def check_not_predicted(names: Sequence[str], columns: LabelColumns, path: str | Path) -> None:
    """Raise if a column of ``graph_columns`` has what is to be predicted, which a model would be given then."""
    both = next((name for name in names if name in columns.names), None)
    if both is not None:
        raise SettingError(f"graph_columns names {both!r}, which is to be predicted: leave it out.", path)


def _listing(names: list[str]) -> str:
    return shorten(", ".join(names), 300) or "none"
