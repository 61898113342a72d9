"""Measure time and memory of loading data sets from TU text files and from the cache.

    python -m benchmarks.load_datasets FOLDER [NAME ...] [--pyg] [--rounds 3]

FOLDER contains NAME.zip files. Each load runs in a separate process. The time is the median over the rounds, without
imports; the memory is the largest peak of the whole process, including imports (which alone take 300 MB). With --pyg,
PyG's TUDataset also reads the same files once, already unpacked (COLLAB: a minute and 6.5 GB). The cache column loads
the files that an earlier call cached.
"""

import argparse
import json
import platform
import resource
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.common import make_parser, run_alone


def read_zip(folder: Path, name: str) -> Callable[[], int]:
    from sopool.data.formats.tu import read_tu

    return lambda: read_tu(folder / f"{name}.zip").num_edges


def read_cache(folder: Path, name: str) -> Callable[[], int]:
    from sopool.data import load

    return lambda: load(folder / f"{name}.zip").num_edges


def read_pyg(folder: Path, name: str) -> Callable[[], int]:
    from torch_geometric.datasets import TUDataset

    return lambda: TUDataset(str(folder), name)._data.edge_index.shape[1]


READERS = {"zip": read_zip, "cache": read_cache, "pyg": read_pyg}


def run_one(reader: str, folder: Path, name: str) -> dict:
    read = READERS[reader](folder, name)
    start = time.perf_counter()
    edges = read()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "edges": edges}


def measure(reader: str, folder: Path, name: str, cache: str, rounds: int) -> dict:
    runs = [run_alone(__spec__.name, folder, name, "--one", reader, SOPOOL_CACHE=cache) for _ in range(rounds)]
    return {"seconds": median(run["seconds"] for run in runs), "mb": max(run["mb"] for run in runs)}


def unpacked(folder: Path, name: str, into: Path) -> Path:
    """Unpack the files to the folder in which TUDataset expects them."""
    raw = into / name / "raw"
    raw.mkdir(parents=True)
    with zipfile.ZipFile(folder / f"{name}.zip") as archive:
        for member in archive.namelist():
            # Copy in pieces: the peak memory of a child process starts from the memory of this process.
            with archive.open(member) as source, (raw / Path(member).name).open("wb") as target:
                shutil.copyfileobj(source, target)
    return into


def show(folder: Path, names: list[str], rounds: int, pyg: bool) -> None:
    table = Table(title="Loading data sets: seconds, and peak MB of the whole process")
    for column in ("", "zip", "MB", "cache", "MB", *(["PyG", "MB", "PyG / zip"] if pyg else [])):
        table.add_column(column, justify="right" if column else "left")
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            cache = f"{scratch}/cache"
            text = measure("zip", folder, name, cache, rounds)
            measure("cache", folder, name, cache, 1)  # fills the cache
            kept = measure("cache", folder, name, cache, rounds)
            row = [f"{text['seconds']:.2f}", f"{text['mb']:,.0f}", f"{kept['seconds']:.3f}", f"{kept['mb']:,.0f}"]
            if pyg:
                other = measure("pyg", unpacked(folder, name, Path(scratch)), name, cache, 1)
                ratio = other["seconds"] / text["seconds"]
                row += [f"{other['seconds']:.2f}", f"{other['mb']:,.0f}", f"{ratio:.1f}"]
        table.add_row(name, *row)
    packages = ", ".join(f"{package} {version(package)}" for package in ("torch", "torch-geometric", "numpy"))
    table.caption = f"Python {platform.python_version()}, {packages}"
    Console(width=100).print(table)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--pyg", action="store_true", help="also measure PyG's TUDataset")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=READERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(args.one, args.folder, args.names[0])))
        return
    show(args.folder, args.names or sorted(path.stem for path in args.folder.glob("*.zip")), args.rounds, args.pyg)


if __name__ == "__main__":
    main()
