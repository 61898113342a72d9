"""Targets of molecules, TU files, PyG and NetworkX, read at once and some at a time."""

import json
import math
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Data

from sopool.data import DataError, Graph, from_networkx, from_pyg, load, pack, save_graphs, to_networkx, to_pyg
from sopool.data.formats.molecules import read_sdf, read_smiles_csv, smiles_to_store
from sopool.data.formats.rows import row_options
from sopool.data.sources.find_graph import find_graph
from sopool.data.sources.stream import stream_graphs
from sopool.errors import SettingError
from tests.data.test_targets import HUGE, assert_targets, store_of, targets
from tests.helpers.tu_files import SMALL, write_folder, write_zip

NAN = math.nan
NEEDED = "needs RDKit, the extra chem"
MOLECULES = Path(__file__).resolve().parents[3] / "shared" / "molecules"


def csv_file(path, names, rows):
    """A CSV of molecules whose cells are these texts, and how to read it."""
    pytest.importorskip("rdkit", reason=NEEDED)
    cells = [",".join(["smiles", *names]), *(",".join(["C", *row]) for row in rows)]
    path.write_text("\n".join(cells) + "\n")
    return read_smiles_csv


def sdf_file(path, names, rows):
    """The same as an SDF file; an empty cell is a property that is not there."""
    chem = pytest.importorskip("rdkit.Chem", reason=NEEDED)
    methane = chem.MolToMolBlock(chem.MolFromSmiles("C"))
    properties = [
        "".join(f"> <{name}>\n{cell}\n\n" for name, cell in zip(names, row, strict=True) if cell) for row in rows
    ]
    path.write_text("".join(f"{methane}{some}$$$$\n" for some in properties))
    return read_sdf


FILES = [csv_file, sdf_file]


@pytest.fixture(params=FILES)
def table(request, tmp_path):
    """Write rows of cells to a file, and return its path and its reader."""

    def write(names, *rows):
        path = tmp_path / ("a.csv" if request.param is csv_file else "a.sdf")
        return path, request.param(path, names, rows)

    return write


@pytest.mark.parametrize("labels", [["0.5", "1.25"], ["1", "2", "-3.5e-3"], ["1e-7", "2", "07", "1.0"]])
def test_a_column_with_a_fraction_is_a_target(table, labels):
    path, _ = table(["Activity"], *([label] for label in labels))
    assert_targets(load(path), [[float(label)] for label in labels], ["Activity"])


def test_a_label_that_is_missing_among_fractions_is_skipped(table):
    path, read = table(["y"], ["0.5"], [""], ["nan"], ["7"])
    store, bad = read(path)
    assert_targets(store, [[0.5], [7]], ["y"])
    assert [one.reason for one in bad] == ["The molecule has no label."] * 2


@pytest.mark.parametrize("labels", [["0.5", "high"], [">10", "7.3"], ["0.5", "inf"], ["1.5", "1_0"], ["0.5", "٣"]])
def test_a_word_among_fractions_is_named(table, labels):
    path, read = table(["y"], *([label] for label in labels))
    word = next(label for label in labels if label not in ("0.5", "7.3", "1.5"))
    row = labels.index(word) + (2 if path.suffix == ".csv" else 1)
    with pytest.raises(
        DataError, match=rf"(line|record) {row}: the label '{word}' is text, but other labels are numbers"
    ):
        read(path)


def test_a_number_that_is_too_large_is_named(table):
    path, read = table(["y"], ["0.5"], ["1e300"])
    with pytest.raises(DataError, match=r"(line 3|record 2): the target 'y' is 1e\+300, expected a number of at most"):
        read(path)


def test_whole_numbers_and_words_stay_classes(table):
    for labels, classes in ((["0.0", "1.0", "01"], (0, 1)), (["1.5 mg", "inf", "1.2.3"], ("1.2.3", "1.5 mg", "inf"))):
        path, read = table(["label"], *([label] for label in labels))
        assert read(path)[0].classes == classes


