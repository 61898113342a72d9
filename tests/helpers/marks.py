"""Marks that tests of several folders share."""

import os

import pytest

from sopool.ops import backends

starts_processes = pytest.mark.skipif("SOPOOL_TEST_FAST" in os.environ, reason="starts a process: runs in make test")
"""For tests that would be broken off half-way where ``make test-fast`` refuses a process."""

needs_triton = pytest.mark.skipif(not backends.installed(), reason="Triton is not installed, or too old")
