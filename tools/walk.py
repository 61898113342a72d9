"""Count the functions and files that a command passes through in the package, and the calls sideways or up.

    python tools/walk.py CHECKOUT [--edges]

Runs a small ``sopool fit`` and a small ``sopool evaluate`` of the checkout in one process each, and records every call
in the main thread. A *function* is a function or method of the package, including everything that is defined inside it.
Special methods such as ``__init__``, and everything that runs while modules are imported, are not counted. A *hop* is a
function that is called from another file, for which a reader of the code must open that file. A hop is on the *main
path* if it calls a third file in turn; the others are helpers that a reader may skip.

A *move* is a call from a top-level folder or module of the package to one beside or above it. It is *direct* if the
caller's file imports the other one; all others are callbacks that were passed down from above. ``--edges`` lists these
calls. The first training step is the first call of a function named ``run_epoch``; the *stack* consists of the calls
that have not returned by then. Needs Python 3.11.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import CO_OPTIMIZED
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

FLOORS = (
    ("ops",),
    ("nn",),
    ("data",),
    ("models",),
    ("training",),
    ("experiments", "estimator"),
    ("report",),
    ("cli",),
    ("__main__",),
)
"""The top-level folders and modules from bottom to top; those that are not listed (_runtime, _files, errors, ...) are
below all."""
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS, 1) for room in rooms}
FIRST_STEP = "run_epoch"
KINDS = ("stack", "main path", "hops", "functions")
MOLECULES = "CCO CCN CCC CC=O CCCl CCBr c1ccccc1 c1ccncc1 Cc1ccccc1 Oc1ccccc1 Nc1ccccc1 Clc1ccccc1"
SMALL = ["--epochs", "2", "--folds", "2", "--device", "cpu", "--workers", "1"]
COMMANDS = {
    "fit": ["fit", "molecules.csv", "-o", "a.sopool", "--models", "2", *SMALL],
    "evaluate": ["evaluate", "MUTAG", "--steps", "2", *SMALL],
}

Function = tuple[str, str]
"""Its file, relative to the package's folder, and its name."""


@dataclass
class Walk:
    """The calls of a command."""

    root: str
    seen: set[Function] = field(default_factory=set)
    hops: set[Function] = field(default_factory=set)
    onward: set[Function] = field(default_factory=set)
    """The functions that call another file."""
    moves: set[tuple[Function, Function]] = field(default_factory=set)
    before: dict[str, list[Function]] | None = None
    """The functions of each kind when the first training step began."""
    _calls: set[tuple[CodeType, CodeType | None]] = field(default_factory=set)
    _starts: dict[CodeType, int] = field(default_factory=dict)

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        """Record a call; to be used with ``sys.setprofile``."""
        code = frame.f_code
        if event != "call" or not self._inside(code) or not code.co_flags & CO_OPTIMIZED:
            return
        if frame.f_lasti != self._starts.setdefault(code, frame.f_lasti):
            return  # a generator continues
        caller = self._caller(frame)
        call = code, caller.f_code if caller else None
        if call in self._calls or self._importing(frame):
            return
        self._calls.add(call)
        if code.co_name == FIRST_STEP and self.before is None:
            self.before = self.so_far() | {"stack": self._stack(frame)}
        self._add(self._function(code), self._function(caller.f_code) if caller else None)

    def so_far(self) -> dict[str, list[Function]]:
        """Return the functions of each kind up to now."""
        return {"functions": list(self.seen), "hops": list(self.hops), "main path": list(self.hops & self.onward)}

    def _add(self, called: Function, caller: Function | None) -> None:
        name = called[1].split(".")[-1]
        if name.startswith("<"):
            return
        if caller is not None and is_move(caller[0], called[0]):
            self.moves.add((caller, called))
        if caller is not None and caller[0] != called[0]:
            self.onward.add(caller)
        if name.startswith("__") and name.endswith("__"):
            return
        self.seen.add(called)
        if caller is None or caller[0] != called[0]:
            self.hops.add(called)

    def _inside(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self.root)

    def _function(self, code: CodeType) -> Function:
        return code.co_filename[len(self.root) :], code.co_qualname.split(".<locals>")[0]

    def _caller(self, frame: FrameType) -> FrameType | None:
        """Return the nearest calling frame of the package, skipping frames of libraries."""
        above = frame.f_back
        while above is not None and not self._inside(above.f_code):
            above = above.f_back
        return above

    def _stack(self, frame: FrameType) -> list[Function]:
        """Return the functions of the package that are waiting for a frame."""
        found, above = set[Function](), self._caller(frame)
        while above is not None:
            found.add(self._function(above.f_code))
            above = self._caller(above)
        return list(found)

    def _importing(self, frame: FrameType) -> bool:
        """Return whether a module or the body of a class is being executed."""
        above = self._caller(frame)
        while above is not None and above.f_code.co_flags & CO_OPTIMIZED:
            above = self._caller(above)
        return above is not None


