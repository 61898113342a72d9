"""Molecules as graphs, read from SMILES (a list, a CSV file) or from SDF files. Needs RDKit, the extra ``chem``."""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from reprlib import repr as show
from textwrap import shorten
from typing import Any, Literal, NamedTuple

from sopool.data.formats.csv import CsvRow, csv_header, csv_rows
from sopool.data.formats.limits import MAX_ATOMS
from sopool.data.formats.lines import is_packed, read_lines
from sopool.data.formats.rdkit import from_sdf, from_smiles, rdkit_module
from sopool.data.formats.sdf import SdfRecord, sdf_properties, sdf_records
from sopool.data.graphs import PackedGraphs
from sopool.data.names import number_in, refuse_fractions, whole_number
from sopool.data.pack import Graph, Label, pack
from sopool.errors import DataError, Place, refuse_table

SMILES_NAMES = ("smiles", "canonical_smiles", "smi")
LABEL_NAMES = ("label", "class", "target", "y", "activity")
OnError = Literal["skip", "raise"]
LONGEST = 1000
"""Characters that are kept of what a bad molecule was read from."""


class BadMolecule(NamedTuple):
    """A molecule that was left out."""

    row: int
    """The line of a CSV file or the record of an SDF file, from 1; the place in a list, from 0."""
    text: str
    """The SMILES, or the title of the record; at most 1,000 characters of it."""
    reason: str


class Record(NamedTuple):
    """A molecule before it is parsed."""

    row: int
    text: str
    source: str
    """What is parsed: the SMILES, or the whole record of an SDF file."""
    label: Any
    problem: str = ""
    """Why the record is bad before it is parsed."""


def graph_of_molecule(molecule: Any) -> Graph:
    """An RDKit molecule as a graph: atoms with their symbols, bonds in both directions with the names of their types.

    Atoms keep their order. Hydrogens are nodes only where they are atoms of the molecule.
    """
    edges: list[tuple[int, int]] = []
    names: list[str] = []
    for bond in molecule.GetBonds():
        pair = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        edges += [pair, pair[::-1]]
        names += [bond.GetBondType().name.lower()] * 2
    symbols = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    return Graph(len(symbols), edges, node_labels=symbols, edge_labels=names)


def smiles_to_store(
    smiles: Sequence[str],
    labels: Sequence[Label] | None = None,
    on_error: OnError = "skip",
    name: str = "molecules",
    max_atoms: int = MAX_ATOMS,
) -> tuple[PackedGraphs, list[BadMolecule]]:
    """Pack molecules given as SMILES, with a label each or without; also returns those left out, and why.

    ``on_error="raise"`` stops at the first bad one instead. Hydrogens are nodes where the SMILES writes them as atoms.
    A molecule of more than ``max_atoms`` atoms, or with more than one ring for 8 of these, is bad.
    """
    texts = _listed(smiles)
    given = [None] * len(smiles) if labels is None else _listed(labels)
    if len(given) != len(texts):
        raise DataError(f"{len(given)} labels for {len(texts)} molecules.")
    records = (
        Record(place, str(text), text, label) for place, (text, label) in enumerate(zip(texts, given, strict=True))
    )
    parse = partial(from_smiles, max_atoms=max_atoms)
    return _gather(records, parse, labels is not None, on_error, name, Place("molecule"))


def read_smiles_csv(
    path: str | Path,
    smiles_column: str | None = None,
    label_column: str | None = None,
    on_error: OnError = "skip",
    name: str | None = None,
    labelled: bool = True,
    max_atoms: int = MAX_ATOMS,
) -> tuple[PackedGraphs, list[BadMolecule]]:
    """Read molecules and their labels from two columns of a CSV file (comma, semicolon or tab), plain or ``.gz``.

    The first line names the columns. Those not given are found by themselves: ``smiles`` (or ``canonical_smiles``,
    ``smi``) and ``label`` (or ``class``, ``target``, ``y``, ``activity``), in upper or lower case. ``labelled=False``
    reads molecules only, for prediction. ``max_atoms`` is that of :func:`smiles_to_store`.
    """
    rows = csv_rows(read_lines(path), path)
    header = csv_header(rows, path)
    smiles_at = find_name(header, smiles_column, SMILES_NAMES, "smiles_column", path)
    label_at = find_name(header, label_column, LABEL_NAMES, "label_column", path) if labelled else smiles_at
    records = (csv_record(row, len(header), smiles_at, label_at) for row in rows)
    parse = partial(from_smiles, max_atoms=max_atoms)
    return _gather(records, parse, labelled, on_error, name or _stem(path), Place("line", path))


def read_sdf(
    path: str | Path,
    label_property: str | None = None,
    on_error: OnError = "skip",
    name: str | None = None,
    labelled: bool = True,
    max_atoms: int = MAX_ATOMS,
) -> tuple[PackedGraphs, list[BadMolecule]]:
    """Read the molecules of an SDF file, plain or ``.gz``, with one property of each as its label.

    A property not given is found by the names that :func:`read_smiles_csv` knows; ``labelled=False`` reads none.
    ``max_atoms`` is that of :func:`smiles_to_store`.
    """
    chosen = ""
    if labelled:
        chosen = find_property(path, label_property)
    records = (sdf_molecule(record, sdf_properties(record.text).get(chosen)) for record in sdf_records(path))
    parse = partial(from_sdf, max_atoms=max_atoms)
    return _gather(records, parse, labelled, on_error, name or _stem(path), Place("record", path))


