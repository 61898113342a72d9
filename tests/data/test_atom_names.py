from dataclasses import replace

import pytest

from sopool.data import load
from sopool.data.formats.atom_names import node_names
from sopool.data.pack import Graph, pack


def names(smiles, features):
    pytest.importorskip("rdkit")
    from sopool.data.formats.molecules import smiles_to_store

    return node_names(smiles_to_store([smiles], features=features)[0])


def test_atoms_have_the_names_that_chemists_give_them():
    assert names("C[C@H]([NH3+])c1cc[nH]c1.[Fe+2].[S-2].[Cl-]", "all") == [
        "CH3 (sp3)",
        "CH (sp3, S)",
        "NH3+ (sp3)",
        "C (aromatic)",
        "CH (aromatic)",
        "CH (aromatic)",
        "NH (aromatic)",
        "CH (aromatic)",
        "Fe2+",
        "S2-",
        "Cl-",
    ]


def test_names_say_only_what_the_graph_has():
    assert names("[NH4+].[Cl-]", "element") == ["N", "Cl"]
    assert names("[NH4+].[Cl-]", "charge") == ["N+", "Cl-"]
    assert names("*[H]", "all") == ["*H", "H"]


def test_other_graphs_keep_their_labels():
    mutag = load("MUTAG")[0]
    assert node_names(mutag) == [mutag.node_label_names[code] for code in mutag.node_labels]
    assert node_names(replace(mutag, node_labels=None)) == [""] * mutag.num_nodes

    def named(label, **columns):
        return node_names(pack([Graph(1, node_labels=[label], node_categories={n: [v] for n, v in columns.items()})]))

    assert named(7, charge=1) == ["7"]
    assert named("a person", hydrogens=2) == ["a person"]
    assert named("C", charge="high", hydrogens="few", aromatic="no", color="red") == ["C"]
    assert node_names(pack([Graph(0, node_labels=[])])) == []
