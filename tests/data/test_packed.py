import contextlib
import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from sopool.data.formats import packed as file_module
from sopool.data.formats.packed import FORMAT, load_graphs, open_file, renamed, save_graphs
from sopool.data.pack import Graph, pack
from sopool.errors import DataError
from tests.helpers.data_graphs import as_lists, stores

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


# The last step down is so long that it overflows, and looks like one up.
OVERFLOWING = torch.tensor([0, 2**63 - 1, -(2**63) + 5])


def tiny():
    return pack([Graph(2, [(0, 1), (1, 0)], "x", ["C", "N"]), Graph(0, [], "y", [])], name="TINY")


@SHARED_FOLDER
@given(stores(min_size=0, more=True))
def test_round_trip(tmp_path, store):
    save_graphs(store, tmp_path / "a.graphs")
    again = load_graphs(tmp_path / "a.graphs")
    assert as_lists(again) == as_lists(store)
    assert again.name == store.name
    assert list(tmp_path.iterdir()) == [tmp_path / "a.graphs"]


def test_arrays_stay_on_disk(tmp_path):
    """64 MB of edges, never read: the process does not grow by them."""
    smaps = Path("/proc/self/smaps_rollup")
    if not smaps.exists():
        pytest.skip("private memory is read from /proc, which only Linux has")
    edges = 8_000_000
    store = pack([Graph(2, [(0, 1)])])
    large = type(store)(
        node_ptr=torch.tensor([0, 2]),
        edge_ptr=torch.tensor([0, edges]),
        edge_index=torch.zeros(2, edges, dtype=torch.int32),
    )
    save_graphs(large, tmp_path / "large.graphs")
    del large

    def private_kb():
        return sum(int(line.split()[1]) for line in smaps.read_text().splitlines() if line.startswith("Private_"))

    before = private_kb()
    loaded = load_graphs(tmp_path / "large.graphs", check=False)
    assert loaded.num_edges == edges
    assert private_kb() - before < 20_000


@SHARED_FOLDER
@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_is_an_error_or_changes_no_graph(tmp_path, place, value):
    path = tmp_path / "a.graphs"
    save_graphs(tiny(), path)
    content = bytearray(path.read_bytes())
    content[place % len(content)] = value
    path.write_bytes(content)
    with contextlib.suppress(DataError):
        assert as_lists(load_graphs(path)) == as_lists(tiny())


def test_a_file_without_a_digest_is_read(tmp_path):
    """As older versions wrote them."""
    header = {"format": FORMAT, "classes": '["x", "y"]', "node_label_names": '["C", "N"]'}
    save_file(arrays(), tmp_path / "a.graphs", metadata=header)
    assert as_lists(load_graphs(tmp_path / "a.graphs")) == as_lists(tiny())


def test_a_file_that_is_replaced_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a.graphs"
    save_graphs(tiny(), path)
    monkeypatch.setattr(file_module, "check_values", lambda _: save_graphs(pack([Graph(1)]), path))
    with pytest.raises(DataError, match="replaced by another one"):
        load_graphs(path)


def test_the_file_of_a_store(tmp_path):
    """Only of all the graphs as they were read, and only as long as it is the same file."""
    path = tmp_path / "a.graphs"
    save_graphs(tiny(), path)
    store = load_graphs(path)
    for same in (store, renamed(store, "other")):
        with open_file(same) as file:
            assert file.read() == path.read_bytes()
    changed = load_graphs(path)
    changed.labels[0] = 1
    for other in (tiny(), store[:1], replace(store, labels=None), copy.deepcopy(store), changed):
        assert open_file(other) is None
    save_graphs(tiny(), path)
    assert open_file(store) is None
    path.unlink()
    assert open_file(store) is None


@SHARED_FOLDER
@given(st.integers(0, 10_000))
def test_a_file_cut_short(tmp_path, length):
    path = tmp_path / "a.graphs"
    save_graphs(tiny(), path)
    content = path.read_bytes()
    path.write_bytes(content[: length % len(content)])
    with pytest.raises(DataError, match=r"a\.graphs"):
        load_graphs(path)


def arrays(**changed):
    given = {name: tensor.clone() for name, tensor in tiny().tensors().items()} | changed
    return {name: tensor for name, tensor in given.items() if tensor is not None}


def predicting(targets):
    return arrays(labels=None, node_labels=None, targets=targets.double())


def predicted(*names):
    return {"format": FORMAT, "target_names": json.dumps(names)}


def categorized():
    return arrays(node_categories=torch.zeros(2, 1, dtype=torch.uint8))


def columns(given):
    return {"format": FORMAT, "classes": '["x", "y"]', "node_label_names": '["C", "N"]'} | {
        "node_category_columns": json.dumps(given)
    }


