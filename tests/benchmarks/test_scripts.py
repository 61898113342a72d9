"""The scripts that the documentation names can be started: what they import is there."""

import importlib
from pathlib import Path
from unittest import mock

import pytest

import benchmarks
from sopool.nn import READOUTS

SCRIPTS = sorted(path.stem for path in Path(benchmarks.__file__).parent.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("script", SCRIPTS)
def test_it_is_imported_without_an_error(script):
    pytest.importorskip("matplotlib")
    with mock.patch.dict(READOUTS):  # some add their own
        assert importlib.import_module(f"benchmarks.{script}").__doc__
