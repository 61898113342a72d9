import importlib.util

import numpy as np
import pytest
import torch
from hypothesis import settings
from torch.autograd import gradcheck, gradgradcheck

from sopool.ops import backends
from sopool.ops.numba import dispatch as compiled
from tests.helpers.backends import derivatives

# Triton's interpreter takes most of the time, so that a test runs in it every day only if it says so (``every_way``).
WAYS = ["loops", "torch", pytest.param("triton", marks=pytest.mark.slow)]


@pytest.fixture(params=WAYS, autouse=True)
def way(request, monkeypatch):
    """Each test runs with the compiled loops, without them, and with Triton's kernels, on a CPU in its interpreter."""
    if request.param == "loops" and importlib.util.find_spec("numba") is None:
        pytest.skip("Numba is not installed")
    if request.param == "triton" and not backends.installed():
        pytest.skip("Triton is not installed, or too old")
    really = compiled.serves
    monkeypatch.setattr(compiled, "serves", lambda x: request.param == "loops" and really(x))
    if request.param != "triton":
        yield request.param
        return
    if getattr(request.function, "is_hypothesis_test", False):
        # Settings are bound to a test, and this one is the same function for all ways.
        few = settings.get_profile("interpreted")
        monkeypatch.setattr(request.function, "_hypothesis_internal_use_settings", few)
    with backends.backend("triton"), np.errstate(all="ignore"):  # what kernels mask out may be anything
        yield request.param


@pytest.fixture
def check_gradients(way):
    """First and second derivatives: those of finite differences; for kernels those of the other way, far quicker."""

    def by_differences(function, inputs, twice=True):
        assert gradcheck(function, inputs)
        assert not twice or gradgradcheck(function, inputs)

    def by_the_other_way(function, inputs, twice=True):
        with backends.backend("torch"):
            want = derivatives(function, inputs, twice)
        torch.testing.assert_close(derivatives(function, inputs, twice), want)

    return by_the_other_way if way == "triton" else by_differences
