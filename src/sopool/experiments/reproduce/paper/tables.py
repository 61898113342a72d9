"""The paper's five tables: their figures, where each comes from, and how to run them.

The figures are in ``tables.json`` as printed: "95.3 4.4" is 95.3 +- 4.4 percent, "67.0" has no standard deviation, and
anything else is a cell without a figure. In Python all figures are fractions.

Z. Wang, S. Ji. Second-order pooling for graph neural networks. IEEE TPAMI, 2020.
"""

import json
from collections.abc import Mapping
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
class PaperRow:
    """One row of a table: a model that can be run, a control, or figures that are only quoted.

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
    """The data sets on which a model is trained: those with a figure in the paper."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """The paper's figures by data set; data sets without a figure are left out."""

    @property
    def kind(self) -> str:
        """``quoted`` (nothing is run), ``control``, ``random`` (a pooling without learned parameters) or ``model``."""
        if self.control is not None:
            return "control"
        if self.pool is None:
            return "quoted"
        return "random" if self.pool in FROZEN else "model"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object without the figures, which belong to the cells."""
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

    @property
    def setting(self) -> Setting:
        """The hyperparameters that the grid does not vary."""
        return PRESETS[self.preset].setting

    @property
    def gnns(self) -> tuple[str, ...]:
        """The message-passing layers of its rows, without repetitions."""
        return tuple(dict.fromkeys(row.gnn for row in self.rows if row.gnn is not None))

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
    return PaperRow(**saved | {"figures": figures, "datasets": tuple(figures) if "pool" in saved else ()})


def _figure(cell: str) -> Figure:
    mean, *spread = (round(float(number) / 100, 4) for number in cell.split())
    return Figure(mean, spread[0] if spread else None)
