from collections import Counter

import pytest
import torch

from sopool.data import MoleculeFeatures, load, save_graphs
from sopool.data.formats import atoms
from sopool.data.formats.atoms import ATOM_COLUMNS, BOND_COLUMNS
from sopool.data.formats.molecule_features import ELEMENTS, LEVELS, chosen_features, needed_features
from sopool.data.formats.molecule_rows import graph_of_molecule
from sopool.data.formats.molecules import read_sdf, read_smiles_csv, smiles_to_store
from sopool.data.pack import pack
from sopool.data.sources.find_graph import find_graph
from sopool.data.sources.stream import stream_graphs
from sopool.errors import DataError, SettingError
from tests.helpers.data_graphs import as_lists
from tests.helpers.random_smiles import sample, shuffled
from tests.helpers.shared import needs_molecules

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit, the extra chem")
from rdkit.Chem import rdDepictor, rdDistGeom  # noqa: E402

ALL = LEVELS["all"]
NEEDED = {"node_labels": None, "node_categories": tuple(ATOM_COLUMNS), "edge_categories": tuple(BOND_COLUMNS)}
MOLECULES = (
    "CC(=O)Oc1ccccc1C(=O)[O-].[Na+]",
    "C[C@H](N)C(=O)N[C@@H](CO)C(=O)O",
    "C[C@H]1CC[C@@H](C)CC1",
    "O[C@H](C)[C@@H](O)[C@H](C)O",
    "C/C=C/C=C\\C",
    "C1CCCCCCC/C=C/1",
    "c1ccc2[nH]ccc2c1",
    "N->[Pt](<-N)(Cl)Cl",
    "C[N+](C)(C)CC(=O)[O-]",
    "[2H]C([2H])([H])O[H]",
    "*c1ccncc1",
    "C12C3C4C1C5C2C3C45",
    "[CH3]",
    "[Fe]",
    "CC=[N+](/[O-])C",
)


def graph_of(smiles, features=ALL):
    return smiles_to_store([smiles], features=features)[0]


def columns(smiles):
    """The features of a molecule by name, those of its edges once for each bond."""
    (one,) = as_lists(graph_of(smiles))
    bonds = one.get("edge_categories", {})
    return one["node_categories"] | {name: values[::2] for name, values in bonds.items()}


def as_set(graph, order=None):
    """A graph of one molecule without the order of its edges; node i is node ``order[i]`` of another one."""
    (one,) = as_lists(graph)
    order = list(range(one["nodes"])) if order is None else order
    nodes = zip(order, one["node_labels"], *one.get("node_categories", {}).values(), strict=True)
    edges = zip(
        ((order[a], order[b]) for a, b in one["edges"]),
        one["edge_labels"] or [],
        *one.get("edge_categories", {}).values(),
        strict=True,
    )
    return sorted(nodes), Counter(edges)


def check_order(smiles):
    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    Chem.SanitizeMol(molecule)
    Chem.AssignStereochemistry(molecule, cleanIt=True)
    other, order = shuffled(molecule)
    assert as_set(graph_of(smiles)) == as_set(graph_of(other), order), (smiles, other)


@pytest.mark.parametrize("smiles", MOLECULES)
def test_the_order_of_the_atoms_makes_no_difference(smiles):
    for _ in range(5):
        check_order(smiles)


@needs_molecules
@pytest.mark.parametrize("name", ["BBBP", "ClinTox", "Tox21", "HIV", "ZINC-29k"])
def test_the_order_makes_no_difference_in_real_molecules(name):
    read = 0
    for smiles in sample(name, 60):
        store, _ = smiles_to_store(["C", smiles])
        if len(store) == 2:
            check_order(smiles)
            read += 1
    assert read >= 50


