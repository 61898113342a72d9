"""What a source is decides how it is read, and one function says so."""

import io
import sys
from types import SimpleNamespace

import pytest

from sopool.data import load
from sopool.data.formats.kinds import COLLECTION, KINDS, NAME, STANDARD_INPUT, STDIN_NAME, TEXTS, UNKNOWN, kind_of
from sopool.data.formats.rows import row_options
from sopool.data.sources.stream import stream_graphs
from sopool.errors import SettingError


@pytest.mark.parametrize("suffix", [suffix for suffix in KINDS if suffix])
def test_a_kind_is_known_by_its_suffix(suffix):
    assert kind_of(f"some.v2{suffix}") is kind_of(f"SOME.V2{suffix.upper()}") is KINDS[suffix]
    assert (KINDS[suffix].rows is not None) == (suffix.removesuffix(".gz") in {*TEXTS, ".parquet"})


def test_other_sources(tmp_path):
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert kind_of(folder) is COLLECTION
    assert kind_of("MUTAG") is NAME
    assert kind_of("-") is STANDARD_INPUT
    assert kind_of("a.xlsx") is kind_of("a.zip.gz") is kind_of("a.graphs.gz") is UNKNOWN


def test_how_errors_speak_of_a_row():
    assert kind_of("a.sdf.gz").place("a.sdf.gz") == ("record", "a.sdf.gz")
    assert kind_of("a.smi").place("a.smi") == ("line", "a.smi")
    assert kind_of("a.parquet").place("a.parquet") == ("row", "a.parquet")
    assert kind_of("MUTAG").place("MUTAG") == ("graph", "MUTAG")
    assert kind_of("-").place("-") == ("line", STDIN_NAME)


def test_which_columns_can_be_given():
    kind_of("a.csv").check_columns("a.csv", row_options("mol", "toxic"))
    kind_of("a.csv").check_columns("a.csv", row_options("mol", target_columns=["mass"]))
    kind_of("a.sdf").check_columns("a.sdf", row_options(None, "toxic"))
    kind_of("a.sdf").check_columns("a.sdf", row_options(target_columns=["mass"]))
    with pytest.raises(SettingError, match=r"smiles_column='mol' was given, but this source has no columns"):
        kind_of("a.sdf").check_columns("a.sdf", row_options("mol", "toxic"))


def test_bare_smiles_are_read_wherever_labels_are_not_needed(tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    path = tmp_path / "a.smi"
    path.write_text("CCO ethanol\n\nC\n")
    assert load(path, labelled=False).sizes.tolist() == [3, 1]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    for source in (path, "-"):
        (chunk,) = stream_graphs(source, {})
        assert (chunk.rows, chunk.ids, chunk.graphs.sizes.tolist()) == ([1, 3], ["ethanol", None], [3, 1])
    with pytest.raises(ValueError, match="no column is called smiles"):
        load(path)
