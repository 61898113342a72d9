"""Every target on inputs that hypothesis makes: a few in ``make test``, many in ``make test-all``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.mutation import inputs
from tests.fuzz.registry import load_targets

EACH = pytest.mark.parametrize(
    "target",
    [
        pytest.param(one, id=name, marks=pytest.mark.skipif(one.missing, reason=f"needs {one.needs}"))
        for name, one in load_targets().items()
    ],
)


@EACH
def test_the_seeds_are_fine(target):
    assert target.seeds
    for seed in target.seeds:
        assert target.run(seed) is None


@EACH
@given(st.data())
def test_whatever_the_bytes_no_error_but_our_own(target, data):
    target.run(data.draw(inputs(target)))
