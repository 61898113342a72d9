"""Read what chemists note of atoms and bonds, besides the element and the type of the bond, with RDKit.

No value depends on the order in which a file lists the atoms. Therefore the chirality is the CIP label of an atom (R or
S), and not RDKit's chiral tag, which says in which order the neighbors are listed.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from sopool.data.formats.rdkit import rdkit_module

WILDCARD = "*"
"""The element of atoms that stand for any atom, group or rest, whatever a file calls them."""
NONE = "none"
"""The chirality of atoms and the stereo of bonds that have no label."""
LARGE_RING = 9
"""The size that stands for all rings of at least this many atoms."""
LABEL = "_CIPCode"
"""The property in which RDKit stores the CIP label of an atom or a bond."""
MAX_COMPARISONS = 100_000
"""A molecule that needs more comparisons has no CIP labels; a large protein needs some hundreds, and 100,000 take a
fraction of a second."""

Values = list[str] | list[int]


@cache
def _hybridization(kind: Any) -> str:
    name: str = kind.name.lower()
    return name


@cache
def _bond_type(kind: Any) -> str:
    name: str = kind.name.lower()
    return name


def _yes(values: Iterable[bool]) -> Values:
    return ["yes" if value else "no" for value in values]


def _labels(items: Iterable[Any]) -> Values:
    return [item.GetProp(LABEL) if item.HasProp(LABEL) else NONE for item in items]


def _ring_sizes(atoms: list[Any]) -> Values:
    if not atoms:
        return []
    size = atoms[0].GetOwningMol().GetRingInfo().MinAtomRingSize
    return [min(size(number), LARGE_RING) for number in range(len(atoms))]


ATOM_COLUMNS: Mapping[str, Callable[[list[Any]], Values]] = {
    "degree": lambda atoms: [atom.GetDegree() for atom in atoms],
    "charge": lambda atoms: [atom.GetFormalCharge() for atom in atoms],
    "hydrogens": lambda atoms: [atom.GetTotalNumHs(True) for atom in atoms],
    "hybridization": lambda atoms: [_hybridization(atom.GetHybridization()) for atom in atoms],
    "aromatic": lambda atoms: _yes(atom.GetIsAromatic() for atom in atoms),
    "ring size": _ring_sizes,
    "chirality": _labels,
}
"""The columns of node categories, each with a function of all atoms of a molecule in order:

- ``degree``: the number of neighbors in the graph
- ``charge``: the formal charge
- ``hydrogens``: the number of bonded hydrogens, those that are nodes included
- ``hybridization``: ``"s"``, ``"sp"``, ``"sp2"``, ``"sp3"``, ``"sp3d"``, ... or ``"unspecified"``
- ``aromatic``: ``"yes"`` or ``"no"``
- ``ring size``: the size of the smallest ring, 9 for larger ones, 0 outside of rings
- ``chirality``: the CIP label ``"R"``, ``"S"``, ``"r"`` or ``"s"``, else ``"none"``
"""
BOND_COLUMNS: Mapping[str, Callable[[list[Any]], Values]] = {
    "conjugated": lambda bonds: _yes(bond.GetIsConjugated() for bond in bonds),
    "in ring": lambda bonds: _yes(bond.IsInRing() for bond in bonds),
    "stereo": _labels,
}
"""The columns of edge categories, each with a function of all bonds of a molecule in order:

- ``conjugated`` and ``in ring``: ``"yes"`` or ``"no"``
- ``stereo``: the CIP label ``"E"`` or ``"Z"`` (``"M"`` or ``"P"`` of an axis), else ``"none"``
"""
STEREO = {"chirality", "stereo"}
"""The columns that need CIP labels."""


def element(atom: Any) -> str:
    """Return the symbol of an atom, ``"*"`` for a wildcard."""
    symbol: str = atom.GetSymbol() if atom.GetAtomicNum() else WILDCARD
    return symbol


def bond_type(bond: Any) -> str:
    """Return the type of a bond in lower case, such as ``"single"``, ``"aromatic"`` or ``"dative"``."""
    return _bond_type(bond.GetBondType())


def assign_labels(molecule: Any) -> None:
    """Assign CIP labels to the atoms and bonds of a molecule; one for which that takes too long has none."""
    assign_stereochemistry(molecule)
    try:
        rdkit_module("Chem.rdCIPLabeler").AssignCIPLabels(molecule, maxRecursiveIterations=MAX_COMPARISONS)
    except RuntimeError:
        for item in (*molecule.GetAtoms(), *molecule.GetBonds()):
            item.ClearProp(LABEL)


def assign_stereochemistry(molecule: Any) -> None:
    """Find the stereocenters of a molecule and remove marks of atoms that are none, unless RDKit has done so before."""
    rdkit_module("Chem").AssignStereochemistry(molecule, cleanIt=True, flagPossibleStereoCenters=True)
