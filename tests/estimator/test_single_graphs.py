"""Classes of which there is one graph only: it is trained on, and never held out."""

import numpy as np
import pytest

from sopool.estimator import SingleGraphWarning, fitting
from tests.helpers.little_classifier import LABELS, STORE, tiny


@pytest.fixture
def splits(monkeypatch):
    """Those of the models that are trained."""
    seen = []
    hold_out = fitting.hold_out
    monkeypatch.setattr(fitting, "hold_out", lambda *given: seen.append(hold_out(*given)) or seen[-1])
    return seen


def test_it_is_always_trained_on(splits):
    labels = np.array(["only", *LABELS[1:]])
    with pytest.warns(SingleGraphWarning) as caught:
        model = tiny(n_models=5).fit(STORE, labels)
    assert [str(one.message) for one in caught] == [
        "class 'only' has a single graph, which is used for training and never held out; the best epoch is chosen on "
        "graphs of the other classes."
    ]
    assert model.classes_.tolist() == ["even", "odd", "only"]
    assert len(splits) == 5
    for split in splits:
        assert 0 in split.train
        assert set(labels[split.validation]) == {"even", "odd"}
        assert sorted([*split.train, *split.validation]) == list(range(40))


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["one"] + ["two"] * 39, "class 'one' has a single graph, .* the last epoch is kept"),
        (list(range(40)), r"40 classes have a single graph each \(0, 1, .*, 9, \.\.\.\)"),
    ],
)
def test_without_two_other_classes_nothing_is_held_out(splits, labels, said):
    with pytest.warns(SingleGraphWarning, match=said):
        model = tiny().fit(STORE, labels)
    assert all(len(split.train) == 40 and not len(split.validation) for split in splits)
    assert model.best_epochs_ == [2, 2]


def test_where_nothing_is_held_out_there_is_nothing_to_say():
    tiny(validation_fraction=0).fit(STORE, ["only", *LABELS[1:]])  # warnings are errors here
