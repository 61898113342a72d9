"""``--max-atoms``, wherever molecules are read."""

import pytest

from tests.cli.conftest import QUICK

pytest.importorskip("rdkit", reason="needs RDKit, the extra chem")

RING = "C1" + "C" * 9996 + "C1"


def words(shown):
    return " ".join(shown.err.split())


@pytest.mark.filterwarnings("always:.*skipped")
def test_one_large_molecule_takes_no_command_down(model, call, tmp_path):
    (tmp_path / "m.csv").write_text(f"smiles,label\nC,no\n{RING},yes\nCCO,yes\n")
    shown = call("inspect", "m.csv")
    assert shown.code == 0
    assert "1 of 3 molecules skipped" in words(shown)
    assert "The molecule has 9,998 atoms, but the limit is 1,000." in words(shown)
    shown = call("predict", model, "m.csv", "-o", "out.csv")
    assert shown.code == 0
    assert "line 3: The molecule has 9,998 atoms, but the limit is 1,000." in words(shown)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + 2
    assert call("predict", model, "m.csv", "-o", "out.csv", "--on-error", "raise").code == 2
    shown = call("explain", model, "m.csv", "--graph", "3")
    assert shown.code == 2
    assert "9,998 atoms" in words(shown)


def test_the_limit_is_an_option_of_each_command(model, call, tmp_path):
    (tmp_path / "m.csv").write_text("smiles,label\n" + "C,no\nCCO,yes\n" * 4)
    stop = ["--on-error", "raise"]
    commands = [
        ["inspect", "m.csv", *stop],
        ["controls", "m.csv", *stop],
        ["evaluate", "m.csv", "--device", "cpu", *stop],
        ["fit", "m.csv", "-o", "n.sopool", *QUICK, *stop],
        ["predict", model, "m.csv", *stop],
        ["explain", model, "m.csv", "--graph", "3"],
    ]
    for command in commands:
        shown = call(*command, "--max-atoms", "2")
        assert shown.code == 2, command
        assert "line 3: The molecule has 3 atoms, but the limit is 2." in words(shown), command