def _gather(
    records: Iterable[Record],
    parse: Callable[[Any, str], Any],
    labelled: bool,
    on_error: OnError,
    name: str,
    place: Place,
) -> tuple[PackedGraphs, list[BadMolecule]]:
    """Parse and pack what is good, list what is not."""
    if on_error not in ("skip", "raise"):
        raise ValueError(f"on_error must be 'skip' or 'raise', not {on_error!r}.")
    chem = rdkit_module("Chem")
    graphs: list[Graph] = []
    bad: list[BadMolecule] = []
    with rdkit_module("rdBase").BlockLogs():
        for record in records:
            try:
                graphs.append(graph_of_record(chem, record, parse, labelled))
            except DataError as error:
                if on_error == "raise":
                    raise place.error(record.row, f"{error} Found {show(record.text)}.") from error
                bad.append(BadMolecule(record.row, record.text[:LONGEST], str(error)))
    if not graphs and not bad:
        raise DataError("there are no molecules.", place.path)
    if not graphs:
        first = place.error(bad[0].row, f"{bad[0].reason} Found {show(bad[0].text)}.")
        raise DataError(f"all {len(bad)} molecules are bad. The first: {first}")
    if labelled and place.path is not None:
        refuse_fractions([number_in(str(graph.label)) for graph in graphs], place.path)
        _number_labels(graphs)
    return pack(graphs, name), bad


def _number_labels(graphs: list[Graph]) -> None:
    """Labels that were read as texts as whole numbers, if all of them are."""
    numbers = [whole_number(str(graph.label)) for graph in graphs]
    if None not in numbers:
        for graph, number in zip(graphs, numbers, strict=True):
            graph.label = number


def graph_of_record(chem: Any, record: Record, parse: Callable[[Any, str], Any], labelled: bool) -> Graph:
    """The graph of one record; a DataError says why it is bad."""
    if record.problem:
        raise DataError(record.problem)
    if labelled and no_label(record.label):
        raise DataError("The label is missing.")
    try:
        molecule = parse(chem, record.source)
        if molecule is not None:
            chem.SanitizeMol(molecule)
    except DataError:
        raise
    except (ValueError, RuntimeError) as error:
        raise DataError(f"RDKit refuses the molecule: {str(error).strip()}.") from error
    if molecule is None:
        raise DataError("RDKit cannot parse it.")
    if not molecule.GetNumAtoms():
        raise DataError("The molecule has no atoms.")
    graph = graph_of_molecule(molecule)
    graph.label = record.label if labelled else None
    return graph


def no_label(label: Any) -> bool:
    """Whether this stands for a missing label: None, a NaN, or what pandas writes for them."""
    return label is None or str(label).lower() in ("", "nan", "<na>")


def csv_record(row: CsvRow, width: int, smiles_at: int, label_at: int) -> Record:
    """The molecule of a row of cells."""
    if row.problem:
        return Record(row.number, row.cells[0], "", None, row.problem)
    extra = any(row.cells[width:])
    problem = f"The line has {len(row.cells)} cells, the first line has {width}." if extra else ""
    cells = row.cells + [""] * width
    return Record(row.number, cells[smiles_at], cells[smiles_at], cells[label_at], problem)


def sdf_molecule(record: SdfRecord, label: str | None) -> Record:
    """The molecule of a record of an SDF file."""
    return Record(record.number, record.title, record.text, label, record.problem)


def find_property(path: str | Path, wanted: str | None) -> str:
    """The property of an SDF file that holds the label."""
    names = list({name: None for record in sdf_records(path) for name in sdf_properties(record.text)})
    return names[find_name(names, wanted, LABEL_NAMES, "label_property", path)]


def find_name(names: list[str], wanted: str | None, usual: tuple[str, ...], option: str, path: str | Path) -> int:
    """Which of the names is the wanted one, or a usual one."""
    kind = "property" if option == "label_property" else "column"
    for name in usual if wanted is None else (wanted,):
        hits = [i for i, given in enumerate(names) if given == name]
        hits = hits or [i for i, given in enumerate(names) if given.lower() == name.lower()]
        if len(hits) > 1:
            raise DataError(f"{name!r} names {len(hits)} of them: {_listing(names)}. Rename all but one.", path)
        if hits:
            return hits[0]
    if wanted is None:
        what = option.partition("_")[0]
        more = ", or labelled=False to read none" if what == "label" else "; the first line names the columns"
        typed = f"--{what}-column NAME, in Python load(..., {what}_column=NAME){more}"
        message = f"no {kind} is called {', '.join(usual)}. Found: {_listing(names)}. Name it: {typed}."
    else:
        known = {given.lower(): given for given in names}
        close = get_close_matches(wanted.lower(), known, 1)
        hint = f" Did you mean {known[close[0]]!r}?" if close else ""
        message = f"there is no {kind} {wanted!r} ({option}). Found: {_listing(names)}.{hint}"
    raise DataError(message, path)


def _listing(names: list[str]) -> str:
    return shorten(", ".join(names), 300) or "none"


def _listed(values: Any) -> list[Any]:
    """A list of a sequence, an array or a column of a data frame, with plain Python values."""
    refuse_table(values)
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _stem(path: str | Path) -> str:
    path = Path(path)
    return (path.with_suffix("") if is_packed(path) else path).stem
