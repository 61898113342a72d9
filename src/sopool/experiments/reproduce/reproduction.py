"""A reproduced table: results beside the paper's figures, comparisons and ranks, stored as JSON."""

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
from sopool.experiments.reproduce.paper.tables import TABLES, Figure, PaperRow, Source
from sopool.experiments.reproduce.reproduction_schema import CELL, COMPARED, PROTOCOL, ROW, SETUP
from sopool.experiments.statistics import Across
from sopool.models.config import Setting
from sopool.training.protocols.outcome import Outcome, describe_settings
from sopool.training.runs.layout import TABLE_FILES, path_of

FORMAT = 1
AGAIN = "Run sopool reproduce again: it writes the file from the stored runs."


@dataclass(frozen=True)
class Measured:
    """The result of one row on one data set under one protocol, in fractions."""

    folds: tuple[float, ...]
    """The accuracy on each test fold; several seeds are averaged within folds."""
    epochs: tuple[int, ...]
    """The lowest, median and highest chosen epoch; empty for a control, which has none."""
    settings: Mapping[str, int]
    """How often each setting was chosen, by its description: once per seed or, under ``fair``, per fold and seed."""
    stopped: int = 0
    """The number of runs that were stopped because their loss was not finite."""

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> "Measured":
        """Return the average of the results of several seeds."""
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
        """The mean accuracy over the folds."""
        return float(np.mean(self.folds))

    @property
    def std(self) -> float:
        """The standard deviation over the folds, with ``ddof=0`` as in the published results."""
        return float(np.std(self.folds))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, which includes mean and standard deviation."""
        return {"mean": self.mean, "std": self.std} | vars(self)


@dataclass(frozen=True)
class TableCell:
    """One row of a table on one data set."""

    row: str
    """The name of the row."""
    dataset: str
    """The name of the data set."""
    paper: Figure | None = None
    """The paper's figure; None if it has none."""
    measured: Mapping[str, Measured] = field(default_factory=dict)
    """The results by protocol; empty if nothing was run."""
    not_above: tuple[str, ...] = ()
    """The controls whose mean accuracy under ``fair`` is at least as high."""
    model_epochs: int = 0
    """The number of trained epochs of all runs."""
    seconds: float = 0.0
    """The time for training, or for fitting a control; parallel workers count separately."""
    source: Source | None = None
    """Where the paper's figure is from, if cells of its row differ in that."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; without a source it has none."""
        own = {name: value for name, value in vars(self).items() if name != "source"}
        source = {} if self.source is None else {"source": self.source.to_json()}
        return (
            own
            | source
            | {
                "paper": None if self.paper is None else self.paper._asdict(),
                "measured": {protocol: one.to_json() for protocol, one in self.measured.items()},
            }
        )

    @classmethod
    def from_json(cls, saved: Any, where: str = "cell") -> "TableCell":
        """Return the cell that :meth:`to_json` wrote; raise ``DataError`` if ``saved`` is not one."""
        found = CELL(saved, where)
        paper = None if found["paper"] is None else Figure(**found["paper"])
        names = [item.name for item in fields(Measured)]
        measured = {
            protocol: Measured(**{name: one[name] for name in names}) for protocol, one in found["measured"].items()
        }
        source = None if found["source"] is None else Source(**found["source"])
        return cls(**found | {"paper": paper, "measured": measured, "source": source})


