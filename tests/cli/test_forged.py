"""Commands that are given files which sopool did not write say what is wrong with them, and never trace back."""

import json
import os

import pytest

from sopool.training.runs.store import RunStore
from tests.helpers.forging import facts_of, forge
from tests.helpers.stores import fill


@pytest.fixture
def forged(model, tmp_path):
    """A model whose layers have no width."""
    content = model.read_bytes()
    facts = facts_of(content)
    facts["config"]["hidden"] = 0
    path = tmp_path / "forged.sopool"
    path.write_bytes(forge(content, facts=json.dumps(facts)))
    return path


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_a_model_that_cannot_be(call, graphs, forged, command):
    row = ["--graph", "0"] if command == "explain" else []
    shown = call(command, forged, graphs, *row)
    assert (shown.code, shown.out) == (2, "")
    assert "config.hidden is 0, expected a whole number from 1 to 65536" in shown.err.replace("\n", " ")
    os.mkfifo("pipe")
    for path in ("pipe", "/dev/zero"):
        shown = call(command, path, graphs, *row)
        assert shown.code == 2
        assert "expected a regular file" in shown.err.replace("\n", " ")


def test_a_store_with_a_forged_run(call, tmp_path):
    store = fill(tmp_path / "runs", pools=[("sum", 0.7)], looks=("test",), hidden=(8,), folds=2, epochs=2)
    first, second = (tmp_path / "runs" / info.key for info in store.list())
    curves = (first / "curves.safetensors").read_bytes()
    facts = facts_of(curves) | {"stopped": [1]}
    (first / "curves.safetensors").write_bytes(forge(curves, facts=json.dumps(facts)))
    (second / "config.json").write_text('{"a":' * 10**5)
    assert [info.kind for info in RunStore(tmp_path / "runs").list()] == ["unreadable", "unreadable"]
    assert call("runs").code == 0
    assert call("runs", "--all").code == 0
    assert call("runs", "compare", first.name, second.name).code == 2
    shown = call("report", "runs", "-o", "report.html")
    assert (shown.code, shown.out) == (2, "")
    assert "there is no complete run in this folder" in shown.err.replace("\n", " ")
