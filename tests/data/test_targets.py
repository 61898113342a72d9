"""Numbers to predict, one or several for each graph, some missing: the same numbers wherever they come from."""

import json
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sopool.data import DataError, Graph, PackedGraphs, concatenate, load, load_graphs, pack, save_graphs
from sopool.data.formats.jsonl import read_jsonl, write_jsonl
from sopool.data.formats.packed import content_key
from sopool.data.graphs import MAX_TARGET, check_values

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
NAN = math.nan
HUGE = 1e15
"""An offset at which single precision keeps no fractions."""

number = st.floats(-MAX_TARGET, MAX_TARGET)
fraction = number.filter(lambda value: not value.is_integer())


def assert_targets(store: PackedGraphs, rows, names=None):
    """The store has these targets bit by bit, and no classes."""
    expected = torch.tensor([[NAN if one is None else one for one in row] for row in rows], dtype=torch.float64)
    assert store.labels is None
    assert store.targets.dtype == torch.float64
    assert store.targets.shape == expected.shape
    missing = expected.isnan()
    assert torch.equal(store.targets.isnan(), missing)
    assert torch.equal(store.targets[~missing].view(torch.int64), expected[~missing].view(torch.int64))
    assert names is None or store.target_names == tuple(names)


@st.composite
def targets(draw):
    width = draw(st.integers(1, 4))
    row = st.lists(st.one_of(number, st.none()), min_size=width, max_size=width)
    return draw(st.lists(row, min_size=1, max_size=6))


def store_of(rows, names=()):
    return pack([Graph(1, label=row) for row in rows], target_names=names)


@given(targets())
def test_lists_are_targets(rows):
    names = ["target"] if len(rows[0]) == 1 else [f"target {i + 1}" for i in range(len(rows[0]))]
    assert_targets(store_of(rows), rows, names)


@given(st.lists(st.one_of(number, st.none(), st.integers(-9, 9)), max_size=5), fraction, st.integers(0, 5))
def test_numbers_of_which_one_has_a_fraction_are_targets(labels, odd, place):
    labels.insert(place, odd)
    assert_targets(pack([Graph(1, label=label) for label in labels]), [[label] for label in labels], ["target"])


@pytest.mark.parametrize(
    "label",
    [
        (1, 0.5, None),
        [np.int8(1), np.float16(0.5), np.nan],
        np.array([1, 0.5, NAN], np.float32),
        torch.tensor([1, 0.5, NAN]),
        torch.tensor([1, 0.5, NAN], requires_grad=True),
        [True, torch.tensor(0.5), NAN],
    ],
)
def test_numbers_of_any_library_are_accepted(label):
    assert_targets(pack([Graph(1, label=label), Graph(1, label=[0, 2, 4])]), [[1, 0.5, None], [0, 2, 4]])


@pytest.mark.parametrize("half", [np.float32(0.5), np.float64(0.5), torch.tensor(0.5), torch.tensor([0.5])])
def test_single_numbers_of_any_library_are_accepted(half):
    labels = [half, np.int64(7), torch.tensor(8), None, NAN]
    assert_targets(pack([Graph(1, label=label) for label in labels]), [[0.5], [7], [8], [None], [None]])


def test_whole_numbers_are_targets_where_they_have_a_name():
    assert pack([Graph(1, label=label) for label in (0, 1)]).classes == (0, 1)
    graphs = [Graph(1, label=label) for label in (0, 1, None)]
    assert_targets(pack(graphs, target_names=["toxic"]), [[0], [1], [None]], ["toxic"])
    assert_targets(pack([Graph(1), Graph(1)], target_names=["a", "b"]), [[None] * 2] * 2, ["a", "b"])
    assert pack([], target_names=["a", "b"]).targets.shape == (0, 2)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([0.5, "high"], "graph 1: the label 'high' is text, but other labels are numbers with fractions"),
        ([[0.5], "high"], "graph 1: the label 'high' is text"),
        ([0.5, "0.5"], "graph 1: the label '0.5' is text"),
        ([0.5, math.inf], "graph 1: the target 'target' is inf, expected a number of at most 1e"),
        ([[0.5, -math.inf]], "graph 0: the target 'target 2' is -inf"),
        ([[1, 2], [1, 10**400]], "graph 1: the target 'target 2' is 1000.*, expected a number of at most 1e"),
        ([[1, 2], [1, "x"]], "graph 1: the target 'target 2' is 'x', expected a number, or None if it is missing"),
        ([[1, 2], [1, 1j]], "graph 1: the target 'target 2' is 1j"),
        ([[1, 2], [1, 2, 3]], "graph 1: 3 targets, expected 2: .'target 1', 'target 2'."),
        ([None, [1, 2], 0.5], "graph 2: the label 0.5 is a single value, but other graphs have a list of 2 targets"),
        ([0.5, [0.5]], "graph 0: the label 0.5 is a single value"),
        ([[], []], "graph 0: 0 targets, expected 1 to 65,536"),
        ([[0] * 65_537], "graph 0: 65,537 targets, expected 1 to 65,536"),
        ([torch.zeros(2, 3)], r"graph 0: the target 'target 1' is \[0.0, 0.0, 0.0\]"),
        ([2.0, 3.0], r"found 2.0 \(float\). A number to predict is given as a list, \[2.0\]"),
        ([1, None], "graph 1 has no label, but other graphs have"),
        ([{1}, {2}], r"label must be whole numbers or strings, found \{1\}"),
    ],
)
def test_labels_that_are_neither_classes_nor_targets(labels, says):
    with pytest.raises(DataError, match=says):
        pack([Graph(1, label=label) for label in labels])


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["a"], "graph 0: 2 targets, expected 1"),
        (["a", "b", "c"], "graph 0: 2 targets, expected 3"),
        (["a", "a"], "'a' is the name of more than one target"),
        (["a", ""], "'' is the name of a target, expected strings"),
        (["a", 7], "7 is the name of a target, expected strings"),
        (["a", "\ud800"], "half a character"),
    ],
)
def test_names_of_targets(names, says):
    assert store_of([[1, 2]], ["b", "é"]).target_names == ("b", "é")
    with pytest.raises(DataError, match=says):
        store_of([[1, 2]], names)


