"""List, find and load data sets, by name or from files of any supported format."""

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from reprlib import repr as show
from typing import Any, NamedTuple

from sopool._files.private import is_private
from sopool.data.analysis.graph_statistics import GraphStatistics, graph_statistics
from sopool.data.division import RANDOM, SplitRule, with_columns
from sopool.data.formats.kinds import KNOWN, NAME, STDIN, Kind, kind_of, suffix_of
from sopool.data.formats.limits import MAX_ATOMS
from sopool.data.formats.lines import stem_of
from sopool.data.formats.molecule_features import DEFAULT, MoleculeFeatures, chosen_features
from sopool.data.formats.molecules import pack_molecules
from sopool.data.formats.packed import renamed
from sopool.data.formats.rows import BadRow, LabelRule, RowOptions, TrainingColumns, row_options
from sopool.data.graphs import PackedGraphs, concatenate
from sopool.data.sources.boxed import boxed_names, load_boxed
from sopool.data.sources.cache import cached, downloaded
from sopool.data.sources.download import DownloadProgress, download
from sopool.errors import DataError, OnError, Place, SettingError, suggest


@dataclass(frozen=True)
class Published:
    """The statistics of a data set in the paper."""

    graphs: int
    classes: int
    max_nodes: int | None
    mean_nodes: float


PAPER = {
    "MUTAG": Published(188, 2, 28, 18.0),
    "PTC": Published(344, 2, 109, 25.6),
    "PROTEINS": Published(1113, 2, 620, 39.1),
    "NCI1": Published(4110, 2, 111, 29.9),
    "DD": Published(1178, 2, None, 284.3),
    "COLLAB": Published(5000, 3, 492, 74.5),
    "IMDB-BINARY": Published(1000, 2, 136, 19.8),
    "IMDB-MULTI": Published(1500, 3, 89, 13.0),
    "REDDIT-BINARY": Published(2000, 2, 3783, 429.6),
    "REDDIT-MULTI-5K": Published(5000, 5, 3783, 508.5),
}
"""The paper's ten data sets with their published statistics, by name.

Examples:
    >>> from sopool.data import PAPER
    >>> PAPER["MUTAG"]
    Published(graphs=188, classes=2, max_nodes=28, mean_nodes=18.0)
"""

NOTES = {
    "PTC": "PTC is the file of the GIN and SOPool code (344 graphs, 25.6 nodes on average, 19 node labels), which the "
    "paper reports on. It is not PTC_MR of the TU collection: accuracies on the two cannot be compared.",
    "PTC_MR": "PTC_MR of the TU collection (344 graphs, 14.3 nodes on average, 18 node labels) is not the paper's PTC: "
    "accuracies on the two cannot be compared. The paper's data set is called PTC here.",
}


NAMED = 3
"""The number of sources whose names make up the name of their graphs; of more, only the first one is named."""
REASONS = 3
"""The number of reasons for skipped molecules that a warning names."""


class DatasetNote(UserWarning):
    """A warning about a data set that is easily confused with another one.

    Examples:
        >>> import warnings
        >>> from sopool.data import DatasetNote, load
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", DatasetNote)
        ...     graphs = load("MUTAG")
    """


class FoundDataset(NamedTuple):
    """The result of :func:`find`.

    ``place`` is ``"root"``, ``"package"`` or ``"cache"``, or None if the data set was not found. ``path`` is its file
    or folder, and ``searched`` names the places that were searched.
    """

    place: str | None
    path: Path | None
    searched: list[str]


@dataclass(frozen=True)
class Listed:
    """A data set in the result of :func:`list_datasets`."""

    name: str
    place: str | None
    path: Path | None
    paper: Published | None
    statistics: GraphStatistics | None

    def to_json(self) -> dict[str, Any]:
        """Return it as dictionaries, numbers and strings."""
        return {
            "name": self.name,
            "place": self.place,
            "path": None if self.path is None else str(self.path),
            "paper": None if self.paper is None else asdict(self.paper),
            "statistics": None if self.statistics is None else self.statistics.to_json(),
            "note": NOTES.get(self.name),
        }


