"""Load the two small data sets in the package; PROVENANCE.md in this folder describes their origin."""

from importlib.resources import as_file, files

from sopool.data.formats.jsonl import read_jsonl
from sopool.data.graphs import PackedGraphs
from sopool.errors import SettingError, suggest

_NAMES = ("MUTAG", "SOLUBILITY")


def boxed_names() -> tuple[str, ...]:
    """Return the names of the data sets in the package."""
    return _NAMES


def load_boxed(name: str) -> PackedGraphs:
    """Load a data set that is part of the package.

    - ``MUTAG``: 188 nitro compounds, mutagenic (1) or not (-1), in the order of the GIN and SOPool papers' code.
    - ``SOLUBILITY``: 1,282 organic compounds whose solubility in water is ``low``, ``medium`` or ``high``.

    Nodes are atoms, labeled with their symbols, without most hydrogens. Edges are bonds, labeled ``single``,
    ``double``, ``triple`` or ``aromatic``. The readers of molecules use the same conventions.

    Args:
        name: ``"MUTAG"`` or ``"SOLUBILITY"``.

    Examples:
        >>> from sopool.data.sources.boxed import load_boxed
        >>> len(load_boxed("SOLUBILITY"))
        1282
    """
    if name not in _NAMES:
        known = " and ".join(_NAMES)
        raise SettingError(f"no data set {name!r} is part of the package, only {known}.{suggest(name, _NAMES)}")
    with as_file(files(__name__) / f"{name}.jsonl.gz") as path:
        return read_jsonl(path, name)
