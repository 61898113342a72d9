import gzip
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sopool.data.formats.molecule_rows import graph_of_molecule
from sopool.data.formats.molecules import read_sdf, read_smiles_csv, smiles_to_store
from sopool.data.formats.rows import BadRow
from sopool.data.pack import pack
from sopool.errors import DataError, MissingPackageError, SettingError
from tests.helpers.data_graphs import as_lists

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit, the extra chem")
SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def sdf(*records, property="label"):
    """An SDF file of (SMILES, label) pairs, a label of None left out."""
    parts = []
    for smiles, label in records:
        block = Chem.MolToMolBlock(Chem.MolFromSmiles(smiles))
        parts.append(f"{smiles}{block}" + ("" if label is None else f">  <{property}>\n{label}\n\n") + "$$$$\n")
    return "".join(parts)


def test_a_molecule_as_a_graph():
    graph = graph_of_molecule(Chem.MolFromSmiles("C=CC#N"))
    assert graph.num_nodes == 4
    assert graph.node_labels == ["C", "C", "C", "N"]
    assert graph.edges == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    assert graph.edge_labels == ["double", "double", "single", "single", "triple", "triple"]
    assert set(graph_of_molecule(Chem.MolFromSmiles("c1ccccc1")).edge_labels) == {"aromatic"}


@pytest.mark.parametrize("smiles", ["CCO", "Cl", "[Na+].[Cl-]", "*C", "N->[Fe]", "CC(=O)Oc1ccccc1C(=O)O"])
def test_the_graph_is_that_of_the_molecule(smiles):
    molecule = Chem.MolFromSmiles(smiles)
    store, bad = smiles_to_store([smiles])
    assert not bad
    assert store.num_nodes == molecule.GetNumAtoms()
    assert store.num_edges == 2 * molecule.GetNumBonds()
    assert as_lists(store) == as_lists(pack([graph_of_molecule(molecule)]))


def test_hydrogens_are_there_where_they_are_written(tmp_path):
    store, _ = smiles_to_store(["CO", "[H]CO[H]"])
    assert store.sizes.tolist() == [2, 4]
    block = Chem.MolToMolBlock(Chem.AddHs(Chem.MolFromSmiles("C")))
    store, _ = read_sdf(write(tmp_path / "a.sdf", block + "$$$$\n"), labelled=False)
    assert store.sizes.tolist() == [5]


def test_bad_molecules_are_listed_with_their_reasons(capfd):
    store, bad = smiles_to_store(["CCO", "", "C1CC", "CC(C)(C)(C)C", "C", " ", None], [1, 0, 0, 0, None, 1, 1])
    assert len(store) == 1
    assert [(row, text) for row, text, _ in bad] == [
        (1, ""),
        (2, "C1CC"),
        (3, "CC(C)(C)(C)C"),
        (4, "C"),
        (5, " "),
        (6, "None"),
    ]
    reasons = [item.reason for item in bad]
    assert reasons[0] == reasons[4] == reasons[5] == "The SMILES is empty."
    assert reasons[1] == "RDKit cannot parse the molecule."
    assert "valence for atom # 1 C" in reasons[2]
    assert reasons[3] == "The molecule has no label."
    assert capfd.readouterr() == ("", "")  # RDKit writes to both unless it is told not to


def test_labels_of_a_list_stay_as_they_are():
    assert smiles_to_store(["C", "CC"], ["0", "1"])[0].classes == ("0", "1")
    assert smiles_to_store(["C", "CC"], np.array([5, 3]))[0].classes == (3, 5)
    store, bad = smiles_to_store(np.array(["C", "CC"]), np.array([1, np.nan], dtype=object))
    assert store.classes == (1,)
    assert bad == [BadRow(1, "CC", "The molecule has no label.")]
    assert smiles_to_store(["C"])[0].labels is None
    with pytest.raises(DataError, match="1 labels for 2 molecules"):
        smiles_to_store(["C", "CC"], [1])


