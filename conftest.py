"""Every Python example in README, CONTRIBUTING and docs is run by pytest, those of a page in a folder of their own."""

import os
import tempfile
from pathlib import Path

import torch
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser


def setup(namespace):
    torch.manual_seed(0)
    namespace["_before"] = Path.cwd()
    namespace["_folder"] = tempfile.TemporaryDirectory()
    os.chdir(namespace["_folder"].name)


def teardown(namespace):
    os.chdir(namespace["_before"])
    namespace["_folder"].cleanup()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "CONTRIBUTING.md", "docs/*.md"],
    setup=setup,
    teardown=teardown,
).pytest()