CELLS = (["1", "TRUE", ""], ["nan", "false", "<NA>"], ["", "", ""], ["-0.5e3", "7", "1e-3"])
NUMBERS = [[1, 1, None], [None, 0, None], [-500, 7, 1e-3]]


def test_several_columns(table):
    path, read = table(["a", "b", "c"], *CELLS)
    with pytest.warns(UserWarning, match=r"1 of 4 molecules skipped.*All targets are missing"):
        assert_targets(load(path, target_columns=["a", "b", "c"]), NUMBERS, ["a", "b", "c"])
    store, _ = read(path, target_columns=["C", "a"])
    assert_targets(store, [[row[2], row[0]] for row in NUMBERS if (row[2], row[0]) != (None, None)], ["c", "a"])
    with pytest.raises(DataError, match=r"All targets are missing"):
        read(path, target_columns=["a", "b", "c"], on_error="raise")


def test_one_column_of_whole_numbers_is_a_target_if_asked_for(table):
    path, read = table(["toxic"], ["0"], ["1"], ["0"])
    assert_targets(read(path, target_columns=["toxic"])[0], [[0], [1], [0]], ["toxic"])


def test_huge_offsets_are_exact(table):
    values = [HUGE + 0.125, HUGE - 0.375, 0.1, 5e-324]
    path, read = table(["y"], *([repr(value)] for value in values))
    assert_targets(read(path)[0], [[value] for value in values])
    assert_targets(read(path, target_columns=["y"])[0], [[value] for value in values])


@pytest.mark.parametrize("cell", ["high", "inf", "-Infinity", "1e400", "1e39", "1_000", "0.5 mg", "٣"])
def test_text_in_a_column_of_targets_is_a_bad_row(table, cell):
    path, read = table(["a", "b"], ["1", "2"], ["3", cell])
    store, (bad,) = read(path, target_columns=["a", "b"])
    assert_targets(store, [[1, 2]])
    assert bad.row == (3 if path.suffix == ".csv" else 2)
    assert bad.reason.startswith("The target 'b' is ")
    assert cell.replace("e39", "e+39") in bad.reason
    with pytest.raises(DataError, match=r"The target 'b' is .*expected a"):
        read(path, target_columns=["a", "b"], on_error="raise")


def test_a_column_of_text_holds_no_numbers(table):
    path, read = table(["a", "b"], ["1", "x"], ["2", "y"])
    with pytest.raises(DataError, match=r"the column 'b' holds no numbers, so it cannot be a target"):
        read(path, target_columns=["a", "b"])
    with pytest.raises(DataError, match=r"the column 'b' holds no numbers"):
        list(stream_graphs(path, {}, row_options(target_columns=["b"])))


def test_columns_that_cannot_be_targets(table):
    path, read = table(["a", "label"], ["1", "2"])
    with pytest.raises(SettingError, match=r"label_column='a' and target_columns=\['label'\] were both given"):
        load(path, label_column="a", target_columns=["label"])
    with pytest.raises(SettingError, match=r"target_columns='a' is a string, expected a list of column names"):
        load(path, target_columns="a")
    with pytest.raises(SettingError, match=r"target_columns=\['a', 'a'\] names a column twice"):
        read(path, target_columns=["a", "a"])
    with pytest.raises(SettingError, match=r"target_columns names the column 'a' twice"):
        read(path, target_columns=["a", "A"])
    with pytest.raises(SettingError, match=r"there is no column 'lable' \(target_columns\).*Did you mean 'label'"):
        read(path, target_columns=["lable"])
    assert load(path, target_columns=["a"], labelled=False).targets is None


def test_targets_of_a_list_of_molecules():
    pytest.importorskip("rdkit", reason=NEEDED)
    smiles = ["C", "CC", "CCC", "((", "CCCC"]
    store, bad = smiles_to_store(smiles, np.array([[0, NAN], [NAN, NAN], [0.5, 1], [1, 1], [1, 1]]))
    assert_targets(store, [[0, None], [0.5, 1], [1, 1]])
    assert [one.row for one in bad] == [1, 3]
    assert_targets(smiles_to_store(smiles[:3], [0.5, 1.0, 1.5])[0], [[0.5], [1], [1.5]])
    assert_targets(smiles_to_store(smiles[:2], [[1], torch.tensor([2.0, 3.0])[:1].numpy()])[0], [[1], [2]])
    with pytest.raises(DataError, match=r"molecule 4: the label 'high' is text"):
        smiles_to_store(smiles, [0.5, 1, 2, 3, "high"])


