from dataclasses import replace

import pytest

from sopool.data import load
from sopool.data.formats.drawable import molecule_of
from sopool.data.pack import Graph, pack

pytest.importorskip("rdkit")
from rdkit.Chem import BondType, MolFromSmiles, MolToSmiles, SanitizeMol, SmilesParserParams

from sopool.data.formats.molecule_rows import graph_of_molecule
from sopool.data.formats.molecules import smiles_to_store


@pytest.mark.parametrize("smiles", ["CCO", "c1ccccc1C#N", "[Na+].[Cl-]", "[H]O[H]", "C[N+](=O)[O-]", "C"])
def test_a_molecule_comes_back_with_the_same_atoms_and_bonds(smiles):
    graph = smiles_to_store([smiles])[0]
    again = pack([graph_of_molecule(molecule_of(graph))])
    assert [graph.node_label_names[i] for i in graph.node_labels] == [
        again.node_label_names[i] for i in again.node_labels
    ]
    assert bonds(graph) == bonds(again)


@pytest.mark.parametrize(
    "smiles",
    [
        "CCO",
        "c1cc[nH]c1C#N",
        "[Na+].[Cl-]",
        "[H]O[H]",
        "[H][H]",
        "[H]C([H])([H])C",
        "C[N+](=O)[O-]",
        "[Fe+2]",
        "[CH3]",
        "CC(=O)[O-].[NH4+]",
        "*c1ccccc1",
    ],
)
def test_with_charges_and_hydrogens_the_whole_molecule_comes_back(smiles):
    molecule = molecule_of(smiles_to_store([smiles, "CC"], features="atoms")[0][0])
    for bond in molecule.GetBonds():
        for part in (bond, bond.GetBeginAtom(), bond.GetEndAtom()):
            part.SetIsAromatic(bond.GetBondType() == BondType.AROMATIC or part.GetIsAromatic())
    SanitizeMol(molecule)
    settings = SmilesParserParams()
    settings.removeHs = False
    assert MolToSmiles(molecule) == MolToSmiles(MolFromSmiles(smiles, settings))


def test_columns_that_are_not_charges_of_atoms():
    def graph(**columns):
        categories = {name: [value, 0] for name, value in columns.items()}
        return pack([Graph(2, [(0, 1)], node_labels=["C", "N"], node_categories=categories, edge_labels=["single"])])

    assert molecule_of(graph(charge=10**17)) is None
    assert molecule_of(graph(hydrogens=-1)) is None
    assert molecule_of(graph(hydrogens=10**6)) is None
    assert molecule_of(graph(charge="much", color="red")).GetAtomWithIdx(0).GetFormalCharge() == 0


def bonds(graph):
    names = [graph.edge_label_names[code] for code in graph.edge_labels] if graph.num_edges else []
    return sorted(zip(*graph.edge_index.tolist(), names, strict=True))


def test_the_boxed_sets_are_molecules():
    for name in ("MUTAG", "SOLUBILITY"):
        assert molecule_of(load(name)[3]) is not None


@pytest.mark.parametrize(
    ("labels", "kinds", "edges"),
    [
        (["C", "Xx"], ["single"], [[0, 1]]),
        (["C", "N"], ["friend"], [[0, 1]]),
        ([1, 2], ["single"], [[0, 1]]),
        (["C", "N"], ["single"], [[0, 0]]),
    ],
)
def test_what_is_none(labels, kinds, edges):
    assert molecule_of(pack([Graph(2, edges, node_labels=labels, edge_labels=kinds)])) is None


def test_without_labels_it_is_none():
    graph = load("MUTAG")[0]
    assert molecule_of(replace(graph, node_labels=None)) is None
    assert molecule_of(replace(graph, edge_labels=None)) is None
