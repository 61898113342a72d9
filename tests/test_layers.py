"""Imports point one way only: a room of the house knows the rooms before it."""

import ast
from pathlib import Path

import sopool

ROOMS = [
    "errors",
    "_runtime",
    "_files",
    "ops",
    "nn",
    "data",
    "models",
    "training",
    "estimator",
    "experiments",
    "report",
    "cli",
]
ROOT = Path(sopool.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem in ROOMS)


def room_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name.split(".")[1] for name in names if name.startswith("sopool."))


def test_imports_point_downward():
    upward = [
        f"{path.relative_to(ROOT)} imports sopool.{room}"
        for path in FILES
        for room in imported(path)
        if ROOMS.index(room) > ROOMS.index(room_of(path))
    ]
    assert not upward


def test_the_estimator_and_experiments_know_nothing_of_each_other():
    rooms = {path: room_of(path) for path in FILES}
    sideways = {"estimator": "experiments", "experiments": "estimator"}
    assert set(sideways) <= set(rooms.values())
    assert not [path for path, room in rooms.items() if sideways.get(room) in set(imported(path))]


def test_no_file_grows_long():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert not {name: lines for name, lines in lengths.items() if lines > 500}
