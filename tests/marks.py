"""Marks that tests of several folders share."""

import pytest

from sopool.ops import backends

needs_triton = pytest.mark.skipif(not backends.installed(), reason="Triton is not installed, or too old")