def test_values_of_atoms():
    found = columns("C[C@H](N)c1cc[nH]c1.[Cl-].C#C")
    assert found["degree"] == [1, 3, 1, 3, 2, 2, 2, 2, 0, 1, 1]
    assert found["charge"] == [0] * 8 + [-1, 0, 0]
    assert found["hydrogens"] == [3, 1, 2, 0, 1, 1, 1, 1, 0, 1, 1]
    assert found["hybridization"] == ["sp3"] * 3 + ["sp2"] * 5 + ["sp3", "sp", "sp"]
    assert found["aromatic"] == ["no"] * 3 + ["yes"] * 5 + ["no"] * 3
    assert found["ring size"] == [0] * 3 + [5] * 5 + [0] * 3
    assert found["chirality"] == ["none", "S"] + ["none"] * 9


def test_values_of_bonds():
    found = columns("C/C=C/C=O")
    assert found["conjugated"] == ["no", "yes", "yes", "yes"]
    assert found["stereo"] == ["none", "E", "none", "none"]
    assert found["in ring"] == ["no"] * 4
    assert columns("C/C=C\\C1CC1")["stereo"][1] == "Z"
    assert columns("CC1CC1")["in ring"] == ["no", "yes", "yes", "yes"]


@pytest.mark.parametrize("size", range(3, 13))
def test_the_size_of_the_smallest_ring(size):
    ring = f"C1{'C' * (size - 1)}1"
    assert columns(ring)["ring size"] == [min(size, 9)] * size
    fused = columns(f"C12CC1{'C' * (size - 2)}2")["ring size"]
    assert fused[:3] == [3] * 3
    assert set(fused[3:]) <= {min(size, 9)}


def test_mirror_images_differ():
    left, right = (columns(f"C[{mark}H](N)C(=O)O") for mark in ("C@", "C@@"))
    assert (left["chirality"][1], right["chirality"][1]) == ("S", "R")
    assert left | {"chirality": None} == right | {"chirality": None}
    assert columns("CC(N)C(=O)O")["chirality"] == ["none"] * 6
    assert columns("C[C@H](C)O")["chirality"] == ["none"] * 4  # no stereocenter
    assert columns("O[C@H](C)[C@@H](O)[C@H](C)O")["chirality"][3] == "s"


def test_labels_that_take_too_long_are_left_out(monkeypatch):
    monkeypatch.setattr(atoms, "MAX_COMPARISONS", 1)
    assert columns("C[C@H](N)C(=O)O/C=C/C")["chirality"] == ["none"] * 9
    assert columns("C[C@H](N)C(=O)O/C=C/C")["stereo"] == ["none"] * 8


@pytest.mark.parametrize("space", [2, 3])
@pytest.mark.parametrize("v3000", [False, True])
def test_sdf_gives_the_features_of_the_smiles(tmp_path, space, v3000):
    smiles = ["C[C@H](N)C(=O)[O-]", "C/C=C\\C[C@H](F)Cl", "C[C@H]1CC[C@@H](C)CC1", "c1cc[nH]c1"]
    records = []
    for one in smiles:
        molecule = Chem.MolFromSmiles(one)
        if space == 2:
            rdDepictor.Compute2DCoords(molecule)
        else:
            molecule = Chem.AddHs(molecule)
            rdDistGeom.EmbedMolecule(molecule, randomSeed=1)
            molecule = Chem.RemoveHs(molecule)
        records.append(Chem.MolToMolBlock(molecule, forceV3000=v3000) + "$$$$\n")
    path = tmp_path / "a.sdf"
    path.write_text("".join(records))
    found, _ = read_sdf(path, labelled=False, features="all")
    expected, _ = smiles_to_store(smiles, features="all")
    assert list(map(as_set, found)) == list(map(as_set, expected))


@pytest.mark.parametrize("level", LEVELS)
def test_levels(tmp_path, level):
    path = tmp_path / "a.csv"
    path.write_text("smiles,label\nC[N+](=O)[O-],1\nc1ccccc1,0\n")
    store = load(path, features=level)
    chosen = LEVELS[level]
    assert tuple(column.name for column in store.node_category_columns) == chosen.atoms
    assert tuple(column.name for column in store.edge_category_columns) == chosen.bonds
    assert as_lists(store) == as_lists(read_smiles_csv(path, features=chosen)[0])
    bare = pack([graph_of_molecule(Chem.MolFromSmiles(one)) for one in ("C[N+](=O)[O-]", "c1ccccc1")])
    assert store.node_labels.tolist() == bare.node_labels.tolist()
    assert store.edge_labels.tolist() == bare.edge_labels.tolist()


