"""Convert molecules to graphs, for the readers of SMILES and SDF files. Needs RDKit."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from sopool.data.formats.rdkit import rdkit_module
from sopool.data.formats.rows import GraphRow, RowOptions
from sopool.data.pack import Graph
from sopool.errors import DataError, SettingError, suggest

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
    name: str | None = None
    problem: str = ""
    """The reason why the molecule cannot be used, found before parsing, or an empty string."""


def graph_of_molecule(molecule: Any) -> Graph:
    """Convert an RDKit molecule to a graph with atom symbols as node labels and bond types as edge labels.

    Atoms keep their order, and bonds become edges in both directions. Hydrogens are nodes only if they are explicit
    atoms.

    Args:
        molecule: The RDKit molecule.
    """
    edges: list[tuple[int, int]] = []
    names: list[str] = []
    for bond in molecule.GetBonds():
        pair = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        edges += [pair, pair[::-1]]
        names += [bond.GetBondType().name.lower()] * 2
    symbols = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    return Graph(len(symbols), edges, node_labels=symbols, edge_labels=names)


def molecule_rows(
    molecules: Iterable[MoleculeText], parse: Callable[[Any, str, int], Any], options: RowOptions
) -> Iterator[GraphRow]:
    """Yield the graph of each molecule; ``parse(chem, source, max_atoms)`` returns RDKit's molecule or None."""
    chem = rdkit_module("Chem")
    block_logs = rdkit_module("rdBase").BlockLogs
    for molecule in molecules:
        label = None if options.labels == "ignored" or is_missing(molecule.label) else molecule.label
        size = len(molecule.source) + len(molecule.name or "") + (len(label) if isinstance(label, str) else 0)
        row = GraphRow(molecule.row, molecule.text[:LONGEST], size, molecule.name or None)
        if molecule.problem:
            yield row._replace(problem=molecule.problem)
        elif label is None and options.labels == "required":
            yield row._replace(problem="The molecule has no label.")
        else:
            try:
                with block_logs():
                    graph = _graph(chem, parse, molecule.source, options.max_atoms)
            except DataError as error:
                yield row._replace(problem=str(error))
            else:
                graph.label = label
                yield row._replace(graph=graph)


def _graph(chem: Any, parse: Callable[[Any, str, int], Any], source: str, max_atoms: int) -> Graph:
    """Parse a molecule; raise a ``DataError`` if that fails."""
    try:
        molecule = parse(chem, source, max_atoms)
        if molecule is not None:
            chem.SanitizeMol(molecule)
    except DataError:
        raise
    except (ValueError, RuntimeError) as error:
        raise DataError(f"RDKit rejects the molecule: {str(error).strip()}.") from error
    if molecule is None:
        raise DataError("RDKit cannot parse the molecule.")
    if not molecule.GetNumAtoms():
        raise DataError("The molecule has no atoms.")
    return graph_of_molecule(molecule)


def is_missing(label: Any) -> bool:
    """Return whether a label is missing: None, NaN, or what pandas writes for them."""
    return label is None or str(label).lower() in ("", "nan", "<na>")


def find_name(names: list[str], wanted: str | None, usual: tuple[str, ...], option: str, path: str | Path) -> int:
    """Return the index of the wanted column or property, or of one with a usual name if ``wanted`` is None."""
    kind = "property" if option == "label_property" else "column"
    for name in usual if wanted is None else (wanted,):
        hits = [i for i, given in enumerate(names) if given == name]
        hits = hits or [i for i, given in enumerate(names) if given.lower() == name.lower()]
        if len(hits) > 1:
            plural = "properties" if kind == "property" else "columns"
            raise DataError(f"{name!r} names {len(hits)} {plural}: {_listing(names)}. Rename all but one.", path)
        if hits:
            return hits[0]
    if wanted is not None:
        found = f"Found: {_listing(names)}.{suggest(wanted, names)}"
        raise SettingError(f"there is no {kind} {wanted!r} ({option}). {found}", path)
    what = option.partition("_")[0]
    more = ", or labelled=False to read no labels" if what == "label" else "; the first line has the column names"
    known = " or ".join(filter(None, [", ".join(usual[:-1]), usual[-1]]))
    raise DataError(
        f"no {kind} is called {known}. Found: {_listing(names)}. Give its name as {what}_column{more}.", path
    )


def _listing(names: list[str]) -> str:
    return shorten(", ".join(names), 300) or "none"
