"""Train a classifier on SMILES from a CSV file and predict new molecules, with an uncertainty.

You learn how to load molecules with ``load``, fit a ``GraphClassifier`` and predict a list of SMILES. The script first
writes its own input from the data set SOLUBILITY, which ships with the package. The classes are low, medium and high
solubility in water. The files molecules.csv and new.csv stay in the current folder, so that you can try the command
line on them (docs/five_minutes_molecules.md).

Training is short, so the accuracy is lower than that of ``sopool fit``. Needs RDKit: pip install 'sopool[chem]'.
"""

import csv
from pathlib import Path

import networkx as nx
from rdkit import Chem, RDLogger

from sopool import GraphClassifier
from sopool.data import PackedGraphs, load, to_networkx


def smiles_of(graph: nx.Graph) -> str:
    """Return the SMILES of a molecular graph."""
    molecule = Chem.RWMol()
    for _, symbol in graph.nodes(data="label"):
        molecule.AddAtom(Chem.Atom(symbol))
    for one, other, bond in graph.edges(data="label"):
        molecule.AddBond(one, other, Chem.BondType.names[bond.upper()])
    return Chem.MolToSmiles(molecule)


def write_csv(path: Path, molecules: PackedGraphs, first: int) -> None:
    """Write one line per molecule, except those that need charges or hydrogens, which the graphs do not store."""
    RDLogger.DisableLog("rdApp.error")
    graphs = enumerate(to_networkx(molecules), first)
    rows = [(f"M{number}", smiles_of(graph), graph.graph["label"]) for number, graph in graphs]
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "smiles", "solubility"])
        lines.writerows(row for row in rows if Chem.MolFromSmiles(row[1]))


# Step 1: write the two CSV files. With your own data, start at step 2.
known = Path("molecules.csv")
new = Path("new.csv")
solubility = load("SOLUBILITY")
write_csv(known, solubility[:1025], 1)
write_csv(new, solubility[1025:], 1026)

# Step 2: load the molecules and train an ensemble of three networks.
model = GraphClassifier(n_models=3, epochs=6, random_state=0)
model.fit(load(known, label_column="solubility"))

# Step 3: predict. The uncertainty is the standard deviation of the predicted class's probability over the networks.
with new.open(encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
found = model.predict_with_uncertainty([row["smiles"] for row in rows])
print(f"{'SMILES':<12} {'predicted':<9}  uncertainty  measured")
for row, label, uncertainty in zip(rows[:5], found.labels, found.uncertainty, strict=False):
    print(f"{row['smiles']:<12} {label:<9}  {uncertainty:<11.2f}  {row['solubility']}")

# Step 4: compare all predictions with the measured classes.
correct = sum(row["solubility"] == label for row, label in zip(rows, found.labels, strict=True))
print(f"{correct} of {len(rows)} new molecules are predicted correctly.")