def test_raise_stops_at_the_first(tmp_path):
    with pytest.raises(DataError, match=r"^molecule 1: RDKit cannot parse the molecule. Found 'x'.$"):
        smiles_to_store(["C", "x", "y"], on_error="raise")
    path = write(tmp_path / "a.csv", "smiles,label\nC,1\n\nx,0\n")
    with pytest.raises(DataError, match=r"a\.csv, line 4: RDKit cannot parse the molecule. Found 'x'") as caught:
        read_smiles_csv(path, on_error="raise")
    assert caught.value.line == 4
    assert caught.value.path == path
    path = write(tmp_path / "a.sdf", sdf(("C", "1"), ("CC", None)))
    with pytest.raises(DataError, match=r"a\.sdf: record 2: The molecule has no label. Found 'CC'"):
        read_sdf(path, on_error="raise")
    with pytest.raises(SettingError, match="on_error must be"):
        smiles_to_store(["C"], on_error="ignore")


def test_nothing_good_is_an_error(tmp_path):
    with pytest.raises(
        DataError, match=r"0 of 2 molecules can be used. The first problem: molecule 0: RDKit cannot parse the molecule"
    ):
        smiles_to_store(["x", "y"])
    with pytest.raises(
        DataError, match=r"0 of 1 molecules can be used. The first problem: .*a\.csv, line 2: The molecule has no label"
    ):
        read_smiles_csv(write(tmp_path / "a.csv", "smiles,label\nC\n"))
    for text in ("smiles,label\n", "smiles,label"):
        with pytest.raises(DataError, match=r"a\.csv: there are no molecules"):
            read_smiles_csv(write(tmp_path / "a.csv", text))
    with pytest.raises(DataError, match="there are no molecules"):
        read_sdf(write(tmp_path / "a.sdf", ""), labelled=False)
    with pytest.raises(DataError, match="no such file"):
        read_sdf(tmp_path / "none.sdf")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(
    "header", ["ID SMILES Class", "y canonical_smiles CLASS", "a smi Activity", "'' Smiles Target"]
)
def test_columns_are_found(tmp_path, delimiter, header):
    lines = [header.split(), ["1", "CCO", "yes"], ["2", "c1ccccc1", "no"]]
    text = "\ufeff" + "\r\n".join(delimiter.join(cells) for cells in lines).replace("'", '"')
    for path in (tmp_path / "mine.csv", tmp_path / "mine.csv.gz"):
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
        store, bad = read_smiles_csv(path)
        assert not bad
        assert store.sizes.tolist() == [3, 6]
        assert [store.classes[code] for code in store.labels] == ["yes", "no"]
        assert store.name == "mine"


def test_columns_by_name(tmp_path):
    path = write(tmp_path / "a.csv", 'mol,label,toxic\nC,x,"1, or so"\nCC,y,0\n')
    store, _ = read_smiles_csv(path, smiles_column="mol", label_column="Toxic", name="tox")
    assert store.classes == ("0", "1, or so")
    assert store.name == "tox"
    with pytest.raises(
        DataError, match=r"a\.csv: no column is called smiles, .*Found: mol, label, toxic.*smiles_column"
    ):
        read_smiles_csv(path)
    with pytest.raises(SettingError, match=r"no column 'molecule'.*Found: mol, label, toxic"):
        read_smiles_csv(path, smiles_column="molecule")
    with pytest.raises(SettingError, match=r"no column 'toxicc'.*Did you mean 'toxic'?"):
        read_smiles_csv(path, "mol", "toxicc")
    with pytest.raises(DataError, match=r"no column is called label, .*Found: smiles. .*label_column"):
        read_smiles_csv(write(tmp_path / "b.csv", "smiles\nC\n"))
    with pytest.raises(DataError, match="'label' names 2 columns"):
        read_smiles_csv(write(tmp_path / "b.csv", "smiles,label,label\nC,1,2\n"))
    with pytest.raises(DataError, match=r"b\.csv: the file is empty"):
        read_smiles_csv(write(tmp_path / "b.csv", "\n\n"))


