from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold, train_test_split

from sopool.data.formats.tu import read_tu
from sopool.data.splits import holdout, stratified_folds
from sopool.errors import DataError, UserError
from tests.helpers.shared import DATA, needs_data, published_folds

read = cache(lambda name: read_tu(DATA / f"{name}.zip"))
seeds = st.integers(0, 2**32 - 1)


@st.composite
def classes(draw, smallest):
    """The class of each graph, numbers in any order, two classes or more."""
    sizes = draw(st.lists(st.integers(smallest, 15), min_size=2, max_size=4))
    return np.array(draw(st.permutations(np.repeat(np.arange(len(sizes)), sizes).tolist())))


def as_lists(folds):
    return [[None if part is None else part.tolist() for part in fold] for fold in folds]


@given(st.data(), st.integers(2, 6), seeds)
def test_folds_are_those_of_scikit_learn(data, folds, seed):
    labels = data.draw(classes(smallest=folds))
    theirs = StratifiedKFold(folds, shuffle=True, random_state=seed).split(labels, labels)
    ours = stratified_folds(labels, folds, seed)
    assert as_lists(ours) == as_lists(theirs)
    names = np.array(["zinc", "argon", "tin", "iron"])[labels]  # not in the order of the numbers
    for same in (torch.from_numpy(labels), labels.tolist(), names, names.tolist()):
        assert as_lists(stratified_folds(same, folds, seed)) == as_lists(ours)


@given(st.data(), st.integers(2, 6), seeds)
def test_every_graph_is_tested_once_and_classes_are_spread(data, folds, seed):
    labels = data.draw(classes(smallest=folds))
    made = stratified_folds(labels, folds, seed)
    assert sorted(np.concatenate([test for _, test in made])) == list(range(len(labels)))
    for train, test in made:
        assert sorted([*train, *test]) == list(range(len(labels)))
    counts = np.array([np.bincount(labels[test], minlength=labels.max() + 1) for _, test in made])
    assert (np.ptp(counts, axis=0) <= 1).all()


def test_defaults():
    labels = np.arange(60) % 3
    assert as_lists(stratified_folds(labels)) == as_lists(stratified_folds(labels, folds=10, seed=0))
    assert as_lists(stratified_folds(labels)) != as_lists(stratified_folds(labels, seed=1))
    assert as_lists([holdout(range(60), labels)]) == as_lists([holdout(range(60), labels, fraction=0.1, seed=0)])


@pytest.mark.parametrize(
    ("labels", "folds", "message"),
    [
        ([0] * 9 + [1] * 4, 5, r"class 1 has fewer graphs \(4\) than there are folds \(5\): use fewer folds"),
        (
            ["common"] * 9 + ["rare"],
            2,
            r"class 'rare' has fewer graphs \(1\) than there are folds \(2\): merge or drop",
        ),
        (
            [0] * 9 + [1, 1, 2, 2],
            3,
            r"class 1 .*\(3\), and so has another class: use fewer folds, or merge or drop such",
        ),
        (["0.1", "0.2", "0.3"], 2, r"and so have 2 other classes. 3 classes of 3 graphs: are these labels classes or"),
        (torch.tensor([3, 3, 3]), 2, "all are of class 3: graphs of at least two classes are needed"),
        ([], 2, "there are no graphs: graphs of at least two classes are needed"),
        ([0, 1] * 9, 1, "1 folds were requested, expected at least 2"),
        ([0, 1] * 9, -3, "-3 folds were requested"),
        (torch.zeros(4, 1), 2, r"labels have shape \[4, 1\], expected one label for each graph"),
        (np.array(3), 2, r"labels have shape \[\], expected one label for each graph"),
    ],
)
def test_folds_that_cannot_be_made(labels, folds, message):
    with pytest.raises(UserError, match=message):
        stratified_folds(labels, folds)


def test_messages_name_numbered_classes():
    with pytest.raises(DataError, match="class 'rare' has fewer graphs"):
        stratified_folds([0] * 9 + [1], 2, names=["common", "rare"])


