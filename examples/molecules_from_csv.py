"""Molecules from a CSV file of SMILES to predictions that say how sure they are.

The files are made first, of molecules that come with the package: is their solubility in water low, medium or high?
They stay where the script is run, to try the command line on. Needs RDKit: pip install 'sopool[chem]'.
"""

import csv
from pathlib import Path

import networkx as nx
from rdkit import Chem, RDLogger

from sopool import GraphClassifier
from sopool.data import PackedGraphs, load, to_networkx


def smiles_of(graph: nx.Graph) -> str:
    """The SMILES of a molecule that is given as a graph."""
    molecule = Chem.RWMol()
    for _, symbol in graph.nodes(data="label"):
        molecule.AddAtom(Chem.Atom(symbol))
    for one, other, bond in graph.edges(data="label"):
        molecule.AddBond(one, other, Chem.BondType.names[bond.upper()])
    return Chem.MolToSmiles(molecule)


def write_csv(path: Path, molecules: PackedGraphs) -> None:
    """A line for each molecule, but for those whose charges or hydrogens the graph does not tell."""
    RDLogger.DisableLog("rdApp.error")
    rows = [(smiles_of(graph), graph.graph["label"]) for graph in to_networkx(molecules)]
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["smiles", "solubility"])
        lines.writerows(row for row in rows if Chem.MolFromSmiles(row[0]))


known = Path("molecules.csv")
new = Path("new.csv")
solubility = load("SOLUBILITY")
write_csv(known, solubility[:1025])
write_csv(new, solubility[1025:])

model = GraphClassifier(n_models=3, epochs=6, random_state=0)
model.fit(load(known, label_column="solubility"))

with new.open(encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
found = model.predict_with_uncertainty([row["smiles"] for row in rows])
for row, label, uncertainty in zip(rows[:5], found.labels, found.uncertainty, strict=False):
    print(f"{row['smiles']:<12} {label:<7} +- {uncertainty:.2f}   measured: {row['solubility']}")
right = sum(row["solubility"] == label for row, label in zip(rows, found.labels, strict=True))
print(f"right on {right} of {len(rows)} new molecules")
