"""Read molecules from SMILES (a list or a CSV file) or from SDF files. Needs RDKit (the extra ``chem``)."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from reprlib import repr as show
from typing import Any

from sopool.data.division import SplitRule, column_values, with_columns
from sopool.data.formats.csv import table_rows
from sopool.data.formats.limits import MAX_ATOMS
from sopool.data.formats.lines import read_lines, stem_of
from sopool.data.formats.molecule_features import DEFAULT, MoleculeFeatures, chosen_features
from sopool.data.formats.molecule_rows import MoleculeText, molecule_rows
from sopool.data.formats.rdkit import from_smiles
from sopool.data.formats.rows import BadRow, GraphRow, LabelRule, row_options
from sopool.data.formats.sdf import sdf_rows
from sopool.data.graphs import PackedGraphs
from sopool.data.names import labels_of_texts, plain
from sopool.data.pack import Graph, pack
from sopool.data.targets import is_target
from sopool.errors import DataError, OnError, Place, SettingError, refuse_table


def smiles_to_store(
    smiles: Sequence[str],
    labels: Sequence[Any] | None = None,
    on_error: OnError = "skip",
    name: str = "molecules",
    max_atoms: int = MAX_ATOMS,
    features: str | MoleculeFeatures = DEFAULT,
    descriptors: Sequence[str] = (),
) -> tuple[PackedGraphs, list[BadRow]]:
    """Convert SMILES to a store, and return it with the list of molecules that were skipped.

    Hydrogens are nodes only if the SMILES writes them as atoms.

    Args:
        smiles: The SMILES.
        labels: The class of each molecule, or its targets: numbers with fractions, or lists of numbers and None.
            Default: None.
        on_error: Whether to ``"skip"`` molecules that cannot be read or to ``"raise"``. Default: ``"skip"``.
        name: The name of the store. Default: ``"molecules"``.
        max_atoms: The largest number of atoms of a molecule; at most ``max_atoms // 8`` rings (50 if that is larger)
            are allowed. Default: 1000.
        features: What is read of atoms and bonds: ``"element"`` (and the types of bonds), ``"charge"`` (also formal
            charges), ``"atoms"`` (all features of atoms), ``"all"`` (also those of bonds), or a
            :class:`MoleculeFeatures`. Default: ``"atoms"``.
        descriptors: Numbers to compute of each molecule, which become graph attributes: any of ``"rdkit2d"`` (RDKit's
            descriptors), ``"morgan"`` and ``"atom-pairs"`` (fingerprints of 1,024 counts). Default: none.
    """
    texts = _listed(smiles)
    given = [None] * len(smiles) if labels is None else _listed(labels)
    if len(given) != len(texts):
        raise DataError(f"{len(given)} labels for {len(texts)} molecules, expected one label per molecule.")
    molecules = (
        MoleculeText(place, str(text), text if isinstance(text, str) else "", plain(label))
        for place, (text, label) in enumerate(zip(texts, given, strict=True))
    )
    rule: LabelRule = "ignored" if labels is None else "required"
    chosen = chosen_features(features, descriptors)
    options = row_options(max_atoms=max_atoms, labels=rule, features=chosen)
    return _packed(molecule_rows(molecules, from_smiles, options), Place("molecule"), on_error, name)


def read_smiles_csv(
    path: str | Path,
    smiles_column: str | None = None,
    label_column: str | None = None,
    on_error: OnError = "skip",
    name: str | None = None,
    labelled: bool = True,
    max_atoms: int = MAX_ATOMS,
    target_columns: Sequence[str] = (),
    features: str | MoleculeFeatures = DEFAULT,
    descriptors: Sequence[str] = (),
) -> tuple[PackedGraphs, list[BadRow]]:
    """Read molecules from a CSV file (comma, semicolon or tab; may be ``.gz``), and return those skipped as well.

    The first line has the column names.

    Args:
        path: The file.
        smiles_column: The column with the SMILES. Default: None, ``smiles``, ``canonical_smiles`` or ``smi``, in upper
            or lower case.
        label_column: The column with the classes, or with numbers to predict if one of them has a fraction. Default:
            None, ``label``, ``class``, ``target``, ``y`` or ``activity``, in upper or lower case.
        on_error: Whether to ``"skip"`` molecules that cannot be read or to ``"raise"``. Default: ``"skip"``.
        name: The name of the store. Default: None, the file's name.
        labelled: Whether to read labels. Default: True.
        max_atoms: The largest number of atoms of a molecule, as in :func:`smiles_to_store`. Default: 1000.
        target_columns: The columns with numbers to predict, instead of ``label_column``; cells may be empty. Default:
            none.
        features: What is read of atoms and bonds, as in :func:`smiles_to_store`. Default: ``"atoms"``.
        descriptors: Numbers to compute of each molecule, as in :func:`smiles_to_store`. Default: none.
    """
    labels: LabelRule = "required" if labelled else "ignored"
    chosen = chosen_features(features, descriptors)
    options = row_options(smiles_column, label_column, target_columns, max_atoms, labels, features=chosen)
    rows = table_rows(read_lines(path), path, options)
    return _packed(rows, Place("line", path), on_error, name or stem_of(path))


def read_sdf(
    path: str | Path,
    label_property: str | None = None,
    on_error: OnError = "skip",
    name: str | None = None,
    labelled: bool = True,
    max_atoms: int = MAX_ATOMS,
    target_columns: Sequence[str] = (),
    features: str | MoleculeFeatures = DEFAULT,
    descriptors: Sequence[str] = (),
) -> tuple[PackedGraphs, list[BadRow]]:
    """Read molecules from an SDF file (may be ``.gz``), and return those skipped as well.

    Args:
        path: The file.
        label_property: The property with the classes or numbers. Default: None, one of the names that
            :func:`read_smiles_csv` knows.
        on_error: Whether to ``"skip"`` molecules that cannot be read or to ``"raise"``. Default: ``"skip"``.
        name: The name of the store. Default: None, the file's name.
        labelled: Whether to read labels. Default: True.
        max_atoms: The largest number of atoms of a molecule, as in :func:`smiles_to_store`. Default: 1000.
        target_columns: The properties with numbers to predict, instead of ``label_property``. Default: none.
        features: What is read of atoms and bonds, as in :func:`smiles_to_store`. Default: ``"atoms"``.
        descriptors: Numbers to compute of each molecule, as in :func:`smiles_to_store`. Default: none.
    """
    labels: LabelRule = "required" if labelled else "ignored"
    chosen = chosen_features(features, descriptors)
    options = row_options(None, label_property, target_columns, max_atoms, labels, features=chosen)
    return _packed(sdf_rows(path, options), Place("record", path), on_error, name or stem_of(path))


def _packed(rows: Iterable[GraphRow], place: Place, on_error: OnError, name: str) -> tuple[PackedGraphs, list[BadRow]]:
    """Pack the molecules of one source, and list the rows that are skipped."""
    store, (bad,) = pack_molecules([(place, rows)], on_error, name)
    return store, bad


def pack_molecules(
    sources: Sequence[tuple[Place, Iterable[GraphRow]]], on_error: OnError, name: str, split: SplitRule | None = None
) -> tuple[PackedGraphs, list[list[BadRow]]]:
    """Pack the valid rows of one or several sources and list the others of each, or raise at the first invalid row.

    Labels of files are converted to integers if all of them are integers, and to targets, with the name of their
    column, if one of them is a number with a fraction. ``split`` says what the ``split`` of the rows means.
    """
    if on_error not in ("skip", "raise"):
        raise SettingError(f"on_error must be 'skip' or 'raise', not {on_error!r}.")
    several = len(sources) > 1
    graphs: list[Graph] = []
    bad: list[list[BadRow]] = [[] for _ in sources]
    columns: tuple[str, ...] | None = None
    splits: list[str | None] = []
    for (place, rows), skipped in zip(sources, bad, strict=True):
        for row in rows:
            if row.graph is not None:
                row.graph.where = place.of(row.number) if several else f"{place.unit} {row.number}"
                graphs.append(row.graph)
                splits.append(row.split)
                columns = row.columns if columns is None else columns
                if row.columns != columns:
                    raise _other_columns(row.columns, columns, place, sources[0][0])
            elif on_error == "raise":
                raise place.error(row.number, f"{row.problem} Found {show(row.text)}.")
            else:
                skipped.append(BadRow(row.number, row.text, row.problem))
    file = None if several else sources[0][0].path
    if not graphs:
        raise _no_molecules(sources, bad, file)
    try:
        store = _pack(graphs, columns or (), name)
        if split is None or not split.needs_molecules:
            return store, bad
        values = column_values(split, splits, [graph.where for graph in graphs])
    except DataError as error:
        raise DataError(str(error), file) from error
    return with_columns(store, {split.name: values}), bad


def _no_molecules(
    sources: Sequence[tuple[Place, Iterable[GraphRow]]], bad: list[list[BadRow]], file: str | Path | None
) -> DataError:
    """Return the error for sources without any valid row."""
    first = next(((place, own[0]) for (place, _), own in zip(sources, bad, strict=True) if own), None)
    if first is None:
        return DataError("there are no molecules.", file)
    place, row = first
    problem = place.error(row.row, f"{row.reason} Found {show(row.text)}.")
    return DataError(f"0 of {sum(map(len, bad))} molecules can be used. The first problem: {problem}")


def _other_columns(found: tuple[str, ...], expected: tuple[str, ...], place: Place, first: Place) -> DataError:
    """Return the error for a file whose labels are in other columns than those of the first file."""
    here, there = (", ".join(map(repr, names)) or "no column" for names in (found, expected))
    return DataError(
        f"what is predicted is in {here}, but in {there} of {first.path}. Give the same columns the same names.",
        place.path,
    )


def _pack(graphs: list[Graph], columns: tuple[str, ...], name: str) -> PackedGraphs:
    """Pack graphs whose labels come from ``columns``, or are given as they are if there are none."""
    labels = [graph.label for graph in graphs]
    if columns and all(isinstance(label, str | float) for label in labels):
        labels = list(labels_of_texts(labels))
        for graph, label in zip(graphs, labels, strict=True):
            graph.label = label
    return pack(graphs, name, columns if any(map(is_target, labels)) else ())


def _listed(values: Any) -> list[Any]:
    """Convert a sequence, an array or a column of a data frame to a list of plain Python values."""
    refuse_table(values)
    return list(values.tolist() if hasattr(values, "tolist") else values)