def list_datasets(root: str | Path | None = None) -> list[Listed]:
    """List the paper's and the package's data sets, with the statistics of those that need no download.

    Args:
        root: The folder to search first. Default: None, the environment variable ``SOPOOL_DATA``.

    Examples:
        >>> from sopool.data import list_datasets
        >>> [dataset.name for dataset in list_datasets()][:4]
        ['MUTAG', 'PTC', 'PROTEINS', 'NCI1']
    """
    listed = []
    for name in dict.fromkeys([*PAPER, *boxed_names()]):
        found = find(name, root)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DatasetNote)
            have = None if found.place is None else graph_statistics(load(name, root))
        listed.append(Listed(name, found.place, found.path, PAPER.get(name), have))
    return listed


def find(name: str, root: str | Path | None = None) -> FoundDataset:
    """Search for a data set by name in ``root``, then in the package, then among earlier downloads.

    Args:
        name: The name of the data set.
        root: The folder to search first. Default: None, the environment variable ``SOPOOL_DATA``.

    Examples:
        >>> from sopool.data import find
        >>> find("SOLUBILITY").place
        'package'
    """
    searched = []
    for folder in _roots(root):
        searched.append(f"{folder} (root or SOPOOL_DATA{'' if folder.is_dir() else '; this folder does not exist'})")
        for path in (folder / f"{name}.zip", folder / name, folder / f"{name}.txt", folder / f"{name}.graphs"):
            if path.exists():
                return FoundDataset("root", path, searched)
    searched.append(f"the package ({', '.join(boxed_names())})")
    if name in boxed_names():
        return FoundDataset("package", None, searched)
    path = downloaded(name)
    searched.append(str(path.parent))
    return FoundDataset("cache", path, searched) if is_private(path) else FoundDataset(None, None, searched)


def load(
    source: str | Path | Sequence[str | Path],
    root: str | Path | None = None,
    *,
    smiles_column: str | None = None,
    label_column: str | None = None,
    target_columns: Sequence[str] = (),
    graph_columns: Sequence[str] = (),
    on_error: OnError = "skip",
    labelled: bool = True,
    max_atoms: int = MAX_ATOMS,
    features: str | MoleculeFeatures | None = None,
    descriptors: Sequence[str] = (),
    progress: DownloadProgress | None = None,
    split: str | None = None,
) -> PackedGraphs:
    """Load graphs from a file or folder, or a data set by name.

    Named data sets are searched for as :func:`find` does; others of the TU collection are downloaded once.

    Args:
        source: The name of a data set, such as ``"MUTAG"``, or a path: a TU folder or ``.zip``, GIN's ``.txt``,
            ``.jsonl``, a ``.csv``, ``.tsv``, ``.smi`` or ``.parquet`` of SMILES, ``.sdf``, or ``.graphs``. A list of
            several gives the graphs of all of them, one after the other.
        root: The folder to search first for named data sets. Default: None, the environment variable ``SOPOOL_DATA``.
        smiles_column: The column of a CSV with the SMILES. Default: None, a column with a usual name such as
            ``smiles``.
        label_column: The column of a CSV, or the property of an SDF, with the class, or with a number to predict.
            Default: None, a usual name such as ``label``.
        target_columns: The columns or properties with numbers to predict, instead of ``label_column``; cells may be
            empty. Default: none.
        graph_columns: The columns or properties with numbers given beside each molecule, such as a temperature, which
            become graph attributes; cells may be empty. Default: none.
        on_error: Whether to ``"skip"`` molecules that cannot be read, with a warning, or to ``"raise"``. Default:
            ``"skip"``.
        labelled: Whether to read the labels of molecules; use False for molecules without labels. Default: True.
        max_atoms: Molecules with more atoms cannot be read, nor those with more than ``max_atoms // 8`` rings (50 if
            that is larger). Default: 1000.
        features: What is read of the atoms and bonds of molecules: ``"element"`` (and the types of bonds), ``"charge"``
            (also formal charges), ``"atoms"`` (all features of atoms), ``"all"`` (also those of bonds), or a
            :class:`MoleculeFeatures`. Default: None, ``"atoms"`` if the graphs are molecules.
        descriptors: Numbers to compute of each molecule, which become graph attributes: any of ``"rdkit2d"`` (RDKit's
            descriptors), ``"morgan"`` and ``"atom-pairs"`` (fingerprints of 1,024 counts). Default: none.
        progress: A function that is called with the bytes downloaded so far and in total (or None). Default: None.
        split: What cross-validation divides molecules by: ``"random"``, ``"scaffold"`` (Bemis-Murcko; molecules of a
            scaffold stay together), ``"group:COLUMN"`` (those with the same value stay together), ``"time:COLUMN"``
            (trained on earlier and tested on later ones) or ``"column:COLUMN"`` (the column holds ``train``, ``valid``
            or ``test``). Default: None, random, or as a ``.graphs`` file has it.

    Examples:
        >>> from sopool.data import load
        >>> graphs = load("MUTAG")
        >>> len(graphs), graphs.classes, graphs.node_label_names[:3]
        (188, (-1, 1), ('Br', 'C', 'Cl'))
    """
    labels: LabelRule = "required" if labelled else "ignored"
    chosen = None if features is None and not descriptors else chosen_features(features or DEFAULT, descriptors)
    options = row_options(smiles_column, label_column, target_columns, max_atoms, labels, graph_columns, chosen, split)
    if isinstance(source, str | Path):
        return _load(source, root, options, on_error, progress)
    sources = list(source)
    _check_sources(sources)
    if len(sources) == 1:
        return _load(sources[0], root, options, on_error, progress)
    name = joined_name(sources)
    if all(_is_path(one) and kind_of(one).rows and not kind_of(one).whole for one in sources):
        return _read_molecules([Path(one) for one in sources], options, on_error, name, level=3)
    stores = [_load(one, root, options, on_error, progress) for one in sources]
    try:
        return concatenate(stores, name)
    except DataError as error:
        raise DataError(f"the graphs of {', '.join(map(str, sources))} cannot be joined: {error}") from error


