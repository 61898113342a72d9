"""Imports point one way only: a room of the house knows the rooms before it."""

import ast
from pathlib import Path

import pytest

import sopool

ROOMS = ["ops", "nn", "data", "models", "training", "experiments", "report", "estimator", "cli"]
ROOT = Path(sopool.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem in ROOMS)


def room_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name.split(".")[1] for name in names if name.startswith("sopool."))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downward(path):
    for room in imported(path):
        assert ROOMS.index(room) <= ROOMS.index(room_of(path)), f"{path.name} imports sopool.{room}"


def test_no_file_grows_long():
    long = {path.name: lines for path in FILES if (lines := len(path.read_text().splitlines())) > 300}
    assert not long
