"""Parse SMILES and SDF records with RDKit, after checking that this is not too expensive.

RDKit's search for rings takes memory quadratic in their length and number: a ring of 10,000 atoms takes 3 GB.
"""

from importlib import import_module
from typing import Any

from sopool._runtime.packages import require
from sopool.data.formats.molfile import molfile_size
from sopool.errors import DataError

ATOMS_PER_RING = 8
"""One ring is allowed per this many of the allowed atoms. DNA has about that ratio; large fullerenes have more rings.
"""
FEW_RINGS = 50
"""This many rings are always allowed, because small cages have many rings for their size."""
SMILES_PER_ATOM = 20
"""The number of characters of a SMILES that are allowed per allowed atom."""
MOLFILE_PER_ATOM = 200
"""The number of characters of an SDF record, without its properties, that are allowed per allowed atom."""
RAISE = "Increase max_atoms to read it."


def rdkit_module(module: str) -> Any:
    """Return a module of RDKit; raise a ``MissingPackageError`` if it is not installed."""
    require("reading molecules", "rdkit")
    return import_module(f"rdkit.{module}")


def from_smiles(chem: Any, text: str, max_atoms: int) -> Any:
    """Return RDKit's molecule of a SMILES, not sanitized yet, or None if it cannot be parsed."""
    if not isinstance(text, str) or not text.strip():
        raise DataError("The SMILES is empty.")
    _check_length("SMILES", len(text), SMILES_PER_ATOM * max_atoms, max_atoms)
    settings = chem.SmilesParserParams()
    settings.sanitize = settings.removeHs = False
    molecule = chem.MolFromSmiles(text.strip(), settings)
    if molecule is not None:
        check_molecule(chem, molecule, max_atoms)
    return molecule


def from_sdf(chem: Any, text: str, max_atoms: int) -> Any:
    """Return RDKit's molecule of an SDF record, not sanitized yet, or None if it cannot be parsed."""
    if text.count("\nM  END") > 1:  # RDKit would read the first molecule with the properties of the last
        raise DataError("The record has several molecules: a line $$$$ is missing between them.")
    molfile = text.partition("\nM  END")[0]
    _check_length("record", len(molfile), MOLFILE_PER_ATOM * max_atoms, max_atoms)
    size = molfile_size(molfile)
    _check_atoms(size.atoms, max_atoms)
    _check_rings(size.rings, max_atoms)
    return chem.MolFromMolBlock(text, sanitize=False, removeHs=False)


def check_molecule(chem: Any, molecule: Any, max_atoms: int) -> None:
    """Raise a ``DataError`` for a molecule whose ring search would be too expensive."""
    atoms = molecule.GetNumAtoms()
    _check_atoms(atoms, max_atoms)
    _check_rings(molecule.GetNumBonds() - atoms + len(chem.GetMolFrags(molecule)), max_atoms)


def _check_length(what: str, length: int, limit: int, max_atoms: int) -> None:
    if length > limit:
        raise DataError(
            f"The {what} has {length:,} characters, but the limit is {limit:,} for max_atoms={max_atoms}. {RAISE}"
        )


def _check_atoms(atoms: int, max_atoms: int) -> None:
    if atoms > max_atoms:
        raise DataError(f"The molecule has {atoms:,} atoms, but the limit is {max_atoms:,}. {RAISE}")


def _check_rings(rings: int, max_atoms: int) -> None:
    limit = max(max_atoms // ATOMS_PER_RING, FEW_RINGS)
    if rings > limit:
        raise DataError(
            f"The molecule has {rings:,} rings, but the limit is {limit:,} for max_atoms={max_atoms}. Increase "
            f"max_atoms to {ATOMS_PER_RING * rings} to read it."
        )
