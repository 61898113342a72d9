import numpy as np
import pytest
import torch

from sopool.data import MoleculeFeatures, load
from sopool.data.formats import descriptors
from sopool.data.formats.descriptors import KINDS, UNSTABLE, calculator, descriptor_names, is_descriptor
from sopool.data.formats.molecule_features import needed_features
from sopool.data.formats.molecule_rows import graph_of_molecule
from sopool.data.formats.molecules import read_sdf, smiles_to_store
from sopool.data.pack import Graph, NamedNumbers, pack
from sopool.data.sources.find_graph import find_graph
from sopool.data.sources.stream import stream_graphs
from sopool.errors import DataError, SettingError
from tests.helpers.random_smiles import sample, shuffled
from tests.helpers.shared import needs_molecules

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit, the extra chem")
from rdkit.Chem import Descriptors, rdFingerprintGenerator  # noqa: E402

EVERY = tuple(KINDS)
MOLECULES = (
    "CC(=O)Oc1ccccc1C(=O)[O-].[Na+]",
    "C[C@H](N)C(=O)N[C@@H](CO)C(=O)O",
    "C/C=C/C1CC1",
    "N->[Pt](<-N)(Cl)Cl",
    "*c1ccncc1",
    "C",
    "[Fe]",
)


def numbers(smiles, kinds=EVERY):
    store = smiles_to_store([smiles], descriptors=kinds)[0]
    return dict(zip(store.graph_attribute_names, store.graph_attributes[0].tolist(), strict=True))


def check_order(smiles):
    """Sums are rounded differently in another order."""
    molecule = Chem.MolFromSmiles(smiles)
    first, second = (numbers(one) for one in (smiles, shuffled(molecule)[0]))
    np.testing.assert_allclose(list(first.values()), list(second.values()), rtol=1e-4, atol=1e-4, err_msg=smiles)


@pytest.mark.parametrize("smiles", MOLECULES)
def test_the_order_of_the_atoms_makes_no_difference(smiles):
    check_order(smiles)


@needs_molecules
@pytest.mark.parametrize("name", ["ClinTox", "HIV"])
def test_the_order_makes_no_difference_in_real_molecules(name):
    molecules = [smiles for smiles in sample(name, 15) if len(smiles_to_store(["C", smiles])[0]) == 2]
    assert len(molecules) > 10
    for smiles in molecules:
        check_order(smiles)


@pytest.mark.parametrize("smiles", MOLECULES)
def test_descriptors_are_those_of_rdkit(smiles):
    found = numbers(smiles, ["rdkit2d"])
    expected = Descriptors.CalcMolDescriptors(Chem.MolFromSmiles(smiles))
    assert set(found) == {f"rdkit2d {name}" for name in set(expected) - UNSTABLE}
    given = [expected[name.removeprefix("rdkit2d ")] for name in found]
    np.testing.assert_allclose(list(found.values()), np.array(given, np.float32), rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "generator"),
    [
        ("morgan", rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024)),
        ("atom-pairs", rdFingerprintGenerator.GetAtomPairGenerator(fpSize=1024)),
    ],
)
def test_fingerprints_are_counts(kind, generator):
    found = numbers("CCCCO.CCCC", [kind])
    assert list(found) == [f"{kind} {place}" for place in range(1024)]
    expected = generator.GetCountFingerprint(Chem.MolFromSmiles("CCCCO.CCCC")).GetNonzeroElements()
    assert {int(name.split()[-1]): value for name, value in found.items() if value} == expected
    assert max(expected.values()) > 1


def test_hydrogens_that_are_written_make_no_difference(tmp_path):
    molecule = Chem.MolFromSmiles("C[C@H](N)C(=O)O")
    path = tmp_path / "a.sdf"
    path.write_text("".join(Chem.MolToMolBlock(one) + "$$$$\n" for one in (molecule, Chem.AddHs(molecule))))
    store, _ = read_sdf(path, labelled=False, descriptors=EVERY)
    assert store.sizes.tolist() == [6, 13]
    torch.testing.assert_close(*store.graph_attributes, equal_nan=True)


def test_what_cannot_be_computed_is_missing(monkeypatch):
    assert np.isnan(numbers("*C", ["rdkit2d"])["rdkit2d BCUT2D_MWHI"])
    answers = iter([float("inf"), 1e39, float("nan"), 7.0])

    def answer(molecule):
        return next(answers)

    def fail(molecule):
        raise ZeroDivisionError

    for name, function in (("MolWt", answer), ("qed", fail)):
        monkeypatch.setattr(Descriptors, name, function)
    compute = descriptors._rdkit2d(["MolWt", "qed"])
    found = [compute(Chem.MolFromSmiles("C")) for _ in range(4)]
    np.testing.assert_equal(found, [[np.nan, np.nan]] * 3 + [[7.0, np.nan]])


