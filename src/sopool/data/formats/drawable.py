"""Convert graphs back to molecules for drawing."""

from typing import Any

from sopool.data.formats.limits import MAX_ATOMS
from sopool.data.formats.rdkit import check_molecule, rdkit_module
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, MissingPackageError


def molecule_of(graph: PackedGraphs, max_atoms: int = MAX_ATOMS) -> Any | None:
    """Return the RDKit molecule of a graph whose node labels are elements and whose edge labels are bond types.

    Atoms keep the order of the nodes. There are no charges and no hydrogens except those that are nodes, so the
    molecule is for drawing only. The result is None if the graph is not a molecule, if it has more than ``max_atoms``
    atoms or too many rings, or if RDKit is not installed.
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
