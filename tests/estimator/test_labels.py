"""Labels of any type, and what they are scored by."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from sopool.data import DataError, from_pyg, to_pyg
from sopool.data.formats.packed import content_key
from sopool.data.graphs import PackedGraphs
from sopool.data.names import reads
from sopool.estimator import UnseenWarning, validation
from sopool.estimator.validation import as_labels, check_several, label_graphs, number_labels
from tests.helpers.little_classifier import LABELS, NAMED, STORE, tiny

CODES = np.arange(40) % 2
WRAPS = {
    "ints": lambda code: int(code),
    "NumPy's": lambda code: np.int64(code),
    "tensors": lambda code: torch.tensor(code),
    "tensors of one": lambda code: torch.tensor([code]),
    "arrays of one": lambda code: np.array([code]),
    "floats": lambda code: float(code),
    "truth": lambda code: bool(code),
    "some of NumPy's": lambda code: np.int8(code) if code else int(code),
    "some floats": lambda code: np.float32(code) if code else int(code),
    "some truth": lambda code: np.bool_(code) if code else int(code),
}


@pytest.mark.parametrize("form", [list, tuple, iter, lambda some: np.array([*some, None], dtype=object)[:-1]])
@pytest.mark.parametrize("wrap", WRAPS)
def test_numbers_are_the_same_classes_however_they_are_wrapped(wrap, form):
    labels = as_labels(form([WRAPS[wrap](code) for code in CODES]), 40)
    classes, codes = number_labels(labels)
    assert classes.dtype.kind in "bif"
    assert classes.tolist() == [0, 1]
    np.testing.assert_array_equal(codes, CODES)


@example([False, 0, "0"])
@given(st.lists(st.one_of(st.booleans(), st.integers(), st.integers(0, 3).map(str), st.text(max_size=3)), min_size=1))
def test_classes_never_read_alike_and_stand_for_their_labels(values):
    words = {value for value in values if isinstance(value, str)}
    if len(set(values)) < 2 or any(reads(value) in words for value in values if not isinstance(value, str)):
        with pytest.raises(DataError, match=r"look the same in a file|at least two classes"):
            check_several(number_labels(as_labels(values, len(values)))[0])
        return
    labels = as_labels(values, len(values))
    classes, codes = number_labels(labels)
    assert len(set(map(reads, classes.tolist()))) == len(classes)
    assert [classes.tolist()[code] for code in codes] == labels.tolist()
    assert labels.tolist() == values


def test_large_numbers_are_not_rounded():
    values = [2**63, 2**63 + 1, -1]
    assert number_labels(as_labels(values, 3))[0].tolist() == sorted(values)


@pytest.mark.parametrize(
    ("names", "dtype"),
    [((0, 1, 2), "i"), (("b", "c", "a"), "U"), ((7, 3, -1), "i"), (("x", 5, 4), "O"), ((2, 9, "w"), "i")],
)
def test_a_store_keeps_its_numbers_less_those_of_classes_that_no_graph_is_of(names, dtype):
    """They are what numbering the names of its labels would give, whatever the order of its classes."""
    store = replace(STORE, classes=names, labels=torch.tensor([0, 1] * 20))
    own = label_graphs(store)
    named = label_graphs(store, [names[code] for code in store.labels])
    assert own.classes.tolist() == named.classes.tolist() == sorted(names[:2], key=lambda name: (name == "x", name))
    assert own.classes.dtype == named.classes.dtype
    assert own.classes.dtype.kind == dtype
    np.testing.assert_array_equal(own.codes, named.codes)
    assert own.counts.tolist() == [20, 20]
    assert content_key(own.numbered) == content_key(named.numbered)


def test_the_labels_of_a_store_are_never_spelled_out(monkeypatch):
    monkeypatch.setattr(PackedGraphs, "class_labels", property(lambda _: pytest.fail("names were asked for")))
    monkeypatch.setattr(validation, "codes_of", lambda labels, classes: np.arange(len(labels)))  # of two at most
    model = tiny(epochs=1).fit(NAMED)
    assert model.classes_.tolist() == ["even", "odd"]
    assert model.was_trained_on(NAMED)


def test_graphs_that_come_once_are_read_once():
    """Both the graphs and the labels that they carry."""
    model = tiny(epochs=1).fit(graph for graph in to_pyg(STORE))
    assert model.classes_.tolist() == [0, 1]


def test_words_in_an_array_of_objects_are_scored():
    model = tiny().fit(STORE, LABELS.astype(object))
    assert model.classes_.tolist() == ["even", "odd"]
    assert model.score(STORE, LABELS.astype(object)) == (model.predict(STORE) == LABELS).mean()


@pytest.fixture(scope="module")
def model():
    return tiny().fit(STORE, CODES)


@pytest.mark.parametrize("y", [CODES, CODES.astype(float), CODES.astype(bool), CODES.tolist(), torch.tensor(CODES)])
def test_numbers_of_any_type_are_scored(model, y):
    assert model.score(STORE, y) == (model.predict(STORE) == CODES).mean()


def test_without_labels_those_of_the_graphs_are_scored():
    model = tiny().fit(STORE)
    own = model.score(STORE)
    assert own == model.score(STORE, STORE.class_labels)
    assert own == model.score([STORE[i] for i in range(40)])


def test_weights_count_in_the_score(model):
    right = model.predict(STORE) == CODES
    assert model.score(STORE, CODES, sample_weight=right + 1e-9) == pytest.approx(1)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (CODES.astype(str), "'0', '1'; the classes are 0, 1. Some have the same text, but one is a number"),
        (CODES + 7, "40 of 40 labels are not among the model's classes: 7, 8; the classes are 0, 1"),
        (LABELS, "'even', 'odd'; the classes are 0, 1"),
        (CODES / 3, "predicted by GraphRegressor"),
        (CODES[:7], r"shape \[7\] for 40 graphs"),
    ],
)
def test_labels_of_which_none_is_a_class_have_no_score(model, y, message):
    with pytest.raises(DataError, match=message):
        model.score(STORE, y)


def test_some_labels_that_are_no_class_count_as_wrong(model):
    y = np.where(np.arange(40) < 5, 9, CODES)
    with pytest.warns(UnseenWarning, match="5 of 40 labels are not among the model's classes: 9; the"):
        assert model.score(STORE, y) == (model.predict(STORE) == y).mean()


def test_labels_of_graphs_may_be_of_numpys_types():
    graphs = to_pyg(STORE)
    assert from_pyg(graphs, labels=[np.str_(name) for name in LABELS]).classes == ("even", "odd")
    for graph, code in zip(graphs, CODES, strict=True):
        graph.y = np.int64(code)
    assert from_pyg(graphs).classes == (0, 1)
    with pytest.raises(DataError, match="label: the labels contain both 0, of type int, and the string '0'"):
        from_pyg(graphs, labels=[0, 1, "0", 1] * 10)
