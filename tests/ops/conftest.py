import importlib.util

import pytest

from sopool.ops import compiled


@pytest.fixture(params=["loops", "torch"], autouse=True)
def way(request, monkeypatch):
    """Each test runs with the compiled loops and without them."""
    if request.param == "loops" and importlib.util.find_spec("numba") is None:
        pytest.skip("Numba is not installed")
    really = compiled.serves
    monkeypatch.setattr(compiled, "serves", lambda x: request.param == "loops" and really(x))
