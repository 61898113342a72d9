import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit

from sopool.data import Graph, concatenate, load_graphs, pack, save_graphs, with_split
from sopool.data.division import Division, SplitRule, column_values, keep_copies_together, split_rule, with_columns
from sopool.data.formats.packed import content_key
from sopool.errors import DataError, SettingError

PATH = [(0, 1), (1, 0), (1, 2), (2, 1)]
TRIANGLE = [*PATH, (0, 2), (2, 0)]
STORE = pack([Graph(3, PATH if i % 2 else TRIANGLE, label=i % 2) for i in range(12)])
PLACES = ["line 2", "line 3"]


def as_lists(folds):
    return [(train.tolist(), test.tolist()) for train, test in folds]


@pytest.mark.parametrize(
    "splitter", [KFold(3), KFold(4, shuffle=True, random_state=1), ShuffleSplit(5, random_state=0), TimeSeriesSplit(3)]
)
def test_splitters_of_scikit_learn(splitter):
    expected = [(sorted(train.tolist()), sorted(test.tolist())) for train, test in splitter.split(np.zeros(12))]
    division = Division.of(with_split(STORE, splitter))
    assert (division.name, division.count(99)) == ("given", len(expected))
    assert as_lists(division.folds(12, None, 99)) == expected
    assert as_lists(Division.of(with_split(STORE, splitter.split(np.zeros(12)))).folds(12, None, 99)) == expected


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_the_fold_of_each_graph(kind):
    fold_of = [0, 1, 2] * 4
    folds = Division.of(with_split(STORE, kind(fold_of))).folds(12, None, 99)
    assert [test.tolist() for _, test in folds] == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]


def test_masks_are_graph_numbers_too():
    first = np.arange(12) < 6
    assert as_lists(Division.of(with_split(STORE, [(first, ~first)])).folds(12, None, 9)) == [
        (list(range(6)), list(range(6, 12)))
    ]


def test_groups_go_with_a_splitter():
    groups = [f"lab {i // 2}" for i in range(12)]
    division = Division.of(with_split(STORE, GroupKFold(3), groups))
    assert division.count(99) == 3
    train, _ = division.folds(12, None, 99)[0]
    kept, held = division.holdout(train, None, 0.3)
    assert not set(kept // 2) & set(held // 2)
    with pytest.raises(DataError, match="fold 1 of splits tests on graph 0, but another graph of its group"):
        with_split(STORE, [(list(range(1, 12)), [0])], groups)


@pytest.mark.parametrize("kind", [list, np.array, lambda names: torch.tensor([int(name) for name in names])])
def test_groups_of_any_type_have_the_same_numbers(kind):
    names = [str(i % 4) for i in range(12)]
    assert Division.of(with_split(STORE, groups=kind(names))).key == Division.of(with_split(STORE, groups=names)).key


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"splits": [0, 1]}, "splits has 2 values for 12 graphs"),
        ({"groups": [0, 1]}, "groups has 2 values for 12 graphs"),
        ({"splits": [-1] * 12}, "splits has the fold -1"),
        ({"splits": []}, "splits must be a splitter of scikit-learn"),
        ({"splits": [0.5] * 12}, "splits must be a splitter of scikit-learn"),
        ({"splits": [([0], [1], [2])]}, "splits must be a splitter of scikit-learn"),
        ({"splits": [([0, 1], [1])]}, "fold 1 of splits: graph 1 is both a training and a test graph"),
        ({"splits": [([0], [12])]}, "fold 1 of splits: there is no graph 12"),
        ({"splits": [([0], [-1])]}, "fold 1 of splits: there is no graph -1"),
        ({"splits": [([0.5], [1])]}, "fold 1 of splits: the training graphs must be a list of graph numbers"),
        ({"splits": [([0], [])]}, "fold 1 of the given split has no test graphs"),
        ({"splits": [([], [0])]}, "fold 1 of the given split has no training graphs"),
    ],
)
def test_splits_that_cannot_be(given, message):
    with pytest.raises(DataError, match=message):
        with_split(STORE, **given)