def test_kinds_are_combined_in_order():
    both = numbers("CCO", ["morgan", "rdkit2d"])
    assert both == numbers("CCO", ["morgan"]) | numbers("CCO", ["rdkit2d"])
    assert next(iter(both)) == "morgan 0"
    assert numbers("CCO", ["morgan", "morgan"]) == numbers("CCO", ["morgan"])


def test_some_descriptors_in_any_order():
    names = ("atom-pairs 7", "rdkit2d MolWt", "morgan 33", "rdkit2d TPSA", "morgan 1")
    every = numbers("CCO")
    found = calculator(names)(Chem.MolFromSmiles("CCO"))
    assert tuple(found) == names
    np.testing.assert_equal(found.numbers.tolist(), [every[name] for name in names])
    graph = graph_of_molecule(Chem.MolFromSmiles("CCO"), MoleculeFeatures(descriptors=names))
    assert dict(graph.graph_attributes) == {name: every[name] for name in names}


def test_a_model_says_which_descriptors_it_needs(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles\nCCO\nc1ccccc1\nx\n")
    names = ("rdkit2d TPSA", "morgan 5")
    fields = {"node_labels": None, "graph_attributes": names}
    assert needed_features(fields) == MoleculeFeatures(descriptors=names)
    (chunk,) = stream_graphs(path, fields)
    assert chunk.graphs.graph_attribute_names == names
    expected = [[numbers(one)[name] for name in names] for one in ("CCO", "c1ccccc1")]
    assert chunk.graphs.graph_attributes.tolist() == expected
    assert find_graph(path, "2", fields).graph.graph_attribute_names == names
    with pytest.raises(SettingError, match="there is no column 'heat'"):
        find_graph(path, "2", {"graph_attributes": ("heat", *names)})


def test_a_model_reads_its_columns_of_a_table_beside_descriptors(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("heat,smiles\n20.5,CCO\n,c1ccccc1\n")
    names = ("rdkit2d TPSA", "heat")
    (chunk,) = stream_graphs(path, {"node_labels": None, "graph_attributes": names})
    assert chunk.graphs.graph_attribute_names == names
    found = chunk.graphs.graph_attributes
    assert found[:, 0].tolist() == [numbers(one)["rdkit2d TPSA"] for one in ("CCO", "c1ccccc1")]
    assert found[0, 1] == 20.5
    assert found[1, 1].isnan()
    together = load(path, labelled=False, graph_columns=["heat"], descriptors=["rdkit2d"])
    assert together.graph_attribute_names[0] == "heat"
    assert together.graph_attributes.shape == (2, 1 + len(descriptor_names(["rdkit2d"])))


def test_names():
    assert all(map(is_descriptor, descriptor_names(EVERY)))
    assert not any(map(is_descriptor, ("temperature", "morgan", "rdkit2d", "MolWt", "", "morganite 7")))
    assert len(set(descriptor_names(EVERY))) == len(descriptor_names(EVERY)) > 2 * 1024 + 150


def test_unknown_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles,label\nC,1\n")
    with pytest.raises(SettingError, match=r"no kind of descriptors 'ecfp'. Known: rdkit2d, morgan, atom-pairs"):
        load(path, descriptors=["ecfp"])
    with pytest.raises(SettingError, match=r"descriptors='morgan' is a string, expected a list such as \['morgan'\]"):
        load(path, descriptors="morgan")
    with pytest.raises(SettingError, match=r"features of molecules were chosen, but this source has none"):
        load("MUTAG", descriptors=["morgan"])
    with pytest.raises(SettingError, match=r"RDKit \S+ has no descriptor 'Magic': install a version"):
        load(path, features=MoleculeFeatures(descriptors=("rdkit2d Magic",)))


def test_numbers_with_shared_names_are_packed_like_mappings():
    rows = [[1.5, float("nan")], [-2.0, 0.25]]
    shared = {"a": 0, "b": 1}
    short = [NamedNumbers(shared, np.array(row, np.float32)) for row in rows]
    long = [dict(zip("ab", row, strict=True)) for row in rows]
    turned = NamedNumbers({"b": 0, "a": 1}, np.array(rows[1][::-1], np.float32))
    assert dict(short[1]) == long[1] == dict(turned)
    for given in (short, long, [short[0], long[1]], [long[0], short[1]], [short[0], turned]):
        store = pack([Graph(1, graph_attributes=one) for one in given])
        assert store.graph_attribute_names == ("a", "b")
        np.testing.assert_equal(store.graph_attributes.tolist(), rows)
    other = NamedNumbers({"a": 0, "c": 1}, short[0].numbers)
    with pytest.raises(DataError, match="graph 1: graph_attributes name 'c', which the first graph does not have"):
        pack([Graph(1, graph_attributes=one) for one in (short[0], other)])