def joined_name(sources: Sequence[str | Path]) -> str:
    """Return the name of the graphs of several sources."""
    names = [stem_of(one) for one in sources]
    return "+".join(names) if len(names) <= NAMED else f"{names[0]}+{len(names) - 1} more"


def _check_sources(sources: Sequence[str | Path]) -> None:
    if not sources:
        raise SettingError("the list of sources is empty: give the name of a data set, or a path.")
    twice = next((one for place, one in enumerate(sources) if one in sources[:place]), None)
    if twice is not None:
        raise SettingError("given twice. Give each source once.", twice)


def _load(
    source: str | Path,
    root: str | Path | None,
    options: RowOptions,
    on_error: OnError,
    progress: DownloadProgress | None,
) -> PackedGraphs:
    """Load one source."""
    if _is_path(source):
        return _read(Path(source), options, on_error)
    name = str(source)
    found = find(name, root)
    if found.place == "package":
        NAME.check_columns(name, options)
        return load_boxed(name)

    def read(path: Path) -> PackedGraphs:
        return renamed(_read(path, options, on_error), name)

    path = _download(name, found, progress) if found.path is None else found.path
    if name in NOTES:
        warnings.warn(NOTES[name], DatasetNote, stacklevel=3)
    try:
        return read(path)
    except DataError as error:
        told = options.smiles_column or options.label_column or options.target_columns or options.graph_columns
        if found.place != "cache" or told:
            raise
        warnings.warn(f"{error} Downloading it again.", stacklevel=3)
        return read(_download(name, found, progress))


def training_columns(
    source: str | Path | Sequence[str | Path],
    smiles_column: str | None = None,
    label_column: str | None = None,
    target_columns: Sequence[str] = (),
) -> TrainingColumns:
    """Return the columns or properties that :func:`load` reads molecules and labels from; none of other sources.

    Args:
        source: The name of a data set, or a path; of several, the first one counts.
        smiles_column: The column with the SMILES, as for :func:`load`. Default: None, a usual name.
        label_column: The column or property with the class or number. Default: None, a usual name.
        target_columns: The columns or properties with numbers to predict. Default: none.
    """
    first = source if isinstance(source, str | Path) else source[0]
    kind = kind_of(first)
    if kind.training is None:
        return TrainingColumns()
    return kind.training(Path(first), row_options(smiles_column, label_column, target_columns))