@given(classes(smallest=1), st.data(), st.sampled_from([0.05, 0.1, 0.25, 0.5, 0.9]), seeds)
def test_holdout_is_that_of_scikit_learn(labels, data, fraction, seed):
    """Where scikit-learn can divide, the result is the same; where it cannot, the error is our own."""
    train = np.array(data.draw(st.permutations(range(len(labels)))))[: data.draw(st.integers(1, len(labels)))]
    of_train = labels[train]
    try:
        kept, aside = train_test_split(train, test_size=fraction, stratify=of_train, random_state=seed)
    except ValueError:
        with pytest.raises(DataError):
            holdout(train, labels, fraction, seed)
        return
    if len(np.unique(of_train)) < 2:
        with pytest.raises(DataError, match="graphs of at least two classes are needed"):
            holdout(train, labels, fraction, seed)
        return
    for same in (labels, torch.from_numpy(labels), labels.tolist()):
        ours = holdout(train, same, fraction, seed)
        assert as_lists([ours]) == [[sorted(kept.tolist()), sorted(aside.tolist())]]
    assert as_lists([holdout(train.tolist(), labels, fraction, seed)]) == as_lists([ours])


@given(classes(smallest=8), st.sampled_from([0.25, 0.4, 0.5]), seeds)
def test_holdout_is_stratified_disjoint_and_complete(labels, fraction, seed):
    train = np.arange(1, len(labels))
    kept, aside = holdout(train, labels, fraction, seed)
    assert sorted([*kept, *aside]) == train.tolist()
    assert len(aside) == np.ceil(fraction * len(train))
    shares = np.bincount(labels[train]) * len(aside) / len(train)
    assert (abs(np.bincount(labels[aside], minlength=len(shares)) - shares) <= 1).all()
    assert as_lists([holdout(train, labels, fraction, seed)]) == as_lists([(kept, aside)])


@pytest.mark.parametrize(
    ("labels", "fraction", "message"),
    [
        ([0, 1] * 9, 0.0, "a fraction of 0.0 cannot be held out: expected a number between 0 and 1"),
        ([0, 1] * 9, 1, "a fraction of 1 cannot be held out"),
        ([0, 1] * 9, float("nan"), "a fraction of nan cannot be held out"),
        ([0] * 9, 0.5, "all are of class 0: graphs of at least two classes"),
        ([0] * 9 + [7], 0.5, "class 7 has a single training graph"),
        ([0, 1] * 9, 0.05, "5 % of 18 training graphs is 1, which leaves some of the 2 classes"),
        ([0, 1] * 9, 0.95, "95 % of 18 training graphs is 18, which leaves some"),
        ([[0, 1]] * 9, 0.5, r"labels have shape \[9, 2\]"),
    ],
)
def test_holdouts_that_cannot_be(labels, fraction, message):
    with pytest.raises(UserError, match=message):
        holdout(range(len(labels)), labels, fraction)
    with pytest.raises(DataError, match="there are no graphs: graphs of at least two classes are needed"):
        holdout([], [0, 1], 0.5)


LEFT_OUT = {"MUTAG": (188, 8), "PTC": (344, 4), "PROTEINS": (1113, 3), "NCI1": (4110, 0), "DD": (1178, 8)}
LEFT_OUT |= {"COLLAB": (5000, 0), "IMDB-BINARY": (1000, 0), "IMDB-MULTI": (1500, 0), "REDDIT-BINARY": (2000, 0)}


@needs_data
@pytest.mark.parametrize("name", LEFT_OUT)
def test_published_folds(name):
    graphs, left_out = LEFT_OUT[name]
    folds = published_folds(name, graphs)
    tested = np.concatenate([test for _, test in folds])
    assert (len(folds), len(tested), len(np.unique(tested))) == (10, graphs - left_out, graphs - left_out)
    assert all(np.array_equal(np.union1d(*fold), np.arange(graphs)) for fold in folds)
    assert all(len(train) + len(test) == graphs for train, test in folds)


@needs_data
def test_folds_of_mutag():
    labels = read("MUTAG").labels
    folds = stratified_folds(labels)
    assert [len(test) for _, test in folds] == [19] * 8 + [18] * 2
    train, validation = holdout(folds[0][0], labels)
    assert (len(train), len(validation)) == (152, 17)
    assert np.array_equal(np.union1d(train, validation), folds[0][0])


@pytest.mark.parametrize("wrong", [-1, 4])
def test_holdout_of_graphs_that_are_not_there(wrong):
    with pytest.raises(DataError, match=f"there is no graph {wrong} to train on: there are 4"):
        holdout([0, 1, 2, wrong], [0, 0, 1, 1], 0.5)
