"""Graphs back to molecules, to be drawn."""

from typing import Any

from sopool.data.formats.limits import MAX_ATOMS
from sopool.data.formats.rdkit import check_molecule, rdkit_module
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, MissingPackageError


def molecule_of(graph: PackedGraphs, max_atoms: int = MAX_ATOMS) -> Any | None:
    """RDKit's molecule of one graph whose node labels are elements and whose edge labels are kinds of bonds.

    As the graph has it: atoms in its order, no charges, no hydrogens but those that are nodes, and so not to be
    calculated with. None where the graph is no molecule, or one of more atoms than ``max_atoms`` or of very many rings,
    or where there is no RDKit.
    """
    if graph.node_labels is None or graph.edge_labels is None or graph.num_nodes > max_atoms:
        return None
    try:
        chem = rdkit_module("Chem")
    except MissingPackageError:
        return None
    bonds = [str(graph.edge_label_names[code]) for code in graph.edge_labels.tolist()]
    kinds = {name.lower(): kind for name, kind in chem.BondType.names.items()}
    if not set(bonds) <= set(kinds):
        return None
    molecule = chem.RWMol()
    for code in graph.node_labels.tolist():
        if not _add_atom(chem, molecule, str(graph.node_label_names[code])):
            return None
    for source, target, bond in zip(*graph.edge_index.tolist(), bonds, strict=True):
        if source == target:
            return None
        if molecule.GetBondBetweenAtoms(source, target) is None:
            molecule.AddBond(source, target, kinds[bond])
    try:
        check_molecule(chem, molecule, max_atoms)
    except DataError:
        return None
    return molecule.GetMol()


def _add_atom(chem: Any, molecule: Any, symbol: str) -> bool:
    with rdkit_module("rdBase").BlockLogs():
        try:
            atom = chem.Atom(symbol)
        except RuntimeError:
            return False
    atom.SetNoImplicit(True)
    molecule.AddAtom(atom)
    return True
