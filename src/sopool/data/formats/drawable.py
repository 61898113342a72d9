"""Convert graphs back to molecules for drawing."""

from typing import Any

from sopool.data.formats.atom_names import atom_values, whole
from sopool.data.formats.limits import MAX_ATOMS
from sopool.data.formats.rdkit import check_molecule, rdkit_module
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, MissingPackageError

LARGEST = 20
"""The largest charge and number of hydrogens of an atom; no molecule has more."""


def molecule_of(graph: PackedGraphs, max_atoms: int = MAX_ATOMS) -> Any | None:
    """Return the RDKit molecule of a graph whose node labels are elements and whose edge labels are bond types.

    Atoms keep the order of the nodes. Charges, and hydrogens that are not nodes, are there if the graph has columns of
    them. Stereochemistry is not, so the molecule is for drawing only. The result is None if the graph is not a
    molecule, if it has more than ``max_atoms`` atoms or too many rings, or if RDKit is not installed.
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
    if not _add_atoms(chem, molecule, graph):
        return None
    for source, target, bond in zip(*graph.edge_index.tolist(), bonds, strict=True):
        if source == target:
            return None
        if molecule.GetBondBetweenAtoms(source, target) is None:
            molecule.AddBond(source, target, kinds[bond])
    _leave_out_nodes(molecule)
    try:
        check_molecule(chem, molecule, max_atoms)
    except DataError:
        return None
    return molecule.GetMol()


def _add_atoms(chem: Any, molecule: Any, graph: PackedGraphs) -> bool:
    """Add an atom for each node, and return whether all nodes are atoms."""
    assert graph.node_labels is not None
    known = atom_values(graph)
    charges, hydrogens = (map(whole, known.get(name, [0] * graph.num_nodes)) for name in ("charge", "hydrogens"))
    for code, charge, count in zip(graph.node_labels.tolist(), charges, hydrogens, strict=True):
        if abs(charge) > LARGEST or not 0 <= count <= LARGEST:
            return False
        with rdkit_module("rdBase").BlockLogs():
            try:
                atom = chem.Atom(str(graph.node_label_names[code]))
            except RuntimeError:
                return False
        atom.SetNoImplicit(True)
        atom.SetFormalCharge(charge)
        atom.SetNumExplicitHs(count)
        molecule.AddAtom(atom)
    return True


def _leave_out_nodes(molecule: Any) -> None:
    """Subtract the hydrogens that are nodes from the numbers of hydrogens of their neighbors."""
    for atom in molecule.GetAtoms():
        nodes = sum(neighbor.GetAtomicNum() == 1 for neighbor in atom.GetNeighbors())
        atom.SetNumExplicitHs(max(0, atom.GetNumExplicitHs() - nodes))
