"""A graph's prediction does not depend on the graphs predicted beside it, nor on their order, up to rounding."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool._runtime.threads import threads
from tests.helpers.little_classifier import LABELS, STORE, tiny

ROUNDING = 1e-4
"""In single precision, on any processor: a product of matrices may be added up in another order for another number of
rows. Sums of some hundred terms are off by 1e-5 of their size at most, and by 1e-7 as a rule. What a graph would see of
its company, such as the statistics of a batch, changes probabilities a hundred times as much. (In double precision,
where rounding cannot hide it, tests/models/test_contract.py holds every kind of model to the same.)"""
POOLS = {
    "default": {},
    "matrix-sqrt": {"pool_options": {"rank": 4, "normalize": "matrix-sqrt"}},
    "sum": {"pool": "sum"},
    "covpool": {"pool": "covpool", "pool_options": {"rank": 4}},
    "clusters": {"pool": "diffpool", "blocks": 2, "pool_options": {"clusters": 3}},
}
some_graphs = st.lists(st.integers(0, len(STORE) - 1), min_size=1, max_size=12)


@cache
def fitted(name):
    """A model, and the probabilities of each graph by itself."""
    model = tiny(**POOLS[name]).fit(STORE, LABELS)
    return model, np.concatenate([model.predict_proba(STORE[[graph]]) for graph in range(len(STORE))])


@pytest.mark.filterwarnings("ignore::sopool.estimator.validation.UnseenWarning")
@pytest.mark.parametrize("name", POOLS)
@given(some_graphs, st.integers(1, 3))
def test_company_changes_rounding_only(name, graphs, cores):
    model, alone = fitted(name)
    with threads(cores):
        found = model.predict_with_uncertainty(STORE[graphs])
    np.testing.assert_allclose(found.probabilities, alone[graphs], rtol=0, atol=ROUNDING)
    sure = np.abs(alone[graphs] - 0.5).min(1) > ROUNDING
    np.testing.assert_array_equal(found.labels[sure], model.classes_[alone[graphs].argmax(1)][sure])
