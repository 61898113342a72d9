"""The scripts that the documentation names can be started: what they import is there."""

import runpy
from pathlib import Path
from unittest import mock

import pytest

from sopool.nn import READOUTS

SCRIPTS = sorted((Path(__file__).resolve().parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_is_read_without_an_error(script, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(script.parent)
    with mock.patch.dict(READOUTS):  # some add their own
        assert runpy.run_path(str(script))["__doc__"]
