"""Choose what is read of molecules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sopool.data.formats.atoms import ATOM_COLUMNS, BOND_COLUMNS
from sopool.data.formats.descriptors import descriptor_names, is_descriptor
from sopool.data.names import Needed
from sopool.errors import check_name


@dataclass(frozen=True)
class MoleculeFeatures:
    """What is read of molecules besides the elements of atoms and the types of bonds.

    Args:
        atoms: The columns of node categories, see :data:`~sopool.data.formats.atoms.ATOM_COLUMNS`. Default: none.
        bonds: The columns of edge categories, see :data:`~sopool.data.formats.atoms.BOND_COLUMNS`. Default: none.
        descriptors: The names of descriptors, which become graph attributes. Default: none.

    Examples:
        >>> from sopool.data import MoleculeFeatures
        >>> MoleculeFeatures(atoms=("charge", "aromatic")).bonds
        ()
    """

    atoms: tuple[str, ...] = ()
    """The columns of node categories."""
    bonds: tuple[str, ...] = ()
    """The columns of edge categories."""
    descriptors: tuple[str, ...] = ()
    """The names of descriptors, which become graph attributes."""

    def __post_init__(self) -> None:
        for kind, names, known in (("atoms", self.atoms, ATOM_COLUMNS), ("bonds", self.bonds, BOND_COLUMNS)):
            for name in names:
                check_name(f"feature of {kind}", name, known)


LEVELS = {
    "element": MoleculeFeatures(),
    "charge": MoleculeFeatures(("charge",)),
    "atoms": MoleculeFeatures(tuple(ATOM_COLUMNS)),
    "all": MoleculeFeatures(tuple(ATOM_COLUMNS), tuple(BOND_COLUMNS)),
}
"""The choices with names: the elements of atoms and the types of bonds only, also formal charges, all features of
atoms, and all features of atoms and bonds."""
ELEMENTS = LEVELS["element"]
DEFAULT = "atoms"
"""The choice where none is made: the best on held-out molecules, see ``docs/results/features.md``."""


def chosen_features(features: str | MoleculeFeatures = DEFAULT, descriptors: Sequence[str] = ()) -> MoleculeFeatures:
    """Return what is to be read of molecules.

    Args:
        features: A name in :data:`LEVELS`, or the choice itself. Default: :data:`DEFAULT`.
        descriptors: Kinds of descriptors to add: any of ``"rdkit2d"``, ``"morgan"`` and ``"atom-pairs"``. Default:
            none.
    """
    if not isinstance(features, MoleculeFeatures):
        check_name("choice of features", features, LEVELS)
        features = LEVELS[features]
    added = [name for name in descriptor_names(descriptors) if name not in set(features.descriptors)]
    return replace(features, descriptors=(*features.descriptors, *added)) if added else features


def needed_features(fields: Mapping[str, Needed]) -> MoleculeFeatures:
    """Return what must be read of molecules so that a model can predict them.

    The columns have the same names in all files, so their names alone say what was chosen in training.

    Args:
        fields: The fields that graphs must have, as an encoder's ``fields``. The names of the columns are the values of
            ``"node_categories"`` and ``"edge_categories"``, and those of numbers that of ``"graph_attributes"``.
            Columns that molecules do not have are left out.
    """
    atoms, bonds, numbers = (
        needed if isinstance(needed, tuple) else ()
        for needed in map(fields.get, ("node_categories", "edge_categories", "graph_attributes"))
    )
    return MoleculeFeatures(
        tuple(name for name in atoms if name in ATOM_COLUMNS),
        tuple(name for name in bonds if name in BOND_COLUMNS),
        tuple(filter(is_descriptor, numbers)),
    )


def columns_beside(fields: Mapping[str, Needed]) -> tuple[str, ...]:
    """Return the columns of a table of molecules that hold graph attributes which a model needs.

    Args:
        fields: The fields that graphs must have, as for :func:`needed_features`.
    """
    numbers = fields.get("graph_attributes")
    return tuple(name for name in numbers if not is_descriptor(name)) if isinstance(numbers, tuple) else ()
