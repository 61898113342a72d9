"""The paper's five tables: what stands in them, where each figure is from, and how to run what can be run.

The figures are in ``tables.json``, as printed: "95.3 4.4" is 95.3 +- 4.4 per cent, "67.0" has no spread, and anything
else is a cell without a figure. From here on all are fractions.

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


class Figure(NamedTuple):
    """A published accuracy, as fractions."""

    mean: float
    std: float | None


@dataclass(frozen=True)
class PaperRow:
    """One line of a table: a model that can be run, a control, or figures that are only quoted."""

    name: str
    gnn: str | None = None
    pool: str | None = None
    blocks: int = 0
    """0 for flat models."""
    control: str | None = None
    """The control that is run for this line, as ``wl`` for the kernel of that name."""
    protocol: str | None = None
    """By which the paper's figures came about; None where it is not known."""
    quoted: str | None = None
    """Where the paper has the figures from, if not from its authors' own runs."""
    against: str | None = None
    """The line that this one is compared with: declared here, before anything is run."""
    datasets: tuple[str, ...] = ()
    """Where a model is trained for it: where the paper has a figure."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """By data set; those that the paper has none for are left out."""

    @property
    def kind(self) -> str:
        """``quoted`` (nothing is run), ``control``, ``random`` (a pooling that learns nothing itself) or ``model``."""
        if self.control is not None:
            return "control"
        if self.pool is None:
            return "quoted"
        return "random" if self.pool in FROZEN else "model"

    def to_json(self) -> dict[str, Any]:
        """Without the figures, which go with the cells."""
        names = ("name", "gnn", "pool", "blocks", "control", "protocol", "quoted", "against", "datasets")
        return {"kind": self.kind} | {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class PaperTable:
    """One table."""

    name: str
    title: str
    label: str
    """In the paper's source."""
    datasets: tuple[str, ...]
    preset: Preset
    hidden: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    rows: tuple[PaperRow, ...]
    notes: tuple[str, ...] = ()
    head: Head | None = None
    """Of hierarchies."""

    @property
    def setting(self) -> Setting:
        """What the grid does not vary."""
        return PRESETS[self.preset].setting

    @property
    def gnns(self) -> tuple[str, ...]:
        """Those of its lines, each once."""
        return tuple(dict.fromkeys(row.gnn for row in self.rows if row.gnn is not None))

    @property
    def hierarchical(self) -> bool:
        """Whether its models have blocks."""
        return any(row.blocks for row in self.rows)


@cache
def read_tables() -> Mapping[str, PaperTable]:
    """All tables by name."""
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
