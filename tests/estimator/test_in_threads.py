"""Several threads that fit and predict at the same time get what one thread alone gets."""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch

from sopool.training.bank.bank import new_model
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.training_graphs import run_config

THREADS = 8
ROUNDING = 1e-3
"""Each fit makes the same sequence of calls in one thread of PyTorch, so in practice all bits agree. But a BLAS does
not promise that of calls that run side by side, and training magnifies rounding. Other weights to start from change
probabilities by much more, of which the test below makes sure."""


@pytest.fixture
def eager_switches():
    """Switch between threads as often as possible, so that a race is met rather than missed."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def side_by_side(work, times):
    """What ``work`` gives in each of several threads that start together, again and again."""
    start = Barrier(THREADS, timeout=60)

    def repeat(_):
        start.wait()
        return [work() for _ in range(times)]

    with ThreadPoolExecutor(THREADS) as pool:
        return [found for results in pool.map(repeat, range(THREADS)) for found in results]


def test_first_weights_follow_from_the_seed(eager_switches):
    """To the bit: drawing is no matter of arithmetic that an order could change."""
    config = run_config(seed=3)
    expected = new_model(config, 5, 2).state_dict()
    for model in side_by_side(lambda: new_model(config, 5, 2), times=12):
        found = model.state_dict()
        assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_fits_follow_from_the_random_state(eager_switches):
    def work():
        model = tiny(epochs=1, steps=2, random_state=3)
        return model.fit(STORE, LABELS).predict_proba(STORE)

    expected = work()
    other = tiny(epochs=1, steps=2, random_state=4).fit(STORE, LABELS).predict_proba(STORE)
    assert np.abs(other - expected).max() > 10 * ROUNDING
    for found in side_by_side(work, times=2):
        np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING)
