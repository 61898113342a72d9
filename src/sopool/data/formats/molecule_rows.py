"""Molecules as graphs, one after the other: what the readers of SMILES and of SDF files have in common. Needs RDKit."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from sopool.data.formats.rdkit import rdkit_module
from sopool.data.formats.rows import GraphRow, RowOptions
from sopool.data.pack import Graph
from sopool.errors import DataError, SettingError, suggest

LABEL_NAMES = ("label", "class", "target", "y", "activity")
"""What the column or property of labels is usually called."""
LONGEST = 1000
"""Characters that are kept of what a molecule was read from."""


class MoleculeText(NamedTuple):
    """A molecule before it is parsed."""

    row: int
    text: str
    """What is shown of it: the SMILES, or the title of the record of an SDF file."""
    source: str
    """What is parsed: the SMILES, or the whole record of an SDF file."""
    label: Any = None
    name: str | None = None
    problem: str = ""
    """Why the molecule is bad before it is parsed."""


def graph_of_molecule(molecule: Any) -> Graph:
    """Return an RDKit molecule as a graph: atoms with their symbols, bonds in both directions with their types' names.

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


def molecule_rows(
    molecules: Iterable[MoleculeText], parse: Callable[[Any, str, int], Any], options: RowOptions
) -> Iterator[GraphRow]:
    """Yield the graph of each molecule; ``parse(chem, source, max_atoms)`` gives RDKit's molecule, or None."""
    chem = rdkit_module("Chem")
    block_logs = rdkit_module("rdBase").BlockLogs
    for molecule in molecules:
        label = None if options.labels == "ignored" or is_missing(molecule.label) else molecule.label
        size = len(molecule.source) + len(molecule.name or "") + (len(label) if isinstance(label, str) else 0)
        row = GraphRow(molecule.row, molecule.text[:LONGEST], size, molecule.name or None)
        if molecule.problem:
            yield row._replace(problem=molecule.problem)
        elif label is None and options.labels == "required":
            yield row._replace(problem="The label is missing.")
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
    """Parse a molecule; a ``DataError`` says why it is bad."""
    try:
        molecule = parse(chem, source, max_atoms)
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
    return graph_of_molecule(molecule)


def is_missing(label: Any) -> bool:
    """Return whether this stands for a missing label: None, a NaN, or what pandas writes for them."""
    return label is None or str(label).lower() in ("", "nan", "<na>")


def find_name(names: list[str], wanted: str | None, usual: tuple[str, ...], option: str, path: str | Path) -> int:
    """Return which of the names of columns or properties is the wanted one, or a usual one if none is wanted."""
    kind = "property" if option == "label_property" else "column"
    for name in usual if wanted is None else (wanted,):
        hits = [i for i, given in enumerate(names) if given == name]
        hits = hits or [i for i, given in enumerate(names) if given.lower() == name.lower()]
        if len(hits) > 1:
            raise DataError(f"{name!r} names {len(hits)} of them: {_listing(names)}. Rename all but one.", path)
        if hits:
            return hits[0]
    if wanted is not None:
        found = f"Found: {_listing(names)}.{suggest(wanted, names)}"
        raise SettingError(f"there is no {kind} {wanted!r} ({option}). {found}", path)
    what = option.partition("_")[0]
    more = ", or labelled=False to read none" if what == "label" else "; the first line names the columns"
    typed = f"--{what}-column NAME, in Python load(..., {what}_column=NAME){more}"
    raise DataError(f"no {kind} is called {', '.join(usual)}. Found: {_listing(names)}. Name it: {typed}.", path)


def _listing(names: list[str]) -> str:
    return shorten(", ".join(names), 300) or "none"
