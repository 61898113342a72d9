"""What a reproduced table says: our figures beside the paper's, comparisons, ranks. Plain data, kept as JSON."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from sopool._files.atomic import whole_file, why
from sopool._files.schema import choice, mapping_of, read_json, record, text, tuple_of, value_check
from sopool._files.sealed import json_digest
from sopool.errors import DataError, UserError
from sopool.experiments.comparison import Comparison
from sopool.experiments.reproduce.paper.tables import TABLES, Figure, PaperRow
from sopool.experiments.reproduce.reproduction_schema import CELL, COMPARED, PROTOCOL, ROW, SETUP
from sopool.experiments.statistics import Across
from sopool.models.config import Setting
from sopool.training.protocols.outcome import Outcome, describe_settings
from sopool.training.runs.layout import TABLE_FILES, path_of

FORMAT = 1
AGAIN = "sopool reproduce makes it anew from the runs that are kept."


@dataclass(frozen=True)
class Measured:
    """What one line reached on one data set under one protocol, in fractions."""

    folds: tuple[float, ...]
    """Accuracy of each test fold; several seeds are averaged within it."""
    epochs: tuple[int, ...]
    """The lowest, median and highest that was chosen; empty for a control, which has none."""
    settings: Mapping[str, int]
    """In words, and how often each was chosen: once for each seed or, under ``fair``, fold and seed."""
    stopped: int = 0
    """Runs whose loss was no longer finite."""

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> "Measured":
        """From what each seed gave."""
        epochs = np.concatenate([np.ravel(one.epochs) for one in outcomes])
        chosen = [(one.setting,) if isinstance(one.setting, Setting) else one.setting for one in outcomes]
        return cls(
            folds=tuple(float(fold) for fold in np.mean([one.folds for one in outcomes], axis=0)),
            epochs=(int(epochs.min()), int(np.median(epochs)), int(epochs.max())) if epochs.size else (),
            settings=dict(Counter(describe_settings(setting) for settings in chosen for setting in settings)),
            stopped=sum(len(one.stopped) for one in outcomes),
        )

    @property
    def mean(self) -> float:
        """Over folds."""
        return float(np.mean(self.folds))

    @property
    def std(self) -> float:
        """Over folds, with ``ddof=0``, as the published figures."""
        return float(np.std(self.folds))

    def to_json(self) -> dict[str, Any]:
        """All of it, with mean and deviation."""
        return {"mean": self.mean, "std": self.std} | vars(self)


@dataclass(frozen=True)
class TableCell:
    """One line on one data set."""

    row: str
    dataset: str
    paper: Figure | None = None
    measured: Mapping[str, Measured] = field(default_factory=dict)
    """By protocol; empty where nothing was run."""
    not_above: tuple[str, ...] = ()
    """The controls whose mean accuracy under ``fair`` is as high, or higher."""
    model_epochs: int = 0
    seconds: float = 0.0
    """Spent on training, or on fitting a control; workers side by side count each for itself."""

    def to_json(self) -> dict[str, Any]:
        """All of it, plain."""
        return vars(self) | {
            "paper": None if self.paper is None else self.paper._asdict(),
            "measured": {protocol: one.to_json() for protocol, one in self.measured.items()},
        }

    @classmethod
    def from_json(cls, saved: Any, where: str = "cell") -> "TableCell":
        """Return what :meth:`to_json` gave; ``DataError`` if this is something else."""
        found = CELL(saved, where)
        paper = None if found["paper"] is None else Figure(**found["paper"])
        names = [item.name for item in fields(Measured)]
        measured = {
            protocol: Measured(**{name: one[name] for name in names}) for protocol, one in found["measured"].items()
        }
        return cls(**found | {"paper": paper, "measured": measured})


@dataclass(frozen=True)
class PairComparison:
    """One line against another on one data set under one protocol."""

    row: str
    against: str
    dataset: str
    protocol: str
    why: str
    """``declared`` (in the table's data), ``random`` (learned against drawn) or ``control`` (the best)."""
    comparison: Comparison

    def to_json(self) -> dict[str, Any]:
        """All of it, plain."""
        return vars(self) | {"comparison": self.comparison.to_json()}

    @classmethod
    def from_json(cls, saved: Any, where: str = "comparison") -> "PairComparison":
        """Return what :meth:`to_json` gave; ``DataError`` if this is something else."""
        found = COMPARED(saved, where)
        test = found["comparison"]
        t = math.copysign(math.inf, test["difference"]) if test["t"] is None else test["t"]
        return cls(**found | {"comparison": Comparison(**test | {"t": t})})


@dataclass(frozen=True)
class Reproduction:
    """A table of the paper, run again."""

    table: str
    title: str
    datasets: tuple[str, ...]
    """Those that were asked for, in the paper's order."""
    protocols: tuple[str, ...]
    rows: tuple[PaperRow, ...]
    cells: tuple[TableCell, ...]
    comparisons: tuple[PairComparison, ...]
    across: tuple[Across, ...]
    """Over data sets, one for each protocol."""
    notes: tuple[str, ...] = ()
    not_run: Mapping[str, str] = field(default_factory=dict)
    """Data sets that could not be read, and why."""
    setup: Mapping[str, Any] = field(default_factory=dict)
    """Epochs, folds, seeds, grid, preset, device, version."""

    def cell(self, row: str, dataset: str) -> TableCell:
        """The one of this line and data set; an empty one if there is none."""
        found = (cell for cell in self.cells if (cell.row, cell.dataset) == (row, dataset))
        return next(found, TableCell(row, dataset))

    def compared(self, why: str) -> list[PairComparison]:
        """The pairs of lines that were compared for this reason."""
        return [one for one in self.comparisons if one.why == why]

    def paper_gain(self, dataset: str, row: str, against: str) -> float | None:
        """The difference of the paper's two figures, whatever their protocols; None where it lacks one."""
        first, second = (self.cell(name, dataset).paper for name in (row, against))
        return None if first is None or second is None else first.mean - second.mean

    def to_json(self) -> dict[str, Any]:
        """All of it, plain; accuracies and differences as fractions."""
        lists = {
            name: [one.to_json() for one in getattr(self, name)] for name in ("rows", "cells", "comparisons", "across")
        }
        return {"format": FORMAT} | vars(self) | lists

    @classmethod
    def from_json(cls, saved: Any) -> "Reproduction":
        """Return what :meth:`to_json` gave; ``DataError`` if this is something else."""
        found = SAVED(saved, "the table")
        del found["format"]
        made = cls(**found | {"rows": tuple(_row(row, found["cells"]) for row in found["rows"])})
        made._check()
        return made

    def _check(self) -> None:
        """Raise a ``DataError`` where parts do not fit together."""
        controls = {row.name for row in self.rows if row.kind == "control"}
        for cell in self.cells:
            for protocol, one in cell.measured.items():
                if len(one.folds) != self.setup["folds"]:
                    raise DataError(
                        f"{cell.row} on {cell.dataset} has {len(one.folds)} folds, not {self.setup['folds']}."
                    )
                if cell.row in controls and protocol != "fair":
                    raise DataError(f"the control {cell.row} has figures under {protocol}, expected fair alone.")

    @property
    def training(self) -> dict[str, Any]:
        """Of the setup, what figures depend on: two tables belong together if it is the same."""
        kept = {name: value for name, value in self.setup.items() if name not in ("device", "sopool")}
        settings = sorted(kept["settings"], key=lambda setting: tuple(setting.values()))
        return kept | {"settings": settings, "seeds": sorted(kept["seeds"])}

    def save(self, folder: Path) -> Path:
        """Keep it beside the runs, as ``reproduce-table2-0a1b2c3d.json`` or the like.

        The figures depend on what was asked for, and so does the name: asked for again, they are written again.
        """
        asked = [self.datasets, self.protocols, [row.name for row in self.rows], self.training]
        key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:8]
        path = path_of(folder, TABLE_FILES, f"{self.table}-{key}")
        plain = self.to_json()
        text = json.dumps({"digest": json_digest(plain)} | plain, indent=1, allow_nan=False)
        try:
            with whole_file(path) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise DataError(f"the figures cannot be written: {why(error)}") from error
        return path


