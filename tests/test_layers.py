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
    "objectives",
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


def packed_calls(path):
    """Assignments of several unrelated calls in one statement, such as ``a, b = f(x), g(y)``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Tuple)
            and isinstance(node.targets[0], ast.Tuple)
        ):
            calls = [value for value in node.value.elts if isinstance(value, ast.Call)]
            if len(calls) > 1:
                yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_one_statement_a_line():
    # Kernels are left as they were measured.
    assert not [place for path in FILES if "triton" not in path.parts for place in packed_calls(path)]
