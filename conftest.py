"""Every Python example in README, CONTRIBUTING and docs is run by pytest."""

import torch
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser


def setup(namespace):
    torch.manual_seed(0)


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "CONTRIBUTING.md", "docs/*.md"],
    setup=setup,
).pytest()
