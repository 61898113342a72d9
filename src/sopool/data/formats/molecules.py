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
    return pack_molecules(molecule_rows(molecules, from_smiles, options), Place("molecule"), on_error, name)


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
    return pack_molecules(rows, Place("line", path), on_error, name or stem_of(path))


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
    return pack_molecules(sdf_rows(path, options), Place("record", path), on_error, name or stem_of(path))


def pack_molecules(
    rows: Iterable[GraphRow], place: Place, on_error: OnError, name: str, split: SplitRule | None = None
) -> tuple[PackedGraphs, list[BadRow]]:
    """Pack the valid rows and list the others, or raise at the first invalid row.

    Labels of a file are converted to integers if all of them are integers, and to targets, with the name of their
    column, if one of them is a number with a fraction. ``split`` says what the ``split`` of the rows means.
    """
    if on_error not in ("skip", "raise"):
        raise SettingError(f"on_error must be 'skip' or 'raise', not {on_error!r}.")
    graphs: list[Graph] = []
    bad: list[BadRow] = []
    columns: tuple[str, ...] = ()
    splits: list[str | None] = []
    for row in rows:
        if row.graph is not None:
            row.graph.where = f"{place.unit} {row.number}"
            graphs.append(row.graph)
            splits.append(row.split)
            columns = row.columns
        elif on_error == "raise":
            raise place.error(row.number, f"{row.problem} Found {show(row.text)}.")
        else:
            bad.append(BadRow(row.number, row.text, row.problem))
    if not graphs and not bad:
        raise DataError("there are no molecules.", place.path)
    if not graphs:
        first = place.error(bad[0].row, f"{bad[0].reason} Found {show(bad[0].text)}.")
        raise DataError(f"0 of {len(bad)} molecules can be used. The first problem: {first}")
    store = _pack(graphs, columns, place, name)
    if split is None or not split.needs_molecules:
        return store, bad
    try:
        values = column_values(split, splits, [graph.where for graph in graphs])
    except DataError as error:
        raise DataError(str(error), place.path) from error
    return with_columns(store, {split.name: values}), bad


def _pack(graphs: list[Graph], columns: tuple[str, ...], place: Place, name: str) -> PackedGraphs:
    """Pack graphs whose labels come from ``columns``, or are given as they are if there are none."""
    labels = [graph.label for graph in graphs]
    if columns and all(isinstance(label, str | float) for label in labels):
        labels = list(labels_of_texts(labels))
        for graph, label in zip(graphs, labels, strict=True):
            graph.label = label
    try:
        return pack(graphs, name, columns if any(map(is_target, labels)) else ())
    except DataError as error:
        raise DataError(str(error), place.path) from error


def _listed(values: Any) -> list[Any]:
    """Convert a sequence, an array or a column of a data frame to a list of plain Python values."""
    refuse_table(values)
    return list(values.tolist() if hasattr(values, "tolist") else values)