@pytest.mark.parametrize(
    ("tensors", "header", "says"),
    [
        (arrays(), {}, "found 'no format name'"),
        (arrays(), {"format": "sopool graphs 99"}, "found 'sopool graphs 99'"),
        (arrays(surprise=torch.zeros(1)), {"format": FORMAT}, r"unknown arrays \['surprise'\]"),
        (arrays(labels=torch.zeros(2)), {"format": FORMAT}, "labels has type torch.float32"),
        (arrays(node_ptr=None), {"format": FORMAT}, "does not hold valid graphs"),
        (arrays(), {"format": FORMAT, "classes": "{"}, "does not hold valid graphs"),
        (arrays(), {"format": FORMAT, "classes": json.dumps([[]])}, "classes must be whole numbers or strings"),
        (arrays(), {"format": FORMAT, "classes": json.dumps([True, "b"])}, "classes must be whole numbers or strings"),
        (arrays(), {"format": FORMAT, "classes": json.dumps({"a": 1})}, "classes must be a list"),
        (arrays(), {"format": FORMAT, "classes": json.dumps(["\ud800", "b"])}, "classes contains half a character"),
        (arrays(), {"format": FORMAT, "classes": "[" * 100_000}, "does not hold valid graphs"),
        (arrays(), {"format": FORMAT}, "labels must lie between"),
        (arrays(edge_index=torch.zeros(4, dtype=torch.int32)), {"format": FORMAT}, r"edge_index has shape \[4\]"),
        (arrays(edge_index=torch.zeros(3, 2, dtype=torch.int32)), {"format": FORMAT}, r"expected \[2, edges\]"),
        (arrays(node_ptr=torch.tensor(0)), {"format": FORMAT}, r"node_ptr has shape \[\], expected 1 dimensions"),
        (arrays(node_ptr=torch.zeros(3, 2).long()), {"format": FORMAT}, r"node_ptr has shape \[3, 2\]"),
        (arrays(node_attributes=torch.zeros(2)), {"format": FORMAT}, "node_attributes has shape"),
        (
            arrays(targets=torch.zeros(2, 1)),
            {"format": FORMAT},
            "targets has type torch.float32, expected torch.float64",
        ),
        (predicting(torch.zeros(2)), predicted("a"), r"targets has shape \[2\], expected 2 dimensions"),
        (predicting(torch.zeros(3, 1)), predicted("a"), "targets has 3 entries, expected 2"),
        (predicting(torch.zeros(2, 0)), predicted(), "0 columns of targets have 0 names"),
        (predicting(torch.zeros(2, 2)), predicted("a"), "2 columns of targets have 1 names, expected one name each"),
        (predicting(torch.zeros(2, 1)), {"format": FORMAT}, "1 columns of targets have 0 names"),
        (predicting(torch.zeros(2, 1)), predicted(7), "7 is the name of a target, expected strings"),
        (predicting(torch.zeros(2, 1)), predicted(""), "'' is the name of a target, expected strings"),
        (predicting(torch.zeros(2, 2)), predicted("a", "a"), "'a' is the name of more than one target"),
        (predicting(torch.zeros(2, 1)), predicted(None), "target_names must be whole numbers or strings, found None"),
        (predicting(torch.tensor([[0], [torch.inf]])), predicted("a"), "graph 1: the target 'a' is inf"),
        (
            predicting(torch.tensor([[-1e39], [0]], dtype=torch.float64)),
            predicted("a"),
            "graph 0: the target 'a' is -1e",
        ),
        (arrays(), {"format": FORMAT, "classes": '["x", "y"]'} | predicted("a"), "0 columns of targets have 1 names"),
        (arrays(node_categories=torch.zeros(2, 1)), {"format": FORMAT}, "node_categories has type torch.float32"),
        (categorized(), {"format": FORMAT}, "1 columns of node categories have 0 names"),
        (categorized(), columns([["charge", [0]], ["charge", [0]]]), "more than one column of node categories"),
        (categorized(), columns(["charge"]), "node_category_columns must be pairs of a name and a list"),
        (categorized(), columns([["charge", [None]]]), "node_category_columns must be whole numbers or strings"),
        (categorized(), columns([["charge", []]]), "node_categories of column 'charge' must lie between 0 and -1"),
        (arrays(node_labels=None, node_ptr=OVERFLOWING), {"format": FORMAT}, "node_ptr must start at 0"),
    ],
)
def test_files_of_another_kind(tmp_path, tensors, header, says):
    save_file(tensors, tmp_path / "a.graphs", metadata=header)
    with pytest.raises(DataError, match=says):
        load_graphs(tmp_path / "a.graphs")


def test_no_such_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        load_graphs(tmp_path / "missing.graphs")


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.graphs"
    save_graphs(tiny(), path)
    before = path.read_bytes()

    def fail(file, arrays, header):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_module, "write_sealed", fail)
    with pytest.raises(OSError, match="No space left"):
        save_graphs(pack([Graph(1)]), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
