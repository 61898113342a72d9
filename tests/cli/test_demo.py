import sys

import pytest

from sopool.cli import demo
from sopool.training.runs.store import RunStore


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(demo, "EPOCHS", 1)
    monkeypatch.setattr(demo, "STEPS", 1)
    monkeypatch.setattr(demo, "HIDDEN", (2, 4))


def test_demo(quick, call, tmp_path, monkeypatch):
    shown = call("demo")
    assert shown.code == 0, shown.err
    for words in ("188 molecules", "Gain over sum-avg", "What this means", "1 epochs", "Try next: sopool evaluate"):
        assert words in shown.out
    assert {path.name for path in tmp_path.iterdir()} == {"sopool-demo"}
    assert {path.name for path in (tmp_path / "sopool-demo").iterdir()} == {"runs", "curves.svg"}
    assert len(RunStore(tmp_path / "sopool-demo" / "runs").list()) == 100

    (tmp_path / "sopool-demo" / "curves.svg").unlink()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    again = call("demo")
    assert again.code == 0
    assert "Nothing to train" in again.out
    assert "the learning curves were not plotted: plotting needs matplotlib, which is not installed" in again.err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/curves.svg", "the folder nowhere does not exist"),
        ("curves.txt", "must end in .svg or .png, not '.txt'"),
    ],
)
def test_a_picture_that_cannot_be_written(name, message, call, tmp_path):
    shown = call("demo", "--plot", name)
    assert shown.code == 2
    assert message in shown.err
    assert not any(tmp_path.rglob("runs"))
