"""TU files for tests: a small set in every kind of file, in a folder or a zip."""

import zipfile

import torch

from sopool.data.graphs import PackedGraphs

# Two graphs of 3 and 2 nodes.
SMALL = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "7\n3\n7\n3\n3\n",
    "node_attributes": "0.5, 1\n1e-3, 2\n-1, 3\n0, 4\n2.25, 5\n",
    "edge_labels": "0\n0\n1\n1\n0\n0\n",
    "edge_attributes": "1.5\n1.5\n2\n2\n-3\n-3\n",
}


def write_folder(files, folder, name="SMALL"):
    folder.mkdir(parents=True, exist_ok=True)
    for kind, text in files.items():
        (folder / f"{name}_{kind}.txt").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def write_zip(files, path, method=zipfile.ZIP_DEFLATED, name="SMALL"):
    with zipfile.ZipFile(path, "w", method) as out:
        for kind, text in files.items():
            out.writestr(f"{name}/{name}_{kind}.txt", text)
    return path


def assert_equal(found: PackedGraphs, expected: PackedGraphs):
    assert found.tensors().keys() == expected.tensors().keys()
    for name, tensor in expected.tensors().items():
        assert found.tensors()[name].dtype == tensor.dtype, name
        assert torch.equal(found.tensors()[name], tensor), name
    for names in ("classes", "node_label_names", "edge_label_names"):
        assert getattr(found, names) == getattr(expected, names)