def test_a_single_number_has_one_name():
    with pytest.raises(DataError, match="graph 0: the label 1 is one target, expected 2"):
        pack([Graph(1, label=1)], target_names=["a", "b"])


@SHARED_FOLDER
@given(targets(), st.data())
def test_targets_survive_every_file_and_selection(tmp_path, rows, data):
    names = [f"é {i}" for i in range(len(rows[0]))]
    store = store_of(rows, names)
    save_graphs(store, tmp_path / "a.graphs")
    assert_targets(load_graphs(tmp_path / "a.graphs"), rows, names)
    for name in ("a.jsonl", "a.jsonl.gz"):
        write_jsonl(store, tmp_path / name)
        assert_targets(read_jsonl(tmp_path / name, target_names=names), rows, names)
        assert_targets(read_jsonl(tmp_path / name), rows)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    assert_targets(store[chosen], [rows[g] for g in chosen], names)
    cut = data.draw(st.integers(0, len(rows)))
    assert_targets(concatenate([store[:cut], store.stretch(cut, len(rows))]), rows, names)


def test_targets_at_a_huge_offset_stay_exact(tmp_path):
    rows = [[HUGE + 0.125, -HUGE], [HUGE - 0.375, None]]
    write_jsonl(store_of(rows), tmp_path / "a.jsonl")
    assert_targets(load(tmp_path / "a.jsonl"), rows)


def test_stores_that_do_not_fit_together():
    with pytest.raises(DataError, match=r"different targets: \[\['a'\], \['b'\]\]"):
        concatenate([store_of([[1]], ["a"]), store_of([[1]], ["b"])])
    with pytest.raises(DataError, match=r"different targets: \[\['a'\], \[\]\]"):
        concatenate([store_of([[1]], ["a"]), pack([Graph(1)])])


def test_the_key_of_a_store_depends_on_its_targets():
    keys = [content_key(store_of(rows, names)) for rows in ([[1.0]], [[None]]) for names in (["a"], ["b"])]
    assert len({*keys, content_key(pack([Graph(1)]))}) == 5


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300])
def test_a_store_with_an_infinite_target_is_found_out(value):
    store = store_of([[1, 2], [3, 4]], ["a", "b"])
    store.targets[1, 0] = value
    with pytest.raises(DataError, match="graph 1: the target 'a' is"):
        check_values(store)


def lines(path, labels):
    path.write_text("".join(json.dumps({"nodes": 1, "edges": [], "label": label}) + "\n" for label in labels))
    return path


def test_labels_in_json_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    assert_targets(load(lines(path, [1, 0.5, None, 2.0])), [[1], [0.5], [None], [2]], ["target"])
    assert_targets(load(lines(path, [[1, None], [0.5, True]])), [[1, None], [0.5, 1]], ["target 1", "target 2"])
    assert load(lines(path, [1, 2])).classes == (1, 2)
    with pytest.raises(DataError, match=r"a.jsonl: line 2: the label 'high' is text"):
        load(lines(path, [0.5, "high"]))
    with pytest.raises(DataError, match=r"a.jsonl: line 2: 1 targets, expected 2"):
        load(lines(path, [[0.5, 1], [0.5]]))
    with pytest.raises(DataError, match=r"line 2: this line has no label, but line 1 has: .*give a list of null\."):
        load(lines(path, [[0.5], None]))
    with pytest.raises(DataError, match=r"line 2: label must be .*found 2.0 \(float\).*given as a list, \[2.0\]"):
        load(lines(path, [1, 2.0]))
    path.write_text('{"nodes": 1, "edges": [], "label": 1e999}')
    with pytest.raises(DataError, match=r"line 1: the label is inf, expected a number of at most 1e"):
        load(path)


@pytest.mark.parametrize("others", [[None], [0.5], [0.5, None], [[1]], ["x"]])
def test_one_wide_line_takes_no_memory_for_the_others(tmp_path, others):
    labels = [[0] * 65_536, *others * (2000 // len(others))]
    path = lines(tmp_path / "a.jsonl", labels)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"line [23]"):
            read_jsonl(path)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_classes_and_targets_do_not_fit_into_json_lines(tmp_path):
    both = replace(store_of([[1]], ["a"]), labels=torch.tensor([0]), classes=("x",))
    save_graphs(both, tmp_path / "a.graphs")
    again = load_graphs(tmp_path / "a.graphs")
    assert (again.classes, again.target_names) == (("x",), ("a",))
    with pytest.raises(DataError, match=r"has both classes and targets.*Write a \.graphs file"):
        write_jsonl(both, tmp_path / "a.jsonl")
