from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sopool.data.honest_splits import (
    TEST,
    TRAIN,
    UNUSED,
    VALIDATION,
    check_classes_trained,
    given_folds,
    group_folds,
    group_holdout,
    time_folds,
    time_holdout,
)
from sopool.errors import DataError, SettingError

seeds = st.integers(0, 2**32 - 1)
groups = st.lists(st.integers(-3, 9), min_size=2, max_size=60).map(np.array)
fractions = st.sampled_from([0.05, 0.1, 0.3, 0.6])


def sides(values, *parts):
    """The groups of each part."""
    return [set(values[part].tolist()) for part in parts]


def is_divided(whole, *parts):
    return sorted(np.concatenate(parts).tolist()) == sorted(np.asarray(whole).tolist())


@given(groups, st.integers(2, 5), seeds, st.booleans())
def test_folds_never_divide_a_group(groups, folds, seed, classes):
    assume(len(set(groups.tolist())) >= folds)
    strata = np.arange(len(groups)) % 3 if classes else None
    made = group_folds(groups, folds, seed, strata)
    assert is_divided(range(len(groups)), *(test for _, test in made))
    for train, test in made:
        assert len(train)
        assert len(test)
        assert is_divided(range(len(groups)), train, test)
        ours, theirs = sides(groups, train, test)
        assert not ours & theirs


@given(groups, st.integers(2, 5), seeds)
def test_folds_do_not_depend_on_how_groups_are_numbered(groups, folds, seed):
    assume(len(set(groups.tolist())) >= folds)
    made = group_folds(groups, folds, seed)
    for (_, ours), (_, theirs) in zip(made, group_folds(groups * 2.5 + 7, folds, seed), strict=True):
        assert ours.tolist() == theirs.tolist()


@given(groups, st.integers(2, 5), seeds)
def test_sizes_differ_at_most_by_the_largest_group(groups, folds, seed):
    assume(len(set(groups.tolist())) >= folds)
    sizes = [len(test) for _, test in group_folds(groups, folds, seed)]
    assert max(sizes) - min(sizes) <= np.unique(groups, return_counts=True)[1].max()


@given(st.integers(0, 40), st.integers(2, 5), seeds)
def test_single_graphs_are_stratified(extra, folds, seed):
    """Where each graph is a group, classes are spread as stratified folds spread them, up to one graph."""
    strata = np.repeat([0, 1], [folds + extra, 3 * folds])
    made = group_folds(np.arange(len(strata)), folds, seed, strata)
    counts = np.array([np.bincount(strata[test], minlength=2) for _, test in made])
    assert (np.ptp(counts, axis=0) <= 1).all()


def test_another_seed_gives_other_folds():
    groups = np.arange(60) // 2
    assert len({tuple(group_folds(groups, 5, seed)[0][1].tolist()) for seed in range(5)}) > 1
    assert len({tuple(group_holdout(np.arange(60), groups, 0.1, seed)[1].tolist()) for seed in range(5)}) > 1


@given(groups, st.data(), fractions, seeds, st.booleans())
def test_the_holdout_never_divides_a_group(groups, data, fraction, seed, classes):
    train = np.array(data.draw(st.permutations(range(len(groups)))))[: data.draw(st.integers(2, len(groups)))]
    strata = np.arange(len(groups)) % 2 if classes else None
    try:
        kept, held = group_holdout(train, groups, fraction, seed, strata)
    except DataError:
        # One group, or every group is needed for a class.
        several = len(set(groups[train].tolist())) > 1
        assert not several or classes
        return
    assert len(kept)
    assert len(held)
    assert is_divided(train, kept, held)
    ours, theirs = sides(groups, kept, held)
    assert not ours & theirs
    if classes:
        assert set(strata[kept]) == set(strata[train])


@given(seeds, st.sampled_from([0.1, 0.25, 0.5]))
def test_the_holdout_meets_the_fraction_where_groups_allow(seed, fraction):
    groups = np.repeat(np.arange(40), 5)
    strata = groups % 2
    kept, held = group_holdout(np.arange(200), groups, fraction, seed, strata)
    assert len(held) == 200 * fraction
    assert abs(strata[held].mean() - 0.5) <= 0.25
    assert len(kept) + len(held) == 200


@given(st.lists(st.integers(0, 12), min_size=2, max_size=50).map(np.array), st.integers(1, 5))
def test_training_graphs_are_earlier(times, folds):
    if len(set(times.tolist())) <= folds:
        with pytest.raises(DataError, match="cannot be cut into"):
            time_folds(times, folds)
        return
    made = time_folds(times, folds)
    for train, test in made:
        assert times[train].max() < times[test].min()
    for (before, tested), (after, _) in pairwise(made):
        assert is_divided(after, before, tested)
    assert is_divided(range(len(times)), *made[-1])


def test_periods_are_of_equal_size():
    assert [(len(train), len(test)) for train, test in time_folds(np.arange(100)[::-1], 4)] == [
        (20, 20),
        (40, 20),
        (60, 20),
        (80, 20),
    ]


@given(st.lists(st.integers(0, 12), min_size=2, max_size=50).map(np.array), st.data(), fractions)
def test_the_latest_graphs_are_held_out(times, data, fraction):
    train = np.array(data.draw(st.permutations(range(len(times)))))[: data.draw(st.integers(1, len(times)))]
    if len(set(times[train].tolist())) < 2:
        with pytest.raises(DataError, match="have the same time"):
            time_holdout(train, times, fraction)
        return
    kept, held = time_holdout(train, times, fraction)
    assert is_divided(train, kept, held)
    assert times[kept].max() < times[held].min()


def test_as_many_latest_graphs_as_wanted():
    assert time_holdout(np.arange(12), np.arange(12) // 3, 0.3)[1].tolist() == [9, 10, 11]
    assert time_holdout(np.arange(20), np.arange(20), 0.1)[1].tolist() == [18, 19]


def test_given_parts():
    parts = np.array([[TRAIN, TEST], [VALIDATION, TRAIN], [TEST, UNUSED]])
    found = [(train.tolist(), test.tolist()) for train, test in given_folds(parts)]
    assert found == [([0, 1], [2]), ([1], [0])]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: group_folds(np.array([1, 1, 2]), 3), DataError, "2 groups cannot be divided into 3 folds"),
        (lambda: group_folds(np.array([]), 2), DataError, "0 groups cannot be divided into 2 folds"),
        (lambda: group_folds(np.array([1, 2]), 1), SettingError, "1 folds were requested, expected at least 2"),
        (lambda: group_holdout(np.arange(3), np.zeros(3)), DataError, "of 1 group leave no group to hold out"),
        (lambda: group_holdout(np.arange(3), np.arange(3), 1.0), SettingError, "a fraction of 1.0 cannot be held out"),
        (lambda: time_holdout(np.arange(3), np.arange(3), 0.0), SettingError, "a fraction of 0.0 cannot be held out"),
        (lambda: time_folds(np.arange(3), 0), SettingError, "0 folds were requested, expected at least 1"),
        (lambda: given_folds(np.array([[TEST], [VALIDATION]])), DataError, "fold 1 .* has no training graphs"),
        (lambda: given_folds(np.array([[TRAIN], [UNUSED]])), DataError, "fold 1 .* has no test graphs"),
        (
            lambda: check_classes_trained([(np.array([0]), np.array([1]))], np.array([0, 1]), ["common", "rare"]),
            DataError,
            "fold 1 of the split has no training graph of class 'rare'",
        ),
    ],
)
def test_splits_that_cannot_be(make, error, message):
    with pytest.raises(error, match=message):
        make()
