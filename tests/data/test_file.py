import contextlib
import json
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from sopool.data import file as file_module
from sopool.data.errors import DataError
from sopool.data.file import FORMAT, load_graphs, save_graphs
from sopool.data.pack import Graph, pack
from tests.data.graphs import as_lists, stores

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def tiny():
    return pack([Graph(2, [(0, 1), (1, 0)], "x", ["C", "N"]), Graph(0, [], "y", [])], name="TINY")


@SHARED_FOLDER
@given(stores(min_size=0))
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
def test_a_changed_byte_is_an_error_or_harmless(tmp_path, place, value):
    path = tmp_path / "a.graphs"
    save_graphs(tiny(), path)
    content = bytearray(path.read_bytes())
    content[place % len(content)] = value
    path.write_bytes(content)
    with contextlib.suppress(DataError):
        load_graphs(path)


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


@pytest.mark.parametrize(
    ("tensors", "header", "says"),
    [
        (arrays(), {}, "found 'no format name'"),
        (arrays(), {"format": "sopool graphs 99"}, "found 'sopool graphs 99'"),
        (arrays(surprise=torch.zeros(1)), {"format": FORMAT}, r"unknown arrays \['surprise'\]"),
        (arrays(labels=torch.zeros(2)), {"format": FORMAT}, "labels has type torch.float32"),
        (arrays(node_ptr=None), {"format": FORMAT}, "not a store of graphs"),
        (arrays(), {"format": FORMAT, "classes": "{"}, "not a store of graphs"),
        (arrays(), {"format": FORMAT, "classes": json.dumps([[]])}, "strings or integers"),
        (arrays(), {"format": FORMAT}, "labels must lie between"),
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

    def fail(tensors, filename, metadata):
        Path(filename).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_module, "save_file", fail)
    with pytest.raises(OSError, match="No space left"):
        save_graphs(pack([Graph(1)]), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
