import contextlib
import gzip
import http.server
import os
import threading
import zipfile

import pytest
from torch_geometric.datasets import TUDataset

from sopool.data.formats.packed import save_graphs
from sopool.data.formats.rows import row_options
from sopool.data.pack import Graph, pack
from sopool.data.sources.cache import cache_folder
from sopool.data.sources.catalogue import PAPER, DatasetNote, find, list_datasets, load
from sopool.data.sources.find_graph import find_graph
from sopool.data.sources.stream import stream_graphs
from sopool.errors import DataError, SettingError
from tests.helpers.shared import DATA, needs_data

TU = {
    "A": "1, 2\n2, 1\n3, 4\n4, 3\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SOPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SOPOOL_DATA", raising=False)


def write_zip(path, name="TINY"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in TU.items():
            archive.writestr(f"{name}/{name}_{member}.txt", text)
    return path


@contextlib.contextmanager
def server(folder, monkeypatch):
    """The TU collection, on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        monkeypatch.setattr(TUDataset, "url", f"http://127.0.0.1:{running.server_port}")
        yield
        running.shutdown()
        thread.join()


def no_network(monkeypatch):
    monkeypatch.setattr(TUDataset, "url", "http://127.0.0.1:9")


def test_root_comes_before_the_package(tmp_path, monkeypatch):
    write_zip(tmp_path / "root" / "MUTAG.zip", "MUTAG")
    assert find("MUTAG").place == "package"
    assert find("MUTAG", tmp_path / "root").place == "root"
    assert len(load("MUTAG", tmp_path / "root")) == 2
    monkeypatch.setenv("SOPOOL_DATA", str(tmp_path / "root"))
    assert len(load("MUTAG")) == 2
    monkeypatch.delenv("SOPOOL_DATA")
    assert len(load("MUTAG")) == 188


def test_downloaded_once_with_progress(tmp_path, monkeypatch):
    size = write_zip(tmp_path / "web" / "TINY.zip").stat().st_size
    seen = []
    with server(tmp_path / "web", monkeypatch):
        store = load("TINY", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (size, size)
    assert store.name == "TINY"
    no_network(monkeypatch)
    assert len(load("TINY")) == len(store) == 2
    assert find("TINY").place == "cache"


def test_a_download_that_was_damaged_is_downloaded_again(tmp_path, monkeypatch):
    write_zip(tmp_path / "web" / "TINY.zip")
    with server(tmp_path / "web", monkeypatch):
        load("TINY")
        kept = find("TINY").path
        kept.write_bytes(kept.read_bytes()[:-30])
        with pytest.warns(UserWarning, match=r"TINY\.zip: .* Downloading it again"):
            assert len(load("TINY")) == 2
    no_network(monkeypatch)
    assert len(load("TINY")) == 2


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize("which", ["the file", "its folder"])
def test_a_download_that_others_can_write_to_is_not_used(tmp_path, monkeypatch, which):
    write_zip(tmp_path / "web" / "TINY.zip")
    with server(tmp_path / "web", monkeypatch):
        load("TINY")
        kept = find("TINY").path
        (kept if which == "the file" else kept.parent).chmod(0o777)
        assert find("TINY").path is None
        if which == "the file":
            load("TINY")
            assert find("TINY").place == "cache"
        else:
            with pytest.raises(DataError, match=r"TINY could not be downloaded.*other users can write.*chmod go-w"):
                load("TINY")


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", None])
def test_a_bad_download_leaves_nothing(tmp_path, monkeypatch, content):
    path = write_zip(tmp_path / "web" / "TINY.zip")
    path.write_bytes(path.read_bytes()[:-30] if content is None else content)
    with server(tmp_path / "web", monkeypatch), pytest.raises(DataError, match="TINY was not found"):
        load("TINY")
    assert not [path for path in cache_folder().rglob("*") if path.is_file()]


def test_without_a_network_the_error_names_places_and_ways_out(tmp_path, monkeypatch):
    no_network(monkeypatch)
    says = (
        r"NCI1 was not found.*could not be downloaded.*Searched: .*root.*this folder does not exist.*package.*"
        "give the path of your own file"
    )
    with pytest.raises(DataError, match=says):
        load("NCI1", tmp_path / "root")
    with server(tmp_path, monkeypatch), pytest.raises(DataError, match=r"[Nn]ot [Ff]ound"):
        load("NO_SUCH_SET")
    with pytest.raises(DataError, match=r"mutagg was not found. Did you mean 'MUTAG'\?"):
        load("mutagg")


def test_ptc_is_not_ptc_mr(tmp_path, monkeypatch):
    no_network(monkeypatch)
    with pytest.raises(DataError, match=r"PTC was not found.*not PTC_MR"):
        load("PTC")
    write_zip(tmp_path / "PTC_MR.zip", "PTC_MR")
    with pytest.warns(DatasetNote, match="not the paper's PTC"):
        load("PTC_MR", tmp_path)


def test_every_kind_of_file(tmp_path):
    store = pack([Graph(2, [(0, 1), (1, 0)], "x"), Graph(1, [], "y")])
    save_graphs(store, tmp_path / "a.graphs")
    lines = ['{"nodes": 2, "edges": [[0, 1]], "label": "x"}', '{"nodes": 1, "edges": [], "label": "y"}']
    (tmp_path / "b.jsonl").write_text("\n".join(lines))
    (tmp_path / "c.txt").write_text("2\n2 0\n0 1 1\n0 1 0\n1 1\n0 0\n")
    folder = tmp_path / "d"
    folder.mkdir()
    for member, text in TU.items():
        (folder / f"d_{member}.txt").write_text(text)
    write_zip(tmp_path / "e.zip")
    with zipfile.ZipFile(tmp_path / "f.zip", "w") as archive:
        archive.write(tmp_path / "c.txt", "f.txt")
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "g.txt").write_bytes((tmp_path / "c.txt").read_bytes())
    for source in ("a.graphs", "b.jsonl", "c.txt", "d", "e.zip", "f.zip", "g"):
        assert len(load(tmp_path / source)) == 2, source


@pytest.mark.parametrize("part", ["A", "graph_indicator", "graph_labels"])
def test_one_file_of_a_tu_set_is_not_all_of_it(tmp_path, part):
    for name, text in {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n", "graph_labels": "1\n"}.items():
        (tmp_path / f"MINE_{name}.txt").write_text(text)
    with pytest.raises(DataError, match=f"MINE_{part}.txt.*: .* one file of a TU data set: give the folder, "):
        load(tmp_path / f"MINE_{part}.txt")
    assert len(load(tmp_path)) == 1


def test_sources_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        load(tmp_path / "missing.zip")
    (tmp_path / "a.xlsx").write_text("?")
    with pytest.raises(
        DataError, match=r"unknown file type '.xlsx', expected one of .zip.* Save the spreadsheet as .csv"
    ):
        load(tmp_path / "a.xlsx")
    (tmp_path / "a.txt").write_text("smiles,label\nCCO,1\n")
    with pytest.raises(DataError, match=r"a.txt, line 1: .* rename a table of molecules to .csv"):
        load(tmp_path / "a.txt")


def test_a_folder_without_graphs_says_what_is_there(tmp_path):
    with pytest.raises(DataError, match=r"there is no NAME_A.txt, so this is not a data set in the TU format.$"):
        load(tmp_path)
    (tmp_path / "m.csv").write_text("smiles,label\nCCO,1\n")
    with pytest.raises(DataError, match=r"Found: m.csv. To read a file of another type, give its path."):
        load(tmp_path)


@pytest.mark.parametrize("name", ["M.CSV", "m.tsv.gz", "m.smi.gz", "M.Csv.GZ"])
def test_texts_in_capitals_or_packed(name, tmp_path):
    pytest.importorskip("rdkit")
    text = b"smiles,label\nCCO,1\nCC,0\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.lower().endswith(".gz") else text)
    store = load(tmp_path / name)
    assert store.sizes.tolist() == [3, 2]
    assert store.name == name.split(".")[0]
    assert [len(chunk.graphs) for chunk in stream_graphs(tmp_path / name, {"node_labels": None})] == [2]


def test_molecules_without_labels(tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text("smiles,toxic\nCCO,1\nCC,\n")
    with pytest.raises(
        DataError, match=r"Give its name as label_column or, of several, as target_columns, or labelled=False"
    ):
        load(tmp_path / "m.csv")
    store = load(tmp_path / "m.csv", labelled=False)
    assert len(store) == 2
    assert store.labels is None


@pytest.mark.parametrize(("five", "said"), [(False, "; and 1 other reason."), (True, "; and 2 other reasons.")])
def test_of_many_reasons_to_skip_some_are_told(five, said, tmp_path):
    pytest.importorskip("rdkit")
    bad = ["CC,", ",1", "what,1", "CC,1,2", *(["C(C)(C)(C)(C)C,1"] if five else [])]
    (tmp_path / "m.csv").write_text("\n".join(["smiles,label", "C,0", "CCO,1", *bad]))
    with pytest.warns(UserWarning, match="molecules skipped") as caught:
        load(tmp_path / "m.csv")
    assert str(caught[0].message).endswith(said)


def test_molecules_that_are_skipped_are_told(tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text("smiles,label\nCCO,1\nnot a molecule,0\nCC,0\nCCC,\nC,NaN\n")
    says = r"3 of 5 molecules skipped, the first in line 3, 'not a molecule'. Reasons: The molecule has no label \(2\);"
    with pytest.warns(UserWarning, match=says):
        assert len(load(tmp_path / "m.csv")) == 2
    with pytest.raises(DataError, match=r"m\.csv"):
        load(tmp_path / "m.csv", on_error="raise")


def test_the_list_without_any_data():
    listed = {one.name: one for one in list_datasets()}
    assert set(PAPER) <= set(listed)
    assert listed["MUTAG"].statistics.graphs == 188
    assert listed["NCI1"].place is None
    assert listed["PTC"].to_json()["note"].startswith("PTC is the file")


@needs_data
def test_shared_sets_agree_with_the_paper():
    for name in ("MUTAG", "PROTEINS", "IMDB-BINARY"):
        store = load(name, DATA)
        assert len(store) == PAPER[name].graphs
        assert int(store.sizes.max()) == PAPER[name].max_nodes


@pytest.mark.parametrize(
    ("option", "given"), [("smiles_column", "toxic"), ("label_column", "toxic"), ("target_columns", ["toxic"])]
)
def test_columns_of_what_has_none_are_refused(tmp_path, option, given):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"nodes": 1, "edges": [], "label": 1}')
    for source in ("MUTAG", path):
        for read in (load, lambda source, **given: list(stream_graphs(source, {}, row_options(**given)))):
            with pytest.raises(SettingError, match=f"{option}=.*'toxic'.* was given, but this source has no columns"):
                read(source, **{option: given})
        with pytest.raises(SettingError, match="this source has no columns"):
            find_graph(source, "1", {}, row_options(**{option: given}))
