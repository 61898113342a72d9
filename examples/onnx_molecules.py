"""Predict classes or numbers of molecules with an ONNX file, without PyTorch and without sopool.

You learn what a program needs that uses an exported model: ONNX Runtime runs the file, and RDKit turns SMILES into the
inputs that the file's metadata describe. Copy this script into your own project. First export a model and write a file
with one SMILES per line:

    sopool export solubility.sopool -o model.onnx
    python onnx_molecules.py model.onnx molecules.smi

Needs onnxruntime and rdkit. The predictions agree with those of ``sopool predict`` up to rounding. Molecules that RDKit
cannot read are skipped and reported.
"""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import onnxruntime
from rdkit import Chem, RDLogger
from rdkit.Chem import rdCIPLabeler

COLUMNS = {
    "degree": lambda atom: atom.GetDegree(),
    "charge": lambda atom: atom.GetFormalCharge(),
    "hydrogens": lambda atom: atom.GetTotalNumHs(True),
    "hybridization": lambda atom: atom.GetHybridization().name.lower(),
    "aromatic": lambda atom: "yes" if atom.GetIsAromatic() else "no",
    "ring size": lambda atom: min(atom.GetOwningMol().GetRingInfo().MinAtomRingSize(atom.GetIdx()), 9),
    "chirality": lambda atom: atom.GetProp("_CIPCode") if atom.HasProp("_CIPCode") else "none",
}
"""The categories of atoms that a model may use, by the names in the metadata."""


def read_molecule(smiles: str) -> Chem.Mol | None:
    """Return the molecule of a SMILES with those hydrogens as atoms that it writes as atoms; None if it is invalid."""
    settings = Chem.SmilesParserParams()
    settings.removeHs = False
    molecule = Chem.MolFromSmiles(smiles, settings)
    if molecule is None or not molecule.GetNumAtoms():
        return None
    Chem.AssignStereochemistry(molecule, cleanIt=True, flagPossibleStereoCenters=True)
    rdCIPLabeler.AssignCIPLabels(molecule)
    return molecule


def positions(found: list[str], values: list[str | int]) -> np.ndarray:
    """Return the position of each label in the list of known values, -1 for others."""
    known = {value: position for position, value in enumerate(values)}
    return np.array([known.get(label, -1) for label in found], dtype=np.int64)


def pairs_of(molecule: Chem.Mol, distances: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of atoms that are at most ``distances`` bonds apart, in both orders, and their distances."""
    bonds = Chem.GetDistanceMatrix(molecule).astype(np.int64)
    pairs = np.stack(np.nonzero((bonds >= 1) & (bonds <= distances)))
    return pairs, bonds[pairs[0], pairs[1]]


def model_inputs(molecules: list[Chem.Mol], described: dict) -> dict[str, np.ndarray]:
    """Return the inputs of the model for a batch of molecules, as the metadata describe them."""
    bonds = [bond for molecule in molecules for bond in molecule.GetBonds()]
    atoms = [atom for molecule in molecules for atom in molecule.GetAtoms()]
    ptr = np.cumsum([0, *(molecule.GetNumAtoms() for molecule in molecules)], dtype=np.int64)
    first = np.repeat(ptr[:-1], [molecule.GetNumBonds() for molecule in molecules])
    ends = np.array([(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds], dtype=np.int64).reshape(-1, 2)
    there = ends.T + first  # each bond in one direction, numbered across all molecules
    inputs = {"ptr": ptr, "edge_index": np.concatenate([there, there[::-1]], axis=1)}
    if "node_labels" in described:
        symbols = [atom.GetSymbol() for atom in atoms]
        inputs["node_labels"] = positions(symbols, described["node_labels"]["values"])
    if "node_categories" in described:
        columns = described["node_categories"]["columns"]
        found = [positions(list(map(COLUMNS[column["name"]], atoms)), column["values"]) for column in columns]
        inputs["node_categories"] = np.stack(found, axis=1)
    if "edge_labels" in described:
        names = [bond.GetBondType().name.lower() for bond in bonds]
        inputs["edge_labels"] = positions(2 * names, described["edge_labels"]["values"])
    if "pair_index" in described:  # a model with sopool-pairs
        found = [pairs_of(molecule, described["pair_index"]["distances"]) for molecule in molecules]
        shifted = [pairs + start for (pairs, _), start in zip(found, ptr[:-1], strict=True)]
        inputs["pair_index"] = np.concatenate(shifted, axis=1)
        inputs["pair_distance"] = np.concatenate([distance for _, distance in found])
    unknown = described.keys() - inputs.keys()
    if unknown:
        sys.exit(f"error: the model needs {', '.join(sorted(unknown))}, which SMILES do not have.")
    return inputs


def readable(source: str) -> Iterator[tuple[str, Chem.Mol]]:
    """Yield the SMILES and the molecule of each line of a file; report those that cannot be read."""
    for number, line in enumerate(Path(source).read_text("utf-8").splitlines(), 1):
        if line.strip():
            smiles = line.split()[0]
            molecule = read_molecule(smiles)
            if molecule is None:
                print(f"warning: skipped line {number}: RDKit cannot read the SMILES {smiles!r}.", file=sys.stderr)
            else:
                yield smiles, molecule


def main(model: str, source: str, together: int = 256) -> None:
    """Print the prediction for each line of a file of SMILES, ``together`` molecules at a time."""
    session = onnxruntime.InferenceSession(model)
    about = json.loads(session.get_modelmeta().custom_metadata_map["sopool"])
    classes = about.get("classes")  # None if the model predicts targets: several labels or numbers
    names = classes or about["targets"]
    outputs = list(about["outputs"])
    kind = {"probabilities": "probability", "predictions": "predicted"}[outputs[0]]
    columns = ["prediction"] * bool(classes) + [f"{kind}_{name}" for name in names]
    columns += ["uncertainty"] if classes else [f"uncertainty_{name}" for name in names]
    print(",".join(["smiles", *columns]))
    rows = readable(source)
    while some := list(islice(rows, together)):
        inputs = model_inputs([molecule for _, molecule in some], about["inputs"])
        for (one, _), values, uncertainty in zip(some, *session.run(outputs, inputs), strict=True):
            best = [classes[values.argmax()]] if classes else []
            print(one, *best, *(f"{number:.6g}" for number in [*values, *np.atleast_1d(uncertainty)]), sep=",")


if __name__ == "__main__":
    RDLogger.DisableLog("rdApp.error")  # unreadable molecules are reported above
    main(*sys.argv[1:])