@pytest.mark.parametrize("name", ["a.csv", "a.sdf"])
def test_a_stream_has_the_targets_of_each_row(tmp_path, name):
    (csv_file if name == "a.csv" else sdf_file)(tmp_path / name, ["a", "b", "c"], CELLS)
    (chunk,) = stream_graphs(tmp_path / name, {}, row_options(target_columns=["a", "b", "c"]))
    assert chunk.labels == [*NUMBERS[:2], None, NUMBERS[2]]
    assert chunk.graphs.targets is None
    (chunk,) = stream_graphs(tmp_path / name, {}, row_options(label_column="a"))
    assert chunk.labels == ["1", None, None, "-0.5e3"]
    (chunk,) = stream_graphs(tmp_path / name, {}, row_options(label_column="c"))
    assert chunk.labels == [None, None, None, 1e-3]


def test_a_stream_of_stored_graphs_has_their_targets(tmp_path):
    rows = [[1.0, None], [0.5, 2.0]]
    save_graphs(store_of(rows, ["a", "b"]), tmp_path / "a.graphs")
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"nodes": 1, "edges": [], "label": row}) + "\n" for row in rows)
    )
    for name, first in (("a.graphs", 0), ("a.jsonl", 1)):
        (chunk,) = stream_graphs(tmp_path / name, {})
        assert chunk.labels == rows
        found = find_graph(tmp_path / name, str(first + 1), {})
        assert found.label == rows[1]
        assert found.graph.targets is None
        assert found.graph.target_names == ()
    with pytest.raises(SettingError, match=r"target_columns=\['a'\] was given, but this source has no columns"):
        find_graph(tmp_path / "a.graphs", "0", {}, row_options(target_columns=["a"]))


@pytest.mark.parametrize("write", [write_folder, write_zip])
@pytest.mark.parametrize("classes", [True, False])
def test_graph_attributes_of_tu_files(tmp_path, write, classes):
    text = f"{HUGE + 0.125!r}, nan\n-1e-3,7\n"
    files = SMALL | {"graph_attributes": text}
    if not classes:
        del files["graph_labels"]
    store = load(write(files, tmp_path / "SMALL.zip"))
    expected = [[HUGE + 0.125, None], [-1e-3, 7]]
    assert_targets(replace(store, labels=None), expected, ["target 1", "target 2"])
    assert store.classes == ((-1, 1) if classes else ())
    (chunk,) = stream_graphs(tmp_path / "SMALL.zip", {})
    assert chunk.labels == ([1, -1] if classes else expected)


def test_a_tu_set_needs_labels_or_attributes(tmp_path):
    files = {kind: text for kind, text in SMALL.items() if kind != "graph_labels"}
    with pytest.raises(DataError, match=r"file is missing, but the TU format needs it or SMALL_graph_attributes.txt"):
        load(write_folder(files, tmp_path / "SMALL"))
    store = load(write_folder(files | {"graph_attributes": "1\n2\n"}, tmp_path / "SMALL"))
    assert_targets(store, [[1], [2]], ["target"])


def data(y):
    return Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=1, y=y)


