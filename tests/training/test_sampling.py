"""Batches drawn without replacement, each run by itself."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sopool.training.bank.sampling import draw_batches


@given(st.lists(st.integers(3, 40), min_size=1, max_size=4), st.integers(1, 3), st.integers(0, 9), st.integers(1, 6))
def test_a_batch_names_no_graph_twice_and_only_training_graphs(sizes, batch, epoch, steps):
    trains = [np.arange(size) * 7 + 1 for size in sizes]
    graphs, keys = draw_batches(range(len(sizes)), epoch, trains, steps, batch)
    assert graphs.shape == (steps, len(sizes), batch)
    assert keys.shape == (steps, len(sizes))
    for run, train in enumerate(trains):
        for step in graphs[:, run]:
            assert len(set(step)) == batch
            assert set(step) <= set(train)


def test_a_run_draws_the_same_whatever_is_drawn_beside_it():
    trains = [np.arange(20), np.arange(5, 30), np.arange(17)]
    together = draw_batches([3, 4, 5], 6, trains, 8, 12)
    for run, train in enumerate(trains):
        alone = draw_batches([3 + run], 6, [train], 8, 12)
        assert np.array_equal(alone.graphs[:, 0], together.graphs[:, run])
        assert np.array_equal(alone.keys[:, 0], together.keys[:, run])


def test_another_epoch_or_seed_draws_other_batches():
    train = [np.arange(50)]
    first, later, other = (draw_batches([seed], epoch, train, 4, 10).graphs for seed, epoch in ((0, 0), (0, 1), (1, 0)))
    assert not np.array_equal(first, later)
    assert not np.array_equal(first, other)


def test_the_whole_training_set_may_be_one_batch():
    graphs = draw_batches([0], 0, [np.arange(9)], 3, 9).graphs
    assert np.array_equal(np.sort(graphs, axis=-1), np.broadcast_to(np.arange(9), (3, 1, 9)))


def test_every_subset_is_as_likely():
    """Of 6 graphs, 3 at a time: 20 subsets, 20,000 draws; each comes 1,000 times, give or take five deviations."""
    graphs = np.sort(draw_batches([11], 0, [np.arange(6)], 20_000, 3).graphs[:, 0], axis=1)
    _, counts = np.unique(graphs, axis=0, return_counts=True)
    assert len(counts) == 20
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000 * 0.95)
