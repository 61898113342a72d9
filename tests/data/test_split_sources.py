"""What a split reads from tables of molecules and SDF files."""

import warnings

import numpy as np
import pytest
from rdkit import Chem

from sopool.data import DataError, load
from sopool.data.division import Division
from sopool.data.formats.scaffolds import scaffold_of
from sopool.errors import SettingError

ROWS = [
    ("Cc1ccccc1", 0, "a", "2001-01-01"),
    ("CCc1ccccc1", 1, "b", "2001-01-03"),
    ("not a molecule", 0, "c", "never"),
    ("CCO", 1, "a", "2001-01-02"),
    ("OCC", 0, "b", "2001-01-02T12:00:00"),
    ("CCCC", 1, "d", "2000-12-31"),
]
GOOD = [0, 1, 3, 4, 5]


def groups_of(store):
    return np.unique(Division.of(store).groups, return_inverse=True)[1].tolist()


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "molecules.csv"
    path.write_text("smiles,label,lab,day\n" + "".join(f"{','.join(map(str, row))}\n" for row in ROWS))
    return path


@pytest.fixture
def sdf(tmp_path):
    path = tmp_path / "molecules.sdf"
    with Chem.SDWriter(str(path)) as writer:
        for smiles, label, lab, _ in (ROWS[i] for i in GOOD):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("label", str(label))
            molecule.SetProp("lab", lab)
            writer.write(molecule)
    return path


@pytest.fixture(autouse=True)
def _no_warnings_of_skipped_molecules():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*1 of 6 molecules skipped")
        yield


def test_skipped_molecules_do_not_shift_the_values(table):
    by_lab = load(table, split="group:lab")
    assert by_lab.labels.tolist() == [ROWS[i][1] for i in GOOD]
    assert groups_of(by_lab) == groups_of(by_lab[[0, 1, 2, 3, 4]])
    first, second, third, fourth, fifth = Division.of(by_lab).groups.tolist()
    assert first == third != second == fourth != fifth
    times = Division.of(load(table, split="time:day")).times
    assert np.argsort(times).tolist() == [4, 0, 2, 3, 1]


def test_molecules_of_a_scaffold_are_a_group(table, sdf):
    by_scaffold = load(table, split="scaffold")
    first, second, third, fourth, fifth = Division.of(by_scaffold).groups.tolist()
    assert first == second
    assert third == fourth  # the same molecule, without rings
    assert len({first, third, fifth}) == 3
    assert Division.of(load(sdf, split="scaffold")).key == Division.of(by_scaffold).key


def test_properties_of_an_sdf_file(table, sdf):
    assert Division.of(load(sdf, split="group:lab")).key == Division.of(load(table, split="group:lab")).key
    with pytest.raises(DataError, match="record 1: the column 'nothing' is empty"):
        load(sdf, split="group:nothing")


def test_a_split_does_not_change_the_graphs(table):
    plain = load(table)
    assert plain.split_values is None
    divided = load(table, split="scaffold")
    for name, tensor in plain.tensors().items():
        assert tensor.equal(divided.tensors()[name])
    assert divided.split_columns == ("scaffold",)


@pytest.mark.parametrize(
    ("smiles", "scaffold"),
    [
        ("Cc1ccccc1", "c1ccccc1"),
        ("O=C(c1ccccc1)c1ccncc1", "O=C(c1ccccc1)c1ccncc1"),
        ("C[C@H]1CC[C@@H](O)CC1", "C1CCCCC1"),
        ("C[C@H](N)C(=O)O", "no rings: CC(N)C(=O)O"),
        ("[Na+].[Cl-]", "no rings: [Cl-].[Na+]"),
        ("c1ccccc1.CCO", "c1ccccc1"),
    ],
)
def test_scaffolds(smiles, scaffold):
    assert scaffold_of(Chem.MolFromSmiles(smiles)) == scaffold


@pytest.mark.parametrize("split", ["scaffold", "group:lab", "time:day", "column:set"])
def test_sources_without_molecules(split):
    with pytest.raises(SettingError, match=f"split={split} needs molecules in a table"):
        load("MUTAG", split=split)
    assert load("MUTAG", split="random").split_values is None
