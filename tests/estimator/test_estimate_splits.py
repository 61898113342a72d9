"""Estimates on graphs that carry a split."""

import numpy as np
import pytest

from sopool.data import DataError, with_split
from sopool.data.division import Division, with_columns
from sopool.estimator import estimate as estimating
from sopool.estimator import fitting
from sopool.estimator.estimate import InnerFolds, estimate, searched
from tests.helpers.little_classifier import STORE, tiny

GROUPS = np.arange(len(STORE)) // 2


@pytest.fixture
def held_out(monkeypatch):
    """The groups on both sides of each fit."""
    seen = []
    hold_out = fitting.hold_out

    def watched(config, objective, truth, division):
        split = hold_out(config, objective, truth, division)
        seen.append([set(division.groups[part].tolist()) for part in (split.train, split.validation)])
        return split

    monkeypatch.setattr(fitting, "hold_out", watched)
    return seen


def test_groups_stay_together_in_every_fit_of_a_search(held_out, monkeypatch):
    inner = []
    split = InnerFolds.split

    def watched(self, graphs, y=None, groups=None):
        own = Division.of(graphs).groups
        for train, test in split(self, graphs, y, groups):
            inner.append([set(own[part].tolist()) for part in (train, test)])
            yield train, test

    monkeypatch.setattr(InnerFolds, "split", watched)
    model = searched(tiny(n_models=1, epochs=1), {"hidden": [2, 3]})
    found = estimate(model, STORE, folds=2, groups=GROUPS, fold_seed=3)
    assert (found.split, found.to_json()["split"], len(found.folds)) == ("groups", "groups", 2)
    assert len(held_out) == 2 * (2 * 3 + 1)
    assert inner
    for first, second in held_out + inner:
        assert first
        assert second
        assert not first & second


def test_given_folds(monkeypatch):
    trained = []
    fit = estimating.fit_labelled
    monkeypatch.setattr(
        estimating, "fit_labelled", lambda model, store: trained.append(len(store)) or fit(model, store)
    )
    pairs = [(list(range(10, len(STORE))), list(range(10))), (list(range(20)), [20, 21])]
    found = estimate(tiny(n_models=1, epochs=1), STORE, splits=pairs)
    assert (found.split, len(found.folds)) == ("given", 2)
    assert trained == [len(STORE) - 10, 20]


def test_the_seed_of_the_folds():
    model = tiny(n_models=1, epochs=1)
    graphs = estimating.known_graphs(STORE, None, "classes")
    folds = [estimating.estimate_folds(graphs, 3, seed, model)[0][1].tolist() for seed in (0, 0, 1)]
    assert folds[0] == folds[1] != folds[2]


@pytest.mark.parametrize(
    ("store", "grid", "message"),
    [
        (
            with_split(STORE, groups=np.arange(len(STORE)) // 20),
            {},
            "fold 1 of the groups split: .* of 1 group leave no",
        ),
        (
            with_split(STORE, groups=np.arange(len(STORE)) // 10),
            {"hidden": [2, 3]},
            "fold 1 of the groups split: 2 groups cannot be divided into 3 folds",
        ),
        (
            with_columns(STORE, {"time:year": np.arange(len(STORE)) % 3}),
            {},
            "fold 1 of the time:year split: all .* training graphs have the same time",
        ),
    ],
)
def test_what_a_fit_could_not_divide_is_refused_before_training(store, grid, message, held_out):
    with pytest.raises(DataError, match=message):
        estimate(searched(tiny(n_models=1, epochs=1), grid), store, folds=2)
    assert not held_out
