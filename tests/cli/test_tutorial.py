"""The commands of the tutorial on molecules run as they are printed, on smaller files and with less training."""

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("rdkit", reason="RDKit is not installed")
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "five_minutes_molecules.md").read_text("utf-8")
LESS = ["--epochs", "1", "--models", "1", "--folds", "2", "--hidden", "4", "--workers", "1", "--device", "cpu"]
COMMANDS = [shlex.split(line) for line in re.findall(r"^\$ sopool (.*)$", PAGE, re.MULTILINE)]
CLASSES = ("low", "medium", "high")


def molecules(first, tails):
    """Chains with another end each, which are scaffolds of their own."""
    rows = [
        f"M{number},{'C' * (1 + number % 7)}{tail},{CLASSES[number % 3]}" for number, tail in enumerate(tails, first)
    ]
    return "\n".join(["id,smiles,solubility", *rows]) + "\n"


def test_the_commands_run(call, tmp_path):
    (tmp_path / "molecules.csv").write_text(molecules(1, ["O", "N", "F", "Cl", "S", "Br"] * 5))
    (tmp_path / "new.csv").write_text(molecules(1026, ["O", "N", "F", "Cl"]))
    assert {command[0] for command in COMMANDS} == {
        "inspect",
        "fit",
        "config",
        "--config",
        "predict",
        "explain",
        "show",
    }
    for command in COMMANDS:
        shown = call(*command, *(LESS if "fit" in command else []))
        assert shown.code == 0, (command, shown.err)
    header = (tmp_path / "predictions.csv").read_text().splitlines()[0]
    assert header in PAGE.splitlines()
    assert (tmp_path / "why.html").exists()
    keys = [line for line in PAGE.splitlines() if line in (tmp_path / "solubility.toml").read_text().splitlines()]
    assert {'label-column = "solubility"', 'split = "random,scaffold"'} <= set(keys)