@pytest.mark.parametrize(
    ("labels", "rows"),
    [
        ([torch.tensor([0.5]), torch.tensor([1.0])], [[0.5], [1]]),
        ([torch.tensor(0.5), torch.tensor(NAN)], [[0.5], [None]]),
        ([torch.tensor([[0.5]]), None], [[0.5], [None]]),
        ([0.5, 1], [[0.5], [1]]),
        ([torch.tensor([1.0, NAN]), torch.tensor([0.0, 2.5])], [[1, None], [0, 2.5]]),
        ([torch.tensor([[1, 0, 1]]), torch.tensor([[0, 0, 1]])], [[1, 0, 1], [0, 0, 1]]),
        ([torch.tensor([[True, False]]), torch.tensor([[False, True]])], [[1, 0], [0, 1]]),
        ([np.array([1.0, 2.5]), [1, None]], [[1, 2.5], [1, None]]),
        ([torch.tensor([[HUGE, 1]], dtype=torch.float64)] * 2, [[HUGE, 1]] * 2),
    ],
)
def test_targets_of_pyg_graphs(labels, rows):
    graphs = [data(y) for y in labels]
    assert_targets(from_pyg(graphs), rows)
    assert from_pyg(graphs, labels=[0] * 2).classes == (0,)
    names = [f"t{i}" for i in range(len(rows[0]))]
    assert_targets(from_pyg(graphs, target_names=names), rows, names)


def test_pyg_labels_that_stay_classes():
    assert from_pyg([data(torch.tensor([1.0])), data(torch.tensor(0.0))]).classes == (0, 1)
    assert from_pyg([data(torch.tensor([[1]])), data(np.array([0]))]).classes == (0, 1)
    assert_targets(from_pyg([data(torch.tensor([y])) for y in (1.0, 0.0)], target_names=["y"]), [[1], [0]], ["y"])


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([torch.tensor([1.0, 2.5]), torch.tensor([1.0])], "graph 1: the label 1 is a single value"),
        ([torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.5, 3])], "graph 1: 3 targets, expected 2"),
        ([torch.zeros(2, 2), torch.zeros(2, 2)], r"graph 0: the target 'target 1' is \[0.0, 0.0\]"),
        ([torch.tensor([math.inf]), torch.tensor([1.0])], "graph 0: the target 'target' is inf"),
        ([torch.tensor([]), torch.tensor([])], "graph 0: 0 targets, expected 1 to"),
    ],
)
def test_pyg_labels_that_make_no_sense(labels, says):
    with pytest.raises(DataError, match=says):
        from_pyg([data(y) for y in labels])


@given(targets())
def test_targets_survive_pyg_and_networkx(rows):
    names = [f"t{i}" for i in range(len(rows[0]))]
    store = store_of(rows, names)
    graphs = to_pyg(store)
    assert graphs[0].y.shape == (1, len(names))
    assert graphs[0].y.dtype == torch.float64
    assert_targets(from_pyg(graphs, target_names=names), rows, names)
    assert_targets(from_networkx(to_networkx(store), target_names=names), rows, names)
    assert_targets(from_networkx(to_networkx(store)), rows)


def test_targets_of_networkx_graphs():
    def graph(label):
        return nx.Graph([(0, 1)], label=label)

    assert_targets(from_networkx([graph(0.5), graph(np.float32(2))]), [[0.5], [2]], ["target"])
    assert_targets(from_networkx([graph([1, 2]), graph(torch.tensor([[NAN, 0.5]]))]), [[1, 2], [None, 0.5]])
    assert_targets(from_networkx([graph("x"), graph("y")], labels=torch.tensor([[1, 2.5]] * 2)), [[1, 2.5]] * 2)
    assert_targets(from_networkx([graph("x"), graph("y")], labels=[0.5, None]), [[0.5], [None]])
    assert from_networkx([graph([1, 2]), graph(0.5)], labels=[0, 0]).classes == (0,)
    assert pack([Graph(1, label=1)]).targets is None


@pytest.mark.parametrize(
    ("file", "columns", "rows", "missing"),
    [
        ("ESOL", ["log_solubility"], 1128, [0]),
        ("SIDER", ["SIDER1", "SIDER27"], 1427, [0, 0]),
    ],
)
def test_real_columns_of_numbers(file, columns, rows, missing):
    pytest.importorskip("rdkit", reason=NEEDED)
    path = MOLECULES / f"{file}.csv.gz"
    if not path.is_file():
        pytest.skip("the molecules are not beside the repository")
    store = load(path, target_columns=columns)
    assert (len(store), store.targets.isnan().sum(0).tolist()) == (rows, missing)
    assert store.target_names == tuple(columns)
