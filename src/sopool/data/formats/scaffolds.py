"""Scaffolds of molecules, by which splits keep related molecules together. Needs RDKit."""

from typing import Any

from sopool.data.formats.rdkit import rdkit_module


def scaffold_of(molecule: Any) -> str:
    """Return the Bemis-Murcko scaffold of a molecule as SMILES: its rings and what links them, without stereochemistry.

    A molecule without rings has no scaffold, and nothing else says which of these are related. Each is therefore
    identified by its own SMILES, so that only equal ones stay together.

    G. W. Bemis, M. A. Murcko. The properties of known drugs. 1. Molecular frameworks. J. Med. Chem. 39, 1996.

    Args:
        molecule: RDKit's molecule, sanitized.
    """
    murcko = rdkit_module("Chem.Scaffolds.MurckoScaffold")
    scaffold: str = murcko.MurckoScaffoldSmiles(mol=molecule, includeChirality=False)
    own: str = rdkit_module("Chem").MolToSmiles(molecule, isomericSmiles=False)
    return scaffold or f"no rings: {own}"
