"""The rules of docs/formats.md for what is not a plain organic molecule."""

import pytest

from sopool.data.formats.molecules import read_sdf, smiles_to_store
from tests.helpers.data_graphs import as_lists

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit, the extra chem")

MOLFILE = """
  made by hand

  2  1  {lists}  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 C   0  0
    1.0000    0.0000    0.0000 {atom} 0  0
  1  2  {bond}  0
{more}M  END
$$$$
"""


def read(smiles):
    """A molecule with its features by name."""
    (one,) = as_lists(smiles_to_store([smiles], features="all")[0])
    return one | one["node_categories"]


@pytest.fixture
def from_molfile(tmp_path):
    """A function that reads carbon with a bond to another atom from an SDF file."""

    def make(atom="O", bond=1, lists=0, more=""):
        path = tmp_path / "a.sdf"
        path.write_text(MOLFILE.format(atom=atom.ljust(3), bond=bond, lists=lists, more=more))
        (one,) = as_lists(read_sdf(path, labelled=False, features="all")[0])
        return one

    return make


def test_all_fragments_are_kept_without_edges_between_them():
    salt = read("CC(=O)[O-].[Na+].O")
    assert salt["node_labels"] == ["C", "C", "O", "O", "Na", "O"]
    assert {node for edge in salt["edges"] for node in edge} == {0, 1, 2, 3}
    assert salt["charge"] == [0, 0, 0, -1, 1, 0]


def test_metals_are_atoms_with_the_bonds_that_are_written():
    bound = read("Cl[Pt](Cl)(N)N")
    assert bound["node_labels"] == ["Cl", "Pt", "Cl", "N", "N"]
    assert set(bound["edge_labels"]) == {"single"}
    assert read("[Cl-].[Cl-].N.N.[Pt+2]")["edges"] == []
    assert read("[Fe]")["node_labels"] == ["Fe"]


def test_dative_bonds_have_their_type_in_both_directions(from_molfile):
    given = read("N->[Fe]")
    assert given["edges"] == [[0, 1], [1, 0]]
    assert given["edge_labels"] == ["dative", "dative"] == read("[Fe]<-N")["edge_labels"]
    assert from_molfile("Fe", 9)["edge_labels"] == ["dative", "dative"]


@pytest.mark.parametrize("smiles", ["*C", "[*]C", "[*:7]C", "[5*]C", "*C |$R1;$|"])
def test_wildcards_have_the_element_star(smiles):
    assert read(smiles)["node_labels"] == ["*", "C"]


@pytest.mark.parametrize("symbol", ["*", "A", "Q", "X", "M", "R#", "Pol", "LP"])
def test_wildcards_of_files_too(from_molfile, symbol):
    assert from_molfile(symbol)["node_labels"] == ["C", "*"]


def test_a_list_of_elements_is_the_first_one(from_molfile):
    assert from_molfile("L", lists=1, more="  2 F    2   7   8\n")["node_labels"] == ["C", "N"]


@pytest.mark.parametrize("bond", [5, 6, 7, 8])
def test_bonds_of_queries_are_unspecified(from_molfile, bond):
    assert from_molfile("O", bond)["edge_labels"] == ["unspecified", "unspecified"]
    assert read("C~O")["edge_labels"] == ["unspecified", "unspecified"]


def test_hydrogens_are_nodes_where_they_are_written_and_counted_anyway():
    written, implied = read("[H]O[H]"), read("O")
    assert (written["node_labels"], implied["node_labels"]) == (["H", "O", "H"], ["O"])
    assert written["hydrogens"][1] == implied["hydrogens"][0] == 2


def test_isotopes_and_numbers_of_atoms_are_not_read(from_molfile):
    assert read("[13CH3][2H]") == read("C[H]")
    assert read("[CH3:4]O") == read("CO")
    assert from_molfile("D")["node_labels"] == ["C", "H"]


def test_radicals_differ_by_their_hydrogens_only():
    radical, whole = read("C[CH2]"), read("CC")
    assert (radical["hydrogens"], whole["hydrogens"]) == ([3, 2], [3, 3])
    assert {name: one for name, one in radical.items() if name not in ("hydrogens", "node_categories")} == {
        name: one for name, one in whole.items() if name not in ("hydrogens", "node_categories")
    }


def test_aromaticity_is_found_however_rings_are_written():
    assert read("C1=CC=CC=C1") == read("c1ccccc1")
    assert set(read("C1=CC=CC=C1")["edge_labels"]) == {"aromatic"}


@pytest.mark.parametrize("smiles", ["c1cccc1", "CC(C)(C)(C)C", "C1CC", "[Xx]", "", "F[F]F"])
def test_what_cannot_be_is_skipped_with_a_reason(smiles):
    store, bad = smiles_to_store(["C", smiles], features="all")
    assert len(store) == 1
    assert bad[0].row == 1
    assert bad[0].reason.endswith(".")
