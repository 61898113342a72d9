"""Molecules in another order of their atoms, and samples of the molecules beside the repository."""

import csv
import gzip

from tests.helpers.shared import MOLECULES


def shuffled(molecule):
    """A random SMILES of an RDKit molecule, and the atom of the molecule that each of its atoms is."""
    from rdkit import Chem

    smiles = Chem.MolToSmiles(molecule, doRandom=True)
    return smiles, list(molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])


def sample(name, count):
    """Evenly spaced SMILES of a data set."""
    with gzip.open(MOLECULES / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
        every = [row["smiles"] for row in csv.DictReader(file)]
    return every[:: max(1, len(every) // count)]
