"""Run two commits side by side on one machine, and compare their results and times.

    python tools/side_by_side.py OLD NEW [--rounds 3] [--tasks fit predict ...] [--shared FOLDER]

OLD and NEW are folders with a checkout, or git revisions, for which temporary worktrees are created. Each task runs in
a separate process on one thread, alternating between old and new: once without timing to fill the caches, then
``--rounds`` times. ``--rounds 0`` compares only the results.

Equal seeds must give equal results on the CPU: every number in the output of the old commit must be in that of the new
one, predictions to 1e-6 and all others exactly. Text may differ and the new commit may print more; both are noted.
Benchmarks have only times, which are compared if both scripts have a row of the same name. The rows of competing
implementations, whose code is the same in both commits, show how much times vary by chance.

The table is printed to the standard output, progress to the standard error. The exit code is 1 if results differ.
"""

import argparse
import csv
import gzip
import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
SHORT = ["--folds", "3", "--seed", "7", "--device", "cpu", "--workers", "1", "--json"]
FIT = ["--epochs", "5", "--models", "2", "--folds", "3", "--seed", "7", "--device", "cpu", "--workers", "1"]
FIT_MOLECULES, EVERY = 150, 13
"""The number of molecules of the task ``fit``, and the step between the rows of the file that are used."""
TIMES = {"seconds", "elapsed", "environment"}
"""JSON keys whose values are ignored, because they differ from run to run."""
TOLERANCE = 1.001e-6
"""The tolerance for predictions, which are printed with six digits."""
PREDICTIONS = "predictions"
OWN = "sopool"
"""Benchmark rows with this in their names time the package; the others time competing implementations."""

Figures = dict[str, Any]
"""Numbers and strings by their position in the output."""