def test_molecules_without_labels(tmp_path):
    store, bad = read_smiles_csv(write(tmp_path / "a.csv", "smiles\nC\n\nxx\nCC\n"), labelled=False)
    assert store.labels is None
    assert len(store) == 2
    assert bad == [BadRow(4, "xx", "RDKit cannot parse the molecule.")]


@pytest.mark.parametrize("more", ["", 'f,CCCC,1\n"g,CCCCC,0\n'], ids=["never", "by the next one"])
def test_an_open_quote_does_not_lose_what_follows(tmp_path, more):
    path = write(tmp_path / "a.csv", f'name,smiles,label\nd,C,1\n"e,CC,0\nf,CCC,1\n{more}')
    with pytest.raises(DataError, match=r"a\.csv, line 3: not a valid CSV file .*quote"):
        read_smiles_csv(path)


def test_rows_that_are_too_long_or_too_short(tmp_path):
    text = 'smiles,label,note\nC,1,"two\nlines"\nCC,0,2,4-dimethyl\nCCC\nCCCC,1\nCCCCC,0,,,\n'
    store, bad = read_smiles_csv(write(tmp_path / "a.csv", text))
    assert store.sizes.tolist() == [1, 4, 5]
    assert bad == [
        BadRow(4, "CC", "The line has 4 cells, but the first line has 3."),
        BadRow(5, "CCC", "The molecule has no label."),
    ]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1", "0", "-1", "+2"], (-1, 0, 1, 2)),
        (["1", "0", "x", "0"], ("0", "1", "x")),
        (["1.0", "0", "1", "-0.00"], (0, 1)),
        (["01", "2.", "+1.0", "-3.0"], (-3, 1, 2)),
        (["1.0", "0", "x", "1.2.3"], ("0", "1.0", "1.2.3", "x")),
        (["1e5", "0", "1.0", ".0"], (".0", "0", "1.0", "1e5")),
        (["9" * 30, "0", "0", "0"], ("0", "9" * 30)),
        (["²", "0", "0", "0"], ("0", "²")),
    ],
)
def test_labels_of_a_file_are_integers_if_all_are(tmp_path, labels, classes):
    rows = "".join(f"C,{label}\n" for label in labels) + "bad,word\n"
    assert read_smiles_csv(write(tmp_path / "a.csv", "smiles,label\n" + rows))[0].classes == classes
    store, _ = read_sdf(write(tmp_path / "a.sdf", sdf(*(("C", label) for label in labels))))
    assert store.classes == classes


def test_sdf(tmp_path, capfd):
    good = sdf(("CCO", "a b"), ("CC", "c"), ("C", None), property="Activity").replace("$$$$", ">  <ID>\n7\n\n$$$$")
    cut = sdf(("CCO", "x"), property="Activity").replace("  3  2", "  9  2")
    five = sdf(("CC(C)(C)C", "x"), property="Activity").replace("  1  2  1  0", "  1  2  2  0")
    empty = "nothing\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n> <Activity>\nx\n\n$$$$\n"
    path = tmp_path / "mine.sdf"
    for ends in ("\n", "\r\n"):
        path.write_bytes((good + cut + five + empty + "\n\n").replace("\n", ends).encode())
        store, bad = read_sdf(path)
        assert store.sizes.tolist() == [3, 2]
        assert store.classes == ("a b", "c")
        assert store.name == "mine"
        assert [(item.row, item.text) for item in bad] == [(3, "C"), (4, "CCO"), (5, "CC(C)(C)C"), (6, "nothing")]
        assert "valence" in bad[2].reason
        assert bad[3].reason == "The molecule has no atoms."
    assert capfd.readouterr() == ("", "")
    packed = tmp_path / "mine.sdf.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert as_lists(read_sdf(packed)[0]) == as_lists(store)


