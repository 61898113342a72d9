"""Labels of any type, and what they are scored by."""

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from sopool.data import DataError, from_pyg, to_pyg
from sopool.data.names import reads
from sopool.estimator import UnseenWarning
from sopool.estimator.validation import as_labels, number_classes
from tests.helpers.little_classifier import LABELS, STORE, tiny

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
    classes, codes = number_classes(labels)
    assert classes.dtype.kind in "bif"
    assert classes.tolist() == [0, 1]
    np.testing.assert_array_equal(codes, CODES)


@example([False, 0, "0"])
@given(st.lists(st.one_of(st.booleans(), st.integers(), st.integers(0, 3).map(str), st.text(max_size=3)), min_size=1))
def test_classes_never_read_alike_and_stand_for_their_labels(values):
    words = {value for value in values if isinstance(value, str)}
    if len(set(values)) < 2 or any(reads(value) in words for value in values if not isinstance(value, str)):
        with pytest.raises(DataError, match=r"read alike|at least two classes"):
            number_classes(as_labels(values, len(values)))
        return
    labels = as_labels(values, len(values))
    classes, codes = number_classes(labels)
    assert len(set(map(reads, classes.tolist()))) == len(classes)
    assert [classes.tolist()[code] for code in codes] == labels.tolist()
    assert labels.tolist() == values


def test_large_numbers_are_not_rounded():
    values = [2**63, 2**63 + 1, -1]
    assert number_classes(as_labels(values, 3))[0].tolist() == sorted(values)


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
        (CODES.astype(str), "'0', '1'; the classes are 0, 1. They read alike, but some are numbers and some are words"),
        (CODES + 7, "40 of 40 labels are none of the model's classes: 7, 8; the classes are 0, 1"),
        (LABELS, "'even', 'odd'; the classes are 0, 1"),
        (CODES / 3, "for regression"),
        (CODES[:7], r"shape \[7\] for 40 graphs"),
    ],
)
def test_labels_of_which_none_is_a_class_have_no_score(model, y, message):
    with pytest.raises(DataError, match=message):
        model.score(STORE, y)


def test_some_labels_that_are_no_class_count_as_wrong(model):
    y = np.where(np.arange(40) < 5, 9, CODES)
    with pytest.warns(UnseenWarning, match="5 of 40 labels are none of the model's classes: 9; the classes are 0, 1"):
        assert model.score(STORE, y) == (model.predict(STORE) == y).mean()


def test_labels_of_graphs_may_be_of_numpys_types():
    graphs = to_pyg(STORE)
    assert from_pyg(graphs, labels=[np.str_(name) for name in LABELS]).classes == ("even", "odd")
    for graph, code in zip(graphs, CODES, strict=True):
        graph.y = np.int64(code)
    assert from_pyg(graphs).classes == (0, 1)
    with pytest.raises(DataError, match="label: both 0, of type int, and the text '0'"):
        from_pyg(graphs, labels=[0, 1, "0", 1] * 10)