def test_the_default_reads_all_features_of_atoms(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles,label\nC[N+](=O)[O-],1\n")
    for store in (load(path), smiles_to_store(["C[N+](=O)[O-]"])[0]):
        assert [column.name for column in store.node_category_columns] == list(LEVELS["atoms"].atoms)
        assert store.edge_categories is None
    assert load(path, features="element").node_categories is None
    assert load(path, descriptors=["rdkit2d"]).node_categories is not None
    assert chosen_features("element") == ELEMENTS == MoleculeFeatures()


def test_features_survive_a_file(tmp_path):
    store = graph_of(MOLECULES[0])
    save_graphs(store, tmp_path / "a.graphs")
    assert as_lists(load(tmp_path / "a.graphs")) == as_lists(store)


def test_unknown_names():
    with pytest.raises(SettingError, match=r"there is no choice of features 'elements'\. Did you mean 'element'"):
        smiles_to_store(["C"], features="elements")
    with pytest.raises(SettingError, match=r"no feature of atoms 'charges'\. Did you mean 'charge'"):
        MoleculeFeatures(("charges",))
    with pytest.raises(SettingError, match="no feature of bonds 'charge'"):
        MoleculeFeatures((), ("charge",))


def test_sources_without_molecules_have_no_features(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"nodes": 1, "edges": []}\n')
    for source in (path, "MUTAG"):
        with pytest.raises(SettingError, match="features of molecules were chosen, but this source has none"):
            load(source, features="all")


@pytest.mark.parametrize("features", [ELEMENTS, ALL, MoleculeFeatures(("charge", "degree"), ("stereo",))])
def test_the_columns_that_a_model_needs_say_what_to_read(features):
    store = graph_of("C[C@H](N)C(=O)[O-]", features)
    fields = {
        "node_labels": None,
        "node_categories": tuple(column.name for column in store.node_category_columns),
        "edge_categories": tuple(column.name for column in store.edge_category_columns),
    }
    assert needed_features(fields) == features
    assert needed_features({"node_attributes": 7}) == ELEMENTS
    assert needed_features({"node_categories": ("charge", "my own")}) == MoleculeFeatures(("charge",))


def test_streams_have_what_a_model_needs(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,smiles\na,C[N+](=O)[O-]\nb,c1cc[nH]c1\nc,[Na+].[Cl-]\n")
    (chunk,) = stream_graphs(path, NEEDED)
    expected = smiles_to_store(["C[N+](=O)[O-]", "c1cc[nH]c1", "[Na+].[Cl-]"], features="all")[0]
    assert [one["node_categories"] for one in as_lists(chunk.graphs)] == [
        one["node_categories"] for one in as_lists(expected)
    ]
    (chunk,) = stream_graphs(path, {"node_labels": None, "node_categories": ("charge",)})
    assert [column.name for column in chunk.graphs.node_category_columns] == ["charge"]
    assert find_graph(path, "b", NEEDED).graph.edge_category_columns[0].name == "conjugated"
    assert find_graph(path, "b", {"node_labels": None}).graph.node_categories is None


def test_a_file_without_a_column_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles\nCC\n")
    needed = {"node_categories": ("charge", "my own")}
    (chunk,) = stream_graphs(path, needed)
    reason = "the graph has no column of node categories 'my own', but the graphs that the model was trained on have."
    assert [bad.reason for bad in chunk.bad] == [reason]
    with pytest.raises(DataError, match="no column of node categories 'my own'"):
        find_graph(path, "2", needed)


@needs_molecules
def test_all_features_take_little_memory():
    """60 MB for the 41,127 molecules of HIV, also for a twentieth of them that is as large on average."""
    smiles = sample("HIV", 2000)
    store, _ = smiles_to_store(smiles, features="all")
    assert store.node_categories.dtype == store.edge_categories.dtype == torch.uint8
    assert sum(tensor.nbytes for tensor in store.tensors().values()) / len(store) < 60e6 / 41127
