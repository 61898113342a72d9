"""RDKit's molecules of SMILES and of SDF records. Those that would cost too much are refused before they do.

RDKit's search for rings takes memory with the square of their length and number: a ring of 10,000 atoms takes 3 GB.
"""

from importlib import import_module
from typing import Any

from sopool.data.formats.molfile import molfile_size
from sopool.errors import DataError, MissingPackageError

ATOMS_PER_RING = 8
"""One ring is allowed for this many of the allowed atoms. DNA has about as many; large fullerenes have more."""
FEW_RINGS = 50
"""So many rings are always allowed: small cages have many for their atoms."""
SMILES_PER_ATOM = 20
"""Characters of a SMILES that are allowed for each of the allowed atoms."""
MOLFILE_PER_ATOM = 200
"""Characters of an SDF record, without its properties, that are allowed for each of the allowed atoms."""
RAISE = "Raise max_atoms (--max-atoms) to read it."


def rdkit_module(module: str) -> Any:
    """Return a module of RDKit; a ``MissingPackageError`` says how to get it."""
    try:
        return import_module(f"rdkit.{module}")
    except ImportError as error:
        raise MissingPackageError("Reading molecules needs RDKit: pip install 'sopool[chem]'") from error


def from_smiles(chem: Any, text: str, max_atoms: int) -> Any:
    """RDKit's molecule, not sanitized yet; None if it cannot be parsed."""
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
    """Return RDKit's molecule of a record of an SDF file, not sanitized yet; None if it cannot be parsed."""
    if text.count("\nM  END") > 1:  # RDKit would take the first, with what is said of the last
        raise DataError("The record has several molecules: a line $$$$ is missing between them.")
    molfile = text.partition("\nM  END")[0]
    _check_length("record", len(molfile), MOLFILE_PER_ATOM * max_atoms, max_atoms)
    size = molfile_size(molfile)
    _check_atoms(size.atoms, max_atoms)
    _check_rings(size.rings, max_atoms)
    return chem.MolFromMolBlock(text, sanitize=False, removeHs=False)


def check_molecule(chem: Any, molecule: Any, max_atoms: int) -> None:
    """Raise a ``DataError`` for a molecule whose rings it would take too much to find."""
    atoms = molecule.GetNumAtoms()
    _check_atoms(atoms, max_atoms)
    _check_rings(molecule.GetNumBonds() - atoms + len(chem.GetMolFrags(molecule)), max_atoms)


def _check_length(what: str, length: int, limit: int, max_atoms: int) -> None:
    if length > limit:
        raise DataError(
            f"The {what} has {length:,} characters. The limit is {limit:,} as long as molecules have at most "
            f"{max_atoms:,} atoms. {RAISE}"
        )


def _check_atoms(atoms: int, max_atoms: int) -> None:
    if atoms > max_atoms:
        raise DataError(f"The molecule has {atoms:,} atoms, the limit is {max_atoms:,}. {RAISE}")


def _check_rings(rings: int, max_atoms: int) -> None:
    limit = max(max_atoms // ATOMS_PER_RING, FEW_RINGS)
    if rings > limit:
        raise DataError(
            f"The molecule has {rings:,} rings. The limit is {limit:,} as long as molecules have at most {max_atoms:,} "
            f"atoms. Raise max_atoms (--max-atoms) to {ATOMS_PER_RING * rings:,} to read it."
        )