@dataclass(frozen=True)
class Checkout:
    """The files of a commit, and a folder for the caches of its processes."""

    label: str
    folder: Path
    caches: Path

    def run(self, arguments: Sequence[str], place: Path) -> str:
        """Run Python with ``arguments`` in the folder ``place`` and return what it prints."""
        done = subprocess.run(
            [sys.executable, *arguments], cwd=place, env=self._environment(), text=True, capture_output=True
        )
        if done.returncode:
            raise SystemExit(f"{self.label}: python {' '.join(arguments)} failed:\n{done.stderr[-3000:]}")
        return done.stdout

    def check(self, place: Path) -> None:
        """Raise unless Python imports the package of this checkout."""
        found = Path(self.run(["-c", "import sopool; print(sopool.__file__)"], place).strip())
        if not found.resolve().is_relative_to(self.folder.resolve()):
            raise SystemExit(f"{self.label}: {found} is imported instead of the package in {self.folder}.")

    def _environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in ("SOPOOL_DATA", "SOPOOL_CACHE", "FORCE_COLOR")
        }
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        caches = dict.fromkeys(("PYTHONPYCACHEPREFIX", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"), str(self.caches))
        # The folder itself as well, because benchmarks import each other from there.
        path = os.pathsep.join([str(self.folder / "src"), str(self.folder)])
        source = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "", "CUDA_VISIBLE_DEVICES": ""}
        return kept | threads | caches | source


@dataclass
class Outcome:
    """The result of one run of a task."""

    figures: Figures = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """The time of each row of the table; the whole time of a command has the name ''."""


Task = Callable[[Checkout, Path], Outcome]
"""A function that runs in an empty folder."""


def command(arguments: Sequence[str], checkout: Checkout, place: Path) -> Outcome:
    """Run a command that is only timed."""
    start = time.perf_counter()
    checkout.run(arguments, place)
    return Outcome({}, {"": time.perf_counter() - start})


def json_command(arguments: Sequence[str], checkout: Checkout, place: Path) -> Outcome:
    """Run a ``sopool`` command that prints JSON."""
    start = time.perf_counter()
    printed = checkout.run(["-m", "sopool", *arguments], place)
    return Outcome(dict(leaves(json.loads(printed))), {"": time.perf_counter() - start})


def fit_and_predict(shared: Path, checkout: Checkout, place: Path) -> Outcome:
    """Train a classifier, read the estimate in its file, then predict the same graphs."""
    source, options = molecules(shared, place)
    start = time.perf_counter()
    checkout.run(["-m", "sopool", "fit", source, *options, "-o", "a.sopool", *FIT], place)
    fitted = time.perf_counter()
    checkout.run(["-m", "sopool", "predict", "a.sopool", source, "-o", "a.csv", "--device", "cpu"], place)
    predicted = time.perf_counter()
    figures = {f"estimate{name}": value for name, value in leaves(estimate_in(place / "a.sopool"))}
    with (place / "a.csv").open(newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            figures |= {f"{PREDICTIONS}[{number}].{name}": text for name, text in row.items()}
    return Outcome(figures, {"fit": fitted - start, "predict": predicted - fitted})


def molecules(shared: Path, place: Path) -> tuple[str, list[str]]:
    """Write a small CSV of molecules, or name a data set of the package if no molecules are available."""
    path = shared / "molecules" / "BBBP.csv.gz"
    if not path.exists():
        return "MUTAG", []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        header, *rows = file.read().splitlines()
    few = rows[::EVERY][:FIT_MOLECULES]
    (place / "molecules.csv").write_text("\n".join([header, *few, ""]), encoding="utf-8")
    return "molecules.csv", ["--label-column", header.split(",")[-1]]


def estimate_in(path: Path) -> Any:
    """Return the estimate in a model file, a safetensors file whose header holds JSON in a JSON string."""
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    facts = json.loads(header["__metadata__"]["facts"])
    return {"estimate": facts["about"]["estimate"], "best_epochs": facts["best_epochs"]}


def benchmark(script: str, arguments: Sequence[str], checkout: Checkout, place: Path) -> Outcome:
    """Run the checkout's own script, which writes lists of times to a JSON file."""
    path = checkout.folder / "benchmarks" / script
    is_package = (path.parent / "__init__.py").is_file()  # in older commits they are plain scripts
    start = ["-m", f"benchmarks.{path.stem}"] if is_package else [str(path)]
    checkout.run([*start, *arguments, "--json", "times.json"], place)
    return Outcome({}, dict(timed_rows(json.loads((place / "times.json").read_text()))))


def timed_rows(found: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """Yield a name and the median in seconds of each list of times at any depth; nested lists are joined."""
    if isinstance(found, dict):
        for name, value in found.items():
            yield from timed_rows(value, (*path, name))
    elif isinstance(found, list):
        unit = 1e-3 if "ms" in path else 1.0
        yield ", ".join(name for name in path if name not in ("seconds", "ms")), unit * median(flat(found))


def flat(values: Any) -> list[float]:
    """Return the numbers in nested lists."""
    return list(itertools.chain(*map(flat, values))) if isinstance(values, list) else [float(values)]


def leaves(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each JSON value that is not a list or object with its position, except for times."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name not in TIMES:
                yield from leaves(value, f"{path}.{name}")
    elif isinstance(found, list):
        for number, value in enumerate(found):
            yield from leaves(value, f"{path}[{number}]")
    else:
        yield path, found


def make_tasks(shared: Path) -> dict[str, Task]:
    """Return all tasks by name, in the order of the table."""
    pools = ["--pool", "sopool-bimap,sum-avg,sortpool", "--protocol", "fair,single-epoch,per-fold-max"]
    blocks = ["--pool", "sopool-m-attn,sagpool", "--blocks", "2", "--protocol", "per-fold-max"]
    bonds = ["--pool", "sopool-attn", "--gnn", "gine", "--protocol", "per-fold-max"]
    folds = ["--root", str(shared / "data"), "--datasets", "MUTAG", "--threads", "1", "--rounds", "1"]
    return {
        "import": partial(command, ["-c", "import sopool.nn"]),
        "help": partial(command, ["-m", "sopool", "--help"]),
        "flat": partial(json_command, ["evaluate", "MUTAG", *pools, "--epochs", "5", *SHORT]),
        "hierarchy": partial(json_command, ["evaluate", "MUTAG", *blocks, "--epochs", "3", *SHORT]),
        "gine": partial(json_command, ["evaluate", "SOLUBILITY", *bonds, "--epochs", "3", *SHORT]),
        "controls": partial(json_command, ["controls", "MUTAG", "--folds", "3", "--seed", "7", "--json"]),
        "fit": partial(fit_and_predict, shared),
        "cross_validation": partial(benchmark, "cross_validation.py", folds),
        "readouts_cpu": partial(benchmark, "readouts_cpu.py", ["--threads", "1", "--rounds", "1"]),
    }


BENCHMARKS = ("cross_validation", "readouts_cpu")
"""Tasks that warm up by themselves."""


@dataclass
class Compared:
    """All runs of one task."""

    name: str
    figures: list[tuple[Figures, Figures]] = field(default_factory=list)
    seconds: list[tuple[dict[str, float], dict[str, float]]] = field(default_factory=list)

    def differences(self) -> list[str]:
        """Return the results that differ between the commits, or between rounds of the old one."""
        pairs = [*self.figures, *((self.figures[0][0], old) for old, _ in self.figures[1:])]
        found = [said for old, new in pairs for said in differing(old, new)]
        return list(dict.fromkeys(found))

    def notes(self) -> list[str]:
        """Return the strings that differ, results that only the new commit has, and times that only one has."""
        found = [said for old, new in self.figures[:1] for said in changed_texts(old, new)]
        more = [name for old, new in self.figures[:1] for name in new if name not in old]
        rows = [name for old, new in self.seconds[:1] for name in old.keys() ^ new.keys()]
        return [
            *found,
            *([f"{len(more)} more values, the first {more[0]}"] if more else []),
            *([f"only one commit has the rows {sorted(rows)}"] if rows else []),
        ]

    def verdict(self) -> str:
        """Return in a word or two whether the results are the same."""
        numbers = sum(not is_text(*item) for item in self.figures[0][0].items()) if self.figures else 0
        if not numbers:
            return "-"
        wrong = len(self.differences())
        return f"{wrong} DIFFER" if wrong else f"yes ({numbers})"

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield name, old seconds, new seconds and ratio; competing implementations in a benchmark form one row."""
        named = [name for name in (self.seconds[0][0] if self.seconds else {}) if self._in_all(name)]
        alone = [name for name in named if self.name not in BENCHMARKS or OWN in name]
        for name in alone:
            pairs = [(old[name], new[name]) for old, new in self.seconds]
            old, new = (f"{median(side):.3g}" for side in zip(*pairs, strict=True))
            yield self._title(name), old, new, ratio([new / old for old, new in pairs])
        others = [name for name in named if name not in alone]
        if others:
            ratios = [median(new[name] / old[name] for old, new in self.seconds) for name in others]
            yield f"{self.name}: {len(others)} rows of rivals (noise)", "", "", ratio(ratios)

    def _in_all(self, name: str) -> bool:
        return all(name in one for pair in self.seconds for one in pair)

    def _title(self, name: str) -> str:
        return f"{self.name}: {name}" if name and name != self.name else self.name


def differing(old: Figures, new: Figures) -> Iterator[str]:
    """Yield a message for each result of ``old`` that is missing or different in ``new``."""
    for name, value in old.items():
        if name not in new:
            yield f"{name}: {value!r} is missing"
        elif not is_text(name, value) and not same(name, value, new[name]):
            yield f"{name}: {value!r} became {new[name]!r}"


def changed_texts(old: Figures, new: Figures) -> Iterator[str]:
    """Yield a message for each string that differs."""
    for name, value in old.items():
        if name in new and is_text(name, value) and value != new[name]:
            yield f"{name}: {value!r} became {new[name]!r}"


def is_text(name: str, value: Any) -> bool:
    """Return whether this is a string that may differ; a predicted class may not."""
    return isinstance(value, str) and not name.startswith(PREDICTIONS)


def same(name: str, old: Any, new: Any) -> bool:
    """Return whether two results are equal, predictions up to their last digit."""
    if old == new or (old != old and new != new):  # NaN is not equal to itself
        return True
    one, other = number(old), number(new)
    close = one is not None and other is not None and abs(one - other) <= TOLERANCE
    return close and name.startswith(PREDICTIONS)


def number(text: Any) -> float | None:
    """Return the finite number that a string stands for, or None."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def ratio(ratios: Sequence[float]) -> str:
    """Return the median and the range."""
    return f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def compare(name: str, task: Task, checkouts: Sequence[Checkout], rounds: int) -> Compared:
    """Run one task on both checkouts repeatedly, alternating which one is first."""
    found = Compared(name)
    for turn in range(1 if name in BENCHMARKS else 0, rounds + 1):
        outcomes = {}
        for checkout in checkouts if turn % 2 else checkouts[::-1]:
            said = f"round {turn} of {rounds}" if turn else "warming up"
            print(f"{name}, {said}: {checkout.label}", file=sys.stderr, flush=True)
            with TemporaryDirectory() as place:
                outcomes[checkout.label] = task(checkout, Path(place))
        old, new = (outcomes[checkout.label] for checkout in checkouts)
        found.figures.append((old.figures, new.figures))
        if turn:
            found.seconds.append((old.seconds, new.seconds))
    for said in found.differences()[:10]:
        print(f"{name}, DIFFERS: {said}", file=sys.stderr)
    for said in found.notes()[:10]:
        print(f"{name}, note: {said}", file=sys.stderr)
    return found


@contextmanager
def checked_out(label: str, which: str) -> Iterator[Checkout]:
    """Yield a checkout: the folder itself, or a temporary worktree of a revision."""
    with ExitStack() as after:
        caches = Path(after.enter_context(TemporaryDirectory()))
        folder = Path(which).resolve()
        if not (folder / "src" / "sopool").is_dir():
            folder = Path(after.enter_context(TemporaryDirectory())) / "checkout"
            git = ["git", "-C", str(REPOSITORY), "worktree"]
            if subprocess.run([*git, "add", "--quiet", "--detach", str(folder), which]).returncode:
                raise SystemExit(f"{which} is neither a folder with src/sopool nor a git revision.")
            after.callback(subprocess.run, [*git, "remove", "--force", str(folder)], check=True)
        checkout = Checkout(label, folder, caches)
        checkout.check(caches)
        yield checkout


def table(found: Mapping[str, Compared], rounds: int) -> str:
    """Return all results as a Markdown table."""
    lines = ["| task | same figures | old s | new s | new / old |", "|---|---|--:|--:|--:|"]
    for one in found.values():
        verdict = one.verdict()
        for title, old, new, shown in list(one.rows()) or [(one.name, "", "", "")]:
            lines.append(f"| {title} | {verdict} | {old} | {new} | {shown} |")
    said = (
        f"Medians over the rounds ({rounds}). In brackets: smallest and largest ratio of a round (of rivals: of a row)."
    )
    return "\n".join([*lines, "", said])


def main() -> None:
    """Compare the two commits given on the command line."""
    tasks = list(make_tasks(Path()))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="a folder with a checkout, or a git revision")
    parser.add_argument("new", help="likewise")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each task on each side (%(default)s)")
    parser.add_argument("--tasks", nargs="+", choices=tasks, default=tasks, metavar="TASK", help=", ".join(tasks))
    parser.add_argument("--shared", type=Path, default=REPOSITORY.parent / "shared", help="holds data/ and molecules/")
    args = parser.parse_args()
    with checked_out("old", args.old) as old, checked_out("new", args.new) as new:
        every = make_tasks(args.shared.resolve())
        chosen = [name for name in tasks if name in args.tasks and (args.rounds or name not in BENCHMARKS)]
        found = {}
        for name in chosen:
            found[name] = compare(name, every[name], (old, new), args.rounds)
            print(table({name: found[name]}, args.rounds), file=sys.stderr, flush=True)  # the next task may take long
    print(table(found, args.rounds))
    sys.exit(any(one.differences() for one in found.values()))


if __name__ == "__main__":
    main()
