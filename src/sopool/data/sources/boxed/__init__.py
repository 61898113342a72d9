"""Two small data sets that come with the package; where they are from: PROVENANCE.md beside this file."""

from importlib.resources import as_file, files

from sopool.data.formats.jsonl import read_jsonl
from sopool.data.graphs import PackedGraphs
from sopool.errors import SettingError, suggest

_NAMES = ("MUTAG", "SOLUBILITY")


def boxed_names() -> tuple[str, ...]:
    """What :func:`load_boxed` knows."""
    return _NAMES


def load_boxed(name: str) -> PackedGraphs:
    """A data set that comes with the package: nothing to download, nothing but the package needed.

    - ``MUTAG``: 188 nitro compounds, mutagenic (1) or not (-1), in the order of the GIN and SOPool papers' code.
    - ``SOLUBILITY``: 1,282 organic compounds whose solubility in water is ``low``, ``medium`` or ``high``.

    Nodes are atoms, labelled with their symbols, without most hydrogens; edges are bonds, labelled ``single``,
    ``double``, ``triple`` or ``aromatic``: as the readers of molecules make them.
    """
    if name not in _NAMES:
        known = " and ".join(_NAMES)
        raise SettingError(f"no data set {name!r} comes with the package, only {known}.{suggest(name, _NAMES)}")
    with as_file(files(__name__) / f"{name}.jsonl.gz") as path:
        return read_jsonl(path, name)