def room_of(file: str) -> str:
    """Return the top-level folder or module of the package that contains a file."""
    return file.split("/")[0].removesuffix(".py")


def is_move(caller: str, called: str) -> bool:
    """Return whether a call from one file to another goes sideways or up."""
    one, other = room_of(caller), room_of(called)
    return one != other and FLOOR.get(other, 0) > 0 and FLOOR.get(other, 0) >= FLOOR.get(one, 0)


def imports(file: Path, room: str) -> list[str]:
    """Return the modules of a top-level folder that a file imports, once for each statement anywhere in the file."""
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "sopool":
            found += [f"sopool.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.append(node.module or "")
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name for name in found if f"{name}.".startswith(f"sopool.{room}.")]


def record(command: str, package: Path, output: Path) -> None:
    """Run a command in this process, and write its calls to a file as JSON."""
    Path("molecules.csv").write_text(
        "smiles,label\n" + "".join(f"{one},{int('c' in one)}\n" for one in MOLECULES.split()), encoding="utf-8"
    )
    walk = Walk(f"{package}{os.sep}")
    sys.argv = ["sopool", *COMMANDS[command]]
    sys.setprofile(walk.watch)
    try:
        from sopool.__main__ import main as run

        run()
    except SystemExit as left:
        if left.code:
            raise
    finally:
        sys.setprofile(None)
    if walk.before is None:
        raise SystemExit(f"No function is called {FIRST_STEP}: where does training begin?")
    output.write_text(json.dumps({"before": walk.before, "all": walk.so_far(), "moves": sorted(walk.moves)}))


def walk_of(command: str, checkout: Path) -> dict[str, Any]:
    """Run a command of a checkout in a separate process, and return its calls."""
    source = checkout.resolve() / "src"
    with TemporaryDirectory() as place:
        output = Path(place) / "walk.json"
        arguments = [sys.executable, str(Path(__file__).resolve()), str(checkout.resolve()), "--one", command]
        environment = {name: value for name, value in os.environ.items() if name != "SOPOOL_DATA"}
        environment |= {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": place, "PYTHONPYCACHEPREFIX": place}
        done = subprocess.run(
            [*arguments, str(output)], cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"sopool {' '.join(COMMANDS[command])} failed:\n{done.stderr[-3000:]}")
        found: dict[str, Any] = json.loads(output.read_text())
    return found


def size(functions: Sequence[Sequence[str]] | None) -> str:
    """Return the number of functions, and of the files that they are in."""
    if functions is None:
        return ""
    return f"{len(functions)} in {len({file for file, _ in functions})}"


def main() -> None:
    """Print the table for a checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="a folder with a checkout")
    parser.add_argument("--edges", action="store_true", help="list the calls that go sideways or up")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    package = args.checkout.resolve() / "src" / "sopool"
    if not package.is_dir():
        parser.error(f"{args.checkout}: there is no src/sopool in it.")
    if args.one:
        record(args.one[0], package, Path(args.one[1]))
        return
    print("| command | part | " + " | ".join(KINDS) + " | moves sideways or up |")
    print("|---|---|" + "--:|" * len(KINDS) + "---|")
    listed = []
    for command in COMMANDS:
        found = walk_of(command, args.checkout)
        moves = [(bool(imports(package / a[0], room_of(b[0]))), a, b) for a, b in found["moves"]]
        direct = sum(one for one, _, _ in moves)
        for part, title in (("before", "before training"), ("all", "all")):
            sizes = " | ".join(size(found[part].get(kind)) for kind in KINDS)
            said = f"{direct} direct, {len(moves) - direct} callbacks" if part == "all" else ""
            print(f"| {command} | {title} | {sizes} | {said} |")
        listed += [(command, *move) for move in moves]
    files = sorted((package / "estimator").rglob("*.py"))
    uses = {str(file.relative_to(package)): names for file in files if (names := imports(file, "experiments"))}
    print("\nEach entry: functions, and the files they are in.")
    print(f"estimator imports from experiments: {sum(map(len, uses.values()))} statements in {len(uses)} files", end="")
    print(f" ({', '.join(uses)})." if uses else ".")
    if args.edges:
        for command, is_direct, caller, called in sorted(listed, key=lambda edge: (edge[0], not edge[1])):
            kind = "direct" if is_direct else "callback"
            print(f"{command}, {kind}: {':'.join(caller)} -> {':'.join(called)}")


if __name__ == "__main__":
    main()