def load_reproduction(path: Path) -> Reproduction:
    """What :meth:`Reproduction.save` wrote; or :meth:`Reproduction.to_json`, which has no digest."""
    try:
        saved = read_json(path)
        digest = saved.pop("digest", None) if isinstance(saved, dict) else None
        if digest not in (None, json_digest(saved)):
            raise DataError(f"is not what was written: the digest differs. {AGAIN}", path)
        return Reproduction.from_json(saved)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}.", path) from error
    except UserError as error:
        if error.path is not None:
            raise
        raise DataError(f"is not a reproduced table of this version of sopool: {error} {AGAIN}", path) from error


def _row(saved: Mapping[str, Any], cells: Sequence[TableCell]) -> PaperRow:
    figures = {cell.dataset: cell.paper for cell in cells if cell.row == saved["name"] and cell.paper is not None}
    return PaperRow(**{key: value for key, value in saved.items() if key != "kind"}, figures=figures)


SAVED = record(
    {
        "format": value_check(
            lambda value: value == FORMAT and type(value) is int, f"{FORMAT}, as this version writes"
        ),
        "table": choice(*TABLES),
        "title": text(),
        "datasets": tuple_of(text()),
        "protocols": tuple_of(PROTOCOL),
        "rows": tuple_of(ROW),
        "cells": tuple_of(TableCell.from_json),
        "comparisons": tuple_of(PairComparison.from_json),
        "across": tuple_of(Across.from_json),
        "notes": tuple_of(text()),
        "not_run": mapping_of(text()),
        "setup": SETUP,
    }
)