def files_of(source: str | Path, root: str | Path | None = None) -> list[Path]:
    """Return the files that :func:`load` would read, if they exist."""
    path = Path(source) if _is_path(source) else find(str(source), root).path
    if path is None or not path.exists():
        return []
    return sorted(path.glob("*.txt")) if path.is_dir() else [path]


def _is_path(source: str | Path) -> bool:
    path = Path(source)
    return str(source) != STDIN and (bool(path.suffix) or path.exists() or len(path.parts) > 1)


def _download(name: str, found: FoundDataset, progress: DownloadProgress | None) -> Path:
    files = f"{name}.zip of the TU collection (or a folder {name} with its files)"
    ways = (
        f"Searched: {'; '.join(found.searched)}. Put {'PTC.txt of that code' if name == 'PTC' else files} into a "
        "folder and give that folder as root or SOPOOL_DATA; or give the path of your own file."
    )
    if name == "PTC":
        raise DataError(f"PTC was not found. {NOTES['PTC']} {ways}")
    try:
        return download(name, downloaded(name).parent, progress)
    except DataError as error:
        raise DataError(f"{name} was not found.{_guess(name)} {error} {ways}") from error


def _guess(given: str) -> str:
    """Return a question that suggests a known data set with a similar name, or an empty string."""
    known = (*PAPER, *boxed_names())
    return "" if given in known else suggest(Path(given).stem, known)


def _roots(root: str | Path | None) -> list[Path]:
    given = root or os.environ.get("SOPOOL_DATA")
    return [Path(given)] if given else []


HINTS = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), " Save the spreadsheet as .csv."),
    ".gz": " Name the format, too, such as .csv.gz.",
    ".sopool": " This is a model, which sopool predict and sopool explain take as their first argument.",
}
"""What to do with a file that is often given instead of graphs, by suffix."""


def _checked(path: Path, options: RowOptions) -> Kind:
    """Return the kind of a file or folder; raise if there is none, or if it does not have what the options name."""
    if not path.exists():
        raise DataError(f"there is no such file or folder.{_guess(path.name)}", path)
    kind = kind_of(path)
    kind.check_columns(path, options)
    return kind


def _read(path: Path, options: RowOptions, on_error: OnError) -> PackedGraphs:
    kind = _checked(path, options)
    if kind.whole is not None:
        read = partial(kind.whole, path)
        store = cached(path, stem_of(path), read) if kind.cached else read()
        at_random = store.split_columns and options.split == SplitRule(RANDOM)
        return with_columns(store, {}) if at_random else store
    if kind.rows is None:
        hint = HINTS.get(suffix_of(path), "")
        raise DataError(f"unknown file type {suffix_of(path)!r}, expected one of {KNOWN}.{hint}", path)
    return _read_molecules([path], options, on_error, stem_of(path), level=5)


def _read_molecules(
    paths: Sequence[Path], options: RowOptions, on_error: OnError, name: str, level: int
) -> PackedGraphs:
    """Read molecules from one or several files, and warn of those that are skipped.

    Warnings point to the caller ``level`` calls above.
    """
    sources = []
    for path in paths:
        kind = _checked(path, options)
        assert kind.rows is not None
        sources.append((kind.place(path), kind.rows(path, options)))
    store, bad = pack_molecules(sources, on_error, name, options.split)
    total = sum(map(len, bad)) + len(store)
    for (place, _), own in zip(sources, bad, strict=True):
        if own:
            warnings.warn(_skipped(place, own, total), stacklevel=level)
    return store


def _skipped(place: Place, bad: list[BadRow], total: int) -> str:
    reasons = Counter(one.reason.rstrip(".") for one in bad).most_common()
    told = "; ".join(f"{reason} ({count:,})" for reason, count in reasons[:REASONS])
    left = len(reasons) - REASONS
    more = f"; and {left:,} other reason{'s' * (left > 1)}" if left > 0 else ""
    return (
        f"{place.path}: {len(bad):,} of {total:,} molecules skipped, the first in {place.unit} {bad[0].row}, "
        f"{show(bad[0].text)}. "
        f"Reasons: {told}{more}."
    )