def test_a_store_keeps_its_split_but_not_its_key(tmp_path):
    store = with_split(STORE, groups=range(12))
    save_graphs(store, tmp_path / "a.graphs")
    assert Division.of(load_graphs(tmp_path / "a.graphs")).key == Division.of(store).key
    assert content_key(store) == content_key(STORE)
    assert Division.of(store[3:5]).groups.tolist() == Division.of(store).groups[3:5].tolist()
    joined = concatenate([store[:5], store[5:]])
    assert Division.of(joined).key == Division.of(store).key
    with pytest.raises(DataError, match="the stores have different split values"):
        concatenate([store, STORE])


def test_the_key_names_the_split_and_its_values():
    keys = {Division.of(with_split(STORE, groups=names)).key for names in (range(12), [0] * 12, [1] * 12)}
    assert len(keys) == 3
    assert all(key.startswith("groups ") for key in keys)
    assert Division.of(STORE).key == "random"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (None, None),
        ("random", SplitRule("random")),
        ("scaffold", SplitRule("scaffold")),
        ("group:lab", SplitRule("group", "lab")),
        ("time:a:b", SplitRule("time", "a:b")),
        ("column:set", SplitRule("column", "set")),
    ],
)
def test_rules(text, rule):
    assert split_rule(text) == rule


@pytest.mark.parametrize("text", ["", "Scaffold", "scaffold:x", "group", "group:", "week:x", "random:"])
def test_texts_that_are_no_rules(text):
    with pytest.raises(SettingError, match="is not a split: expected random, scaffold, group:COLUMN"):
        split_rule(text)


@pytest.mark.parametrize(
    ("kind", "cells", "message"),
    [
        ("group", ["a", " "], "line 3: the column 'it' is empty, but the split group:it needs a value"),
        ("time", [None, "1"], "line 2: the column 'it' is empty"),
        ("column", ["train", "tset"], "line 3: the column 'it' holds 'tset', expected train, valid or test"),
        ("time", ["2019", "May"], "line 3: the column 'it' holds 'May', expected a number such as 2019, or a date"),
        ("time", ["2019-02-31", "1"], "line 2: the column 'it' holds '2019-02-31', expected a number"),
        ("time", ["inf", "1"], "line 2: the column 'it' holds 'inf', expected a number"),
        ("time", ["2019", "2019-05-01"], "line 3: .* holds the date '2019-05-01', but line 2 has a number"),
    ],
)
def test_cells_that_cannot_be_used(kind, cells, message):
    with pytest.raises(DataError, match=message):
        column_values(SplitRule(kind, "it"), cells, PLACES)


def test_cells():
    def values(kind, *cells):
        return column_values(SplitRule(kind, "it"), cells, PLACES).tolist()

    assert values("column", "Train", " VALID ") == [0, 1]
    assert values("time", "2019", "-3.5") == [2019, -3.5]
    early, late = values("time", "2019-05-01", "2019-05-01T00:00:01Z")
    assert late - early == 1
    assert values("group", " a", "a") == values("group", "a ", "a")


@given(st.lists(st.integers(0, 5), min_size=12, max_size=12))
def test_copies_and_groups_are_joined(groups):
    """Two graphs are together if a chain of groups and copies leads from one to the other."""
    division = Division.of(keep_copies_together(with_split(STORE, groups=groups)))
    assert division.name == "groups+copies"
    assert Division.of(keep_copies_together(STORE)).name == "copies"
    sides = [{groups[i] for i in range(12) if i % 2 == odd} for odd in (0, 1)]
    assert len(set(division.groups.tolist())) == (1 if sides[0] & sides[1] else 2)


def test_isomorphic_graphs_are_copies():
    permuted = [(2, 0), (0, 2), (0, 1), (1, 0)]
    store = pack([Graph(3, PATH), Graph(3, permuted), Graph(3, TRIANGLE), Graph(0), Graph(0), Graph(1)])
    first, second, third, *empty, last = Division.of(keep_copies_together(store)).groups.tolist()
    assert first == second
    assert len({first, third, *empty, last}) == 4


@pytest.mark.parametrize("column", ["time:year", "column:set"])
def test_copies_cannot_be_moved(column):
    store = with_columns(STORE, {column: np.arange(12) % 3})
    with pytest.raises(SettingError, match=f"copies cannot be kept together by the split {column}"):
        keep_copies_together(store)
