"""No group is on two sides, at any level: folds, held-out graphs and the inner folds of a search."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopool.data import Graph, pack, with_split
from sopool.data.division import Division, with_columns
from sopool.errors import DataError
from sopool.estimator.estimate import InnerFolds
from sopool.estimator.fitting import hold_out
from sopool.models import ModelConfig
from sopool.objectives import SingleLabel
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import RunConfig

LABELS = np.arange(60) % 2
STORE = pack([Graph(1, label=int(label)) for label in LABELS])
CONFIG = RunConfig("toy", "0", "", ModelConfig(), 0)
OBJECTIVE = SingleLabel((0, 1))


def run(division, **given):
    return replace(CONFIG, split=division.key, **given)


def apart(values, *parts):
    sides = [set(values[part].tolist()) for part in parts]
    return sum(map(len, sides)) == len(set.union(*sides))


@st.composite
def grouped(draw):
    """Each graph's group; there are enough of them for every level."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=60, max_size=60))
    groups = np.repeat(np.arange(60), sizes)[:60]
    return groups[draw(st.permutations(range(60)))]


@settings(deadline=None)
@given(grouped(), st.integers(2, 4), st.integers(0, 9), st.integers(0, 9), st.booleans())
def test_groups_are_never_divided(groups, folds, split_seed, seed, classes):
    store = with_split(STORE, groups=groups)
    division = Division.of(store)
    splitter = Splitter(LABELS if classes else None, (0, 1), 60, division)
    tested = []
    for fold in range(folds):
        given = {"fold": fold, "folds": folds, "split_seed": split_seed, "seed": seed}
        for looks in ("validation", "chosen"):
            train, validation, test = splitter(run(division, looks=looks, **given))
            assert len(validation)
            assert sorted([*train, *validation, *test]) == list(range(60))
            assert apart(groups, train, validation, test)
        tested += test.tolist()
        # What the estimator does with the training graphs of a fold.
        outer = np.union1d(train, validation)
        inside = Division.of(store[outer.tolist()])
        for inner, choosing in InnerFolds().split(store[outer.tolist()], LABELS[outer] if classes else None):
            assert apart(groups[outer], inner, choosing)
            own = inside.take(inner)
            split = hold_out(replace(CONFIG, seed=seed), OBJECTIVE, LABELS[outer][inner], own)
            assert len(split.validation)
            assert apart(groups[outer][inner], split.train, split.validation)
    assert sorted(tested) == list(range(60))


@settings(deadline=None)
@given(st.lists(st.integers(0, 99), min_size=60, max_size=60, unique_by=lambda time: time), st.integers(1, 3))
def test_what_is_trained_on_is_earlier_at_every_level(times, folds):
    times = np.array(times)
    store = with_columns(STORE, {"time:year": times})
    division = Division.of(store)
    splitter = Splitter(None, None, 60, division)
    for fold in range(folds):
        train, validation, test = splitter(run(division, fold=fold, folds=folds, looks="chosen"))
        assert times[train].max() < times[validation].min()
        assert times[validation].max() < times[test].min()
        outer = np.union1d(train, validation)
        for inner, choosing in InnerFolds().split(store[outer.tolist()]):
            assert times[outer][inner].max() < times[outer][choosing].min()


def test_the_given_validation_graphs_are_held_out():
    parts = np.repeat([0, 1, 2], 20)
    division = Division.of(with_columns(STORE, {"column:set": parts}))
    splitter = Splitter(LABELS, (0, 1), division=division)
    for repeat in range(3):
        split = splitter(run(division, folds=1, repeat=repeat, looks="chosen"))
        assert [part.tolist() for part in split] == [np.flatnonzero(parts == code).tolist() for code in range(3)]
    own = hold_out(CONFIG, OBJECTIVE, LABELS, division)
    assert own.validation.tolist() == list(range(20, 40))  # of a model that is trained on all graphs


def test_without_validation_graphs_a_tenth_is_held_out():
    parts = np.repeat([0, 2], 30)
    division = Division.of(with_columns(STORE, {"column:set": parts}))
    split = Splitter(LABELS, (0, 1), division=division)(run(division, folds=1, looks="chosen"))
    assert (len(split.train), len(split.validation), len(split.test)) == (27, 3, 30)


def test_a_run_is_not_trained_on_another_split():
    division = Division.of(with_split(STORE, groups=range(60)))
    with pytest.raises(DataError, match="is for the split 'random', but the graphs carry the split 'groups "):
        Splitter(LABELS, (0, 1), division=division)(CONFIG)
    with pytest.raises(DataError, match=r"is for the split 'groups .*, but the graphs carry the split 'random'"):
        Splitter(LABELS, (0, 1))(run(division))


def test_the_key_of_a_run_on_random_folds_does_not_name_the_split():
    assert "split" not in CONFIG.canonical()
    one = replace(CONFIG, split="group:my lab 0123456789ab")
    assert one.key != CONFIG.key
    assert RunConfig.from_json(one.to_json()) == one
    assert (CONFIG.split_name, one.split_name) == ("random", "group:my lab")


def test_classes_must_be_in_every_training_set():
    labels = np.repeat([0, 1], [50, 10])
    division = Division.of(with_split(STORE, groups=np.repeat(np.arange(6), 10)))
    with pytest.raises(DataError, match="has no training graph of class 'rare'"):
        Splitter(labels, ("common", "rare"), division=division).check(3, held_out=False)
