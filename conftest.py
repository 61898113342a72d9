"""Every Python example in README, CONTRIBUTING and docs is run by pytest."""

import pytest
import torch
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser


def setup(namespace):
    torch.manual_seed(0)


def pytest_collection_modifyitems(items):
    """The blocks of a page build on each other: with ``--dist loadgroup`` one worker runs them all."""
    for item in items:
        if item.path.suffix == ".md":
            item.add_marker(pytest.mark.xdist_group(item.path.name))


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "CONTRIBUTING.md", "docs/*.md"],
    setup=setup,
).pytest()
