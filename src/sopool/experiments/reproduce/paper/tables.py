"""The paper's five tables: their figures, where each comes from, and how to run them.

The figures are in ``tables.json`` as printed: "95.3 4.4" is 95.3 +- 4.4 percent, "67.0" has no standard deviation, and
anything else is a cell without a figure. In Python all figures are fractions. Quoted figures of the first table have a
source and a protocol for each data set, since one row may come from several papers.

Z. Wang, S. Ji. Second-order pooling for graph neural networks. IEEE TPAMI, 2020.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from sopool.models.config import Head, Setting
from sopool.models.presets import FROZEN, PRESETS, Preset

TABLES = ("table1", "table2", "table3", "table4", "table5")
"""The names of the paper's tables.

Examples:
    >>> from sopool.experiments.reproduce.paper import TABLES
    >>> TABLES[0], TABLES[-1]
    ('table1', 'table5')
"""


class Figure(NamedTuple):
    """A published accuracy, as fractions.

    Examples:
        >>> from sopool.experiments.reproduce.paper import Figure
        >>> Figure(mean=0.953, std=0.044)
        Figure(mean=0.953, std=0.044)
    """

    mean: float
    """The mean over the folds."""
    std: float | None
    """The standard deviation; None if it was not published."""


@dataclass(frozen=True)
class Source:
    """Where a quoted figure is from, and how it was found there.

    Examples:
        >>> from sopool.experiments.reproduce.paper import read_tables
        >>> rows = {row.name: row for row in read_tables()["table1"].rows}
        >>> source = rows["DiffPool [2018]"].sources["MUTAG"]
        >>> source.paper, source.judged, source.protocol
        ("EigenGCN paper's rerun of DiffPool", 'ten random splits 80/10/10', 'fair')
    """

    paper: str
    """The paper that the figure is from, and which of its variants it is."""
    judged: str
    """The protocol there, in words."""
    protocol: str | None
    """The nearest of our protocols; None if there is none."""
    comparable: bool
    """Whether our figure under that protocol can be compared with it."""
    remark: str = ""
    """What differs, or why they cannot be compared."""
    system: str | None = None
    """The system that is run for this figure; None if there is none."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return dict(vars(self))


@dataclass(frozen=True)
class PaperRow:
    """One row of a table: a model or system that can be run, a control, or figures that are only quoted.

    Examples:
        >>> from sopool.experiments.reproduce.paper import PaperRow
        >>> PaperRow("GIN-0 + Sum/Avg", gnn="gin-0", pool="sum-avg").kind
        'model'
    """

    name: str
    """The name of the row in the paper."""
    gnn: str | None = None
    """The message-passing layers, for rows that can be run."""
    pool: str | None = None
    """The pooling, for rows that can be run."""
    blocks: int = 0
    """The number of blocks; 0 for flat models."""
    control: str | None = None
    """The control that is run for this row, such as ``wl`` for the kernel of that name."""
    protocol: str | None = None
    """The protocol of the paper's figures; None if it is not known."""
    quoted: str | None = None
    """The source of the paper's figures, if they are not from its authors' own runs."""
    against: str | None = None
    """The row that this one is compared with, declared before anything is run."""
    datasets: tuple[str, ...] = ()
    """The data sets on which a model or system is run: models on those with a figure in the paper, systems on those
    with a source that names one."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """The paper's figures by data set; data sets without a figure are left out."""
    sources: Mapping[str, Source] = field(default_factory=dict)
    """The sources of the figures by data set; empty if ``quoted`` and ``protocol`` say all."""

    @property
    def kind(self) -> str:
        """The kind of the row: ``quoted``, ``system``, ``control``, ``random`` or ``model``.

        Nothing is run for ``quoted``, and ``random`` is a pooling without learned parameters. A control that is run
        under all protocols, as the kernel of the first table, is a ``system``.
        """
        if self.pool is not None:
            return "random" if self.pool in FROZEN else "model"
        if any(map(self.runs, self.datasets)):
            return "system"
        return "quoted" if self.control is None else "control"

    def runs(self, dataset: str) -> str | None:
        """Return the name of the pooling or system that is run on a data set; None if nothing is."""
        if dataset not in self.datasets:
            return None
        source = self.sources.get(dataset)
        return self.pool or (None if source is None else source.system)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object without the figures and their sources, which belong to the cells."""
        names = ("name", "gnn", "pool", "blocks", "control", "protocol", "quoted", "against", "datasets")
        return {"kind": self.kind} | {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class PaperTable:
    """One table of the paper.

    Examples:
        >>> from sopool.experiments.reproduce.paper import read_tables
        >>> table = read_tables()["table2"]
        >>> table.preset, table.hidden, table.batch_sizes
        ('paper', (16, 32, 64), (32, 128))
    """

    name: str
    """The name of the table, such as ``table2``."""
    title: str
    """The title of the table."""
    label: str
    """The label in the paper's source."""
    datasets: tuple[str, ...]
    """The names of the data sets."""
    preset: Preset
    """The preset that its models are trained with."""
    hidden: tuple[int, ...]
    """The widths of the hidden layers to choose from."""
    batch_sizes: tuple[int, ...]
    """The batch sizes to choose from."""
    rows: tuple[PaperRow, ...]
    """The rows."""
    notes: tuple[str, ...] = ()
    """Remarks about the figures."""
    head: Head | None = None
    """The classifier of hierarchical models."""
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """Why nothing was run on some of the data sets, by their names."""

    @property
    def setting(self) -> Setting:
        """The hyperparameters that the grid does not vary."""
        return PRESETS[self.preset].setting

    @property
    def gnns(self) -> tuple[str, ...]:
        """The message-passing layers of its rows, without repetitions."""
        return tuple(dict.fromkeys(row.gnn for row in self.rows if row.gnn is not None))

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems that are run for its rows, without repetitions."""
        named = (row.runs(dataset) for row in self.rows if row.kind == "system" for dataset in row.datasets)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def hierarchical(self) -> bool:
        """Whether its models have blocks."""
        return any(row.blocks for row in self.rows)


@cache
def read_tables() -> Mapping[str, PaperTable]:
    """Return all tables by name.

    Examples:
        >>> from sopool.experiments.reproduce.paper import TABLES, read_tables
        >>> tuple(read_tables()) == TABLES
        True
    """
    text = files("sopool.experiments.reproduce.paper").joinpath("tables.json").read_text(encoding="utf-8")
    return {name: _table(name, saved) for name, saved in json.loads(text).items()}


def _table(name: str, saved: dict[str, Any]) -> PaperTable:
    datasets = tuple(saved["datasets"])
    facts: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in saved.items()}
    return PaperTable(name, **facts | {"rows": tuple(_row(row, datasets) for row in saved["rows"])})


def _row(saved: dict[str, Any], datasets: tuple[str, ...]) -> PaperRow:
    cells = zip(datasets, saved["figures"], strict=True)
    figures = {name: _figure(cell) for name, cell in cells if cell[0].isdigit()}
    sources = {name: source for each in saved.get("sources", ()) for name, source in _sources(**each)}
    if "pool" not in saved:
        run = tuple(name for name, source in sources.items() if source.system is not None)
    else:
        run = tuple(figures)
    return PaperRow(**saved | {"figures": figures, "datasets": run, "sources": sources})


def _sources(datasets: Sequence[str], **facts: Any) -> list[tuple[str, Source]]:
    return [(name, Source(**facts)) for name in datasets]


def _figure(cell: str) -> Figure:
    mean, *spread = (round(float(number) / 100, 4) for number in cell.split())
    return Figure(mean, spread[0] if spread else None)