def test_molecules_without_a_line_between_them_are_bad(tmp_path):
    text = sdf(("CCO", "x"), ("C", "x"), ("CC", "y")).replace("x\n\n$$$$\nCC", "x\n\nCC")
    store, bad = read_sdf(write(tmp_path / "a.sdf", text))
    assert store.sizes.tolist() == [3]
    assert [(one.row, one.text) for one in bad] == [(2, "C")]
    assert "$$$$ is missing" in bad[0].reason


def test_properties_by_name(tmp_path):
    path = write(tmp_path / "a.sdf", sdf(("CCO", "7"), property="Dose"))
    assert read_sdf(path, label_property="dose")[0].classes == (7,)
    with pytest.raises(SettingError, match=r"no property 'doze'.*Found: Dose. Did you mean 'Dose'?"):
        read_sdf(path, label_property="doze")
    with pytest.raises(DataError, match=r"no property is called label, .*Found: none.*Give its name as label_column"):
        read_sdf(write(tmp_path / "b.sdf", sdf(("C", None))))


def test_an_sdf_file_may_end_early_and_hold_other_encodings(tmp_path):
    path = tmp_path / "a.sdf"
    path.write_bytes(sdf(("C", "x"), ("CC", "y")).replace("CC\n", "é\n").removesuffix("\n\n$$$$\n").encode("latin-1"))
    store, bad = read_sdf(path)
    assert store.classes == ("x", "y")
    assert not bad


def test_without_rdkit(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    monkeypatch.delitem(sys.modules, "rdkit.Chem")
    with pytest.raises(MissingPackageError, match=r"reading molecules needs RDKit, .* pip install 'sopool\[chem\]'"):
        smiles_to_store(["C"])
    with pytest.raises(MissingPackageError, match="needs RDKit"):
        read_smiles_csv(write(tmp_path / "a.csv", "smiles,label\nC,1\n"))


def test_the_example_in_the_documentation():
    """Marked ``py``, not ``python``: examples in docs are run with every test, and must not need RDKit."""
    page = Path(__file__).resolve().parents[2] / "docs" / "formats.md"
    if not page.is_file():
        pytest.skip("the documentation is not here")
    (example,) = re.findall(r"```py\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(example, {})


def attempt(read, *arguments, **options):
    """How many molecules were met, or a DataError."""
    try:
        store, bad = read(*arguments, **options)
        return len(store) + len(bad)
    except DataError as error:
        return error


@given(st.lists(st.text(alphabet="CNOcno123()[]=#+-@/\\.%Hl*:~ \x00é\ud800", max_size=12), min_size=1, max_size=5))
def test_any_text_as_smiles(texts):
    assert attempt(smiles_to_store, ["C", *texts]) == 1 + len(texts)


@SHARED_FOLDER
@given(st.one_of(st.binary(max_size=80), st.text(alphabet='smiles,label;\t"\n\r\x00C1', max_size=80).map(str.encode)))
def test_any_bytes_as_csv(tmp_path, content):
    path = tmp_path / "a.csv"
    path.write_bytes(b"smiles,label\nC,1\n" + content)
    result = attempt(read_smiles_csv, path)
    assert isinstance(result, DataError) or result >= 1


@SHARED_FOLDER
@given(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from(b"0123 \n$><MEND-.CV\x00\xff")), max_size=5))
def test_changed_bytes_in_sdf(tmp_path, changes):
    content = bytearray(sdf(("CCO", "x"), ("c1ccccc1N", "y")).encode())
    for place, value in changes:
        content[place % len(content)] = value
    path = tmp_path / "a.sdf"
    path.write_bytes(bytes(content))
    result = attempt(read_sdf, path)
    assert isinstance(result, DataError) or result >= 1