@dataclass(frozen=True)
class PairComparison:
    """The comparison of two rows on one data set under one protocol."""

    row: str
    """The name of the row."""
    against: str
    """The name of the row it is compared with."""
    dataset: str
    """The name of the data set."""
    protocol: str
    """The name of the protocol."""
    why: str
    """``declared`` (in the table's data), ``random`` (learned and random parameters) or ``control`` (the best one)."""
    comparison: Comparison
    """The corrected paired test."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return vars(self) | {"comparison": self.comparison.to_json()}

    @classmethod
    def from_json(cls, saved: Any, where: str = "comparison") -> "PairComparison":
        """Return the comparison that :meth:`to_json` wrote; raise ``DataError`` if ``saved`` is not one."""
        found = COMPARED(saved, where)
        test = found["comparison"]
        t = math.copysign(math.inf, test["difference"]) if test["t"] is None else test["t"]
        return cls(**found | {"comparison": Comparison(**test | {"t": t})})


@dataclass(frozen=True)
class Reproduction:
    """A reproduced table of the paper."""

    table: str
    """The name of the table."""
    title: str
    """The title of the table."""
    datasets: tuple[str, ...]
    """The requested data sets, in the paper's order."""
    protocols: tuple[str, ...]
    """The names of the protocols."""
    rows: tuple[PaperRow, ...]
    """The rows of the table."""
    cells: tuple[TableCell, ...]
    """The cells: one for each row and data set."""
    comparisons: tuple[PairComparison, ...]
    """Comparisons of rows on single data sets."""
    across: tuple[Across, ...]
    """Comparisons over data sets, one for each protocol."""
    notes: tuple[str, ...] = ()
    """Remarks about the figures."""
    not_run: Mapping[str, str] = field(default_factory=dict)
    """The data sets that could not be read, with the reasons."""
    setup: Mapping[str, Any] = field(default_factory=dict)
    """Epochs, folds, seeds, grid, preset, device and version."""

    def cell(self, row: str, dataset: str) -> TableCell:
        """Return the cell of this row and data set; an empty one if there is none."""
        found = (cell for cell in self.cells if (cell.row, cell.dataset) == (row, dataset))
        return next(found, TableCell(row, dataset))

    def compared(self, why: str) -> list[PairComparison]:
        """Return the pairs of rows that were compared for this reason."""
        return [one for one in self.comparisons if one.why == why]

    def paper_gain(self, dataset: str, row: str, against: str) -> float | None:
        """Return the difference of the paper's two figures, whatever their protocols; None if one is missing."""
        first, second = (self.cell(name, dataset).paper for name in (row, against))
        return None if first is None or second is None else first.mean - second.mean

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; accuracies and differences are fractions."""
        lists = {
            name: [one.to_json() for one in getattr(self, name)] for name in ("rows", "cells", "comparisons", "across")
        }
        return {"format": FORMAT} | vars(self) | lists

    @classmethod
    def from_json(cls, saved: Any) -> "Reproduction":
        """Return the table that :meth:`to_json` wrote; raise ``DataError`` if ``saved`` is not one."""
        found = SAVED(saved, "the table")
        del found["format"]
        made = cls(**found | {"rows": tuple(_row(row, found["cells"]) for row in found["rows"])})
        made._check()
        return made

    def _check(self) -> None:
        """Raise ``DataError`` if parts of the table contradict each other."""
        controls = {row.name for row in self.rows if row.kind == "control"}
        for cell in self.cells:
            for protocol, one in cell.measured.items():
                if len(one.folds) != self.setup["folds"]:
                    raise DataError(
                        f"{cell.row} on {cell.dataset} has {len(one.folds)} folds, expected {self.setup['folds']}."
                    )
                if cell.row in controls and protocol != "fair":
                    raise DataError(f"the control {cell.row} has results under {protocol}, expected only fair.")

    @property
    def training(self) -> dict[str, Any]:
        """The part of the setup that the results depend on: tables are merged only if it is equal."""
        kept = {name: value for name, value in self.setup.items() if name not in ("device", "sopool")}
        settings = sorted(kept["settings"], key=lambda setting: tuple(setting.values()))
        return kept | {"settings": settings, "seeds": sorted(kept["seeds"])}

    def save(self, folder: Path) -> Path:
        """Write the table beside the runs, with a name such as ``reproduce-table2-0a1b2c3d.json``, and return its path.

        The name depends on the request, so that the same request replaces its earlier file.
        """
        asked: list[Any] = [self.datasets, self.protocols, [row.name for row in self.rows], self.training]
        asked += [[row.name, row.datasets] for row in self.rows if row.kind == "system"]
        key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:8]
        path = path_of(folder, TABLE_FILES, f"{self.table}-{key}")
        plain = self.to_json()
        text = json.dumps({"digest": json_digest(plain)} | plain, indent=1, allow_nan=False)
        try:
            with whole_file(path) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise DataError(f"the reproduced table cannot be written: {why(error)}") from error
        return path


def load_reproduction(path: Path) -> Reproduction:
    """Return the table that :meth:`Reproduction.save` wrote; a file without a digest is accepted, too."""
    try:
        saved = read_json(path)
        digest = saved.pop("digest", None) if isinstance(saved, dict) else None
        if digest not in (None, json_digest(saved)):
            raise DataError(f"the content was changed or damaged: the digest differs. {AGAIN}", path)
        return Reproduction.from_json(saved)
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror}.", path) from error
    except UserError as error:
        if error.path is not None:
            raise
        raise DataError(f"this is not a reproduced table of this version of sopool: {error} {AGAIN}", path) from error


def _row(saved: Mapping[str, Any], cells: Sequence[TableCell]) -> PaperRow:
    own = [cell for cell in cells if cell.row == saved["name"]]
    figures = {cell.dataset: cell.paper for cell in own if cell.paper is not None}
    sources = {cell.dataset: cell.source for cell in own if cell.source is not None}
    return PaperRow(**{key: value for key, value in saved.items() if key != "kind"}, figures=figures, sources=sources)


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
