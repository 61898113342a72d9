"""Numbers with fractions are measurements, not classes, wherever labels come from."""

import gzip
from pathlib import Path

import pytest

from sopool.data import DataError, Graph, load, pack
from sopool.data.formats.jsonl import read_jsonl
from sopool.data.formats.molecules import read_sdf, read_smiles_csv, smiles_to_store

NEEDED = "needs RDKit, the extra chem"
REFUSED = "numbers with fractions are for regression, which is not available yet"
ESOL = Path(__file__).resolve().parents[3] / "shared" / "molecules" / "ESOL.csv.gz"


def csv_file(path, labels):
    pytest.importorskip("rdkit", reason=NEEDED)
    path.write_text("smiles,label\n" + "".join(f"C,{label}\n" for label in labels))
    return read_smiles_csv(path)[0]


def sdf_file(path, labels):
    chem = pytest.importorskip("rdkit.Chem", reason=NEEDED)
    methane = chem.MolToMolBlock(chem.MolFromSmiles("C"))
    path.write_text("".join(f"{methane}> <label>\n{label}\n\n$$$$\n" for label in labels))
    return read_sdf(path)[0]


def json_file(path, labels):
    path.write_text("".join(f'{{"nodes": 1, "edges": [], "label": {label}}}\n' for label in labels))
    return read_jsonl(path)


FILES = [csv_file, sdf_file, json_file]


@pytest.mark.parametrize("labels", [["0.5", "1.25"], ["1", "2", "-3.5e-3"], ["1e-7", "2"]])
@pytest.mark.parametrize("read", FILES)
def test_a_file_of_measurements_is_refused(read, labels, tmp_path):
    with pytest.raises(DataError, match=REFUSED):
        read(tmp_path / "file", labels)


@pytest.mark.parametrize("read", FILES[:2])
@pytest.mark.parametrize("labels", [["0.5", "high"], [">10", "7.3"]])
def test_some_measurements_among_words_are_refused_too(read, labels, tmp_path):
    with pytest.raises(DataError, match=REFUSED):
        read(tmp_path / "file", labels)


@pytest.mark.parametrize("read", FILES[:2])
def test_whole_numbers_and_words_stay_classes(read, tmp_path):
    assert read(tmp_path / "file", ["0.0", "1.0", "01"]).classes == (0, 1)
    assert read(tmp_path / "file", ["1.5 mg", "inf", "1.2.3"]).classes == ("1.2.3", "1.5 mg", "inf")


def test_graphs_given_one_by_one_are_refused():
    with pytest.raises(DataError, match=f"the label 0.5 is not a class.*{REFUSED}"):
        pack([Graph(1, label=0.5), Graph(1, label=1)])
    pytest.importorskip("rdkit", reason=NEEDED)
    with pytest.raises(DataError, match=f"and neither are 1 others of 3.*{REFUSED}"):
        smiles_to_store(["C", "CC", "CCC"], [0.5, 1.0, 1.5])


@pytest.mark.skipif(not ESOL.is_file(), reason="the molecules are not beside the repository")
def test_a_real_column_of_measurements_is_refused(tmp_path):
    pytest.importorskip("rdkit", reason=NEEDED)
    path = tmp_path / "esol.csv"
    path.write_bytes(gzip.decompress(ESOL.read_bytes()))
    with pytest.raises(DataError, match=REFUSED):
        load(path, label_column="log_solubility")
