"""Reproduce a table of the paper: plan its cells, train their runs through the store, and compare the results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sopool import __version__
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError
from sopool.experiments.comparison import corrected_paired_test
from sopool.experiments.evaluation import Evaluator, Request, train_together
from sopool.experiments.executors.local import Train, train_all
from sopool.experiments.reproduce.paper.tables import PaperRow
from sopool.experiments.reproduce.reproduction import Measured, PairComparison, Reproduction, TableCell
from sopool.experiments.reproduce.selection import TableSelection
from sopool.experiments.statistics import Across, compare_across
from sopool.experiments.systems import run_control
from sopool.models.presets import PRESETS
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Report

PROTOCOL_NOTE = (
    "The paper's own figures are per-fold-max, as its authors' code reports: each fold at the epoch that is best on "
    "its test graphs, which is optimistic. Its Sum/Avg lines are copied from GIN (Xu et al., 2019), which "
    "selects one epoch for all folds: single-epoch. The gains in the paper therefore compare different protocols, "
    "while ours compare results of the same protocol."
)


@dataclass(frozen=True)
class CellJob:
    """The rows of one network on one data set with one seed, which are evaluated together."""

    dataset: str
    seed: int
    rows: tuple[PaperRow, ...]
    evaluator: Evaluator


class Reproducer:
    """Run the selected part of a table; runs that the store has are not trained again.

    Args:
        selection: The part of the table to run.
        stores: The labeled data sets by name.
        runs: The store of runs.
        not_run: The data sets that could not be read, with the reasons. Default: None.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.experiments.reproduce.paper import read_tables
        >>> from sopool.experiments.reproduce.reproducer import Reproducer
        >>> from sopool.experiments.reproduce.selection import TableSelection
        >>> from sopool.training.runs.store import RunStore
        >>> selection = TableSelection(read_tables()["table2"], datasets=["MUTAG"], pools=["sum-avg"], epochs=2)
        >>> Reproducer(selection, {"MUTAG": load("MUTAG")}, RunStore("runs")).total_epochs
        300
    """

    def __init__(
        self,
        selection: TableSelection,
        stores: Mapping[str, PackedGraphs],
        runs: RunStore,
        not_run: Mapping[str, str] | None = None,
    ) -> None:
        selection.check()
        for name, store in stores.items():
            if store.labels is None:
                raise DataError(f"{name} has no classes, but the tables of the paper are about classifications.")
        self.selection = selection
        self.stores = stores
        self.runs = runs
        self.not_run = dict(not_run or {})
        self.rows = selection.rows
        self.jobs = [
            CellJob(dataset, seed, rows, Evaluator(store, self._request(rows, dataset, seed), runs))
            for dataset, store in stores.items()
            for rows in self._networks(dataset)
            for seed in selection.seeds
        ]

    @property
    def total_epochs(self) -> int:
        """The number of epochs of all runs."""
        return sum(job.evaluator.total_epochs for job in self.jobs)

    @property
    def total_runs(self) -> int:
        """The number of runs, including those in the store."""
        return sum(job.evaluator.total_runs for job in self.jobs)

    def run(
        self,
        device: str = "cpu",
        workers: int | None = None,
        report: Report = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
        say: Callable[[str], None] = lambda _: None,
        train: Train = train_all,
    ) -> Reproduction | None:
        """Train the missing runs, run the controls and compare; return None if ``stop`` ended the training early.

        Args:
            device: ``"cpu"`` (default) or ``"cuda"``.
            workers: The number of processes on a CPU. Default: None, one for each core if there is enough work.
            report: Called with the progress of training.
            stop: Called after each epoch; if it returns True, training ends.
            say: Called with a message before each control.
            train: The function that trains runs. Default: on this machine.
        """
        cells = list[TableCell]()
        notes = list[str]()
        for dataset in self.stores:
            jobs = [job for job in self.jobs if job.dataset == dataset]
            together = [job.evaluator for job in jobs]
            if together and not train_together(together, device, workers, report, stop, train):
                return None
            controls = self._controls(dataset, stop, say)
            if stop():
                return None
            models = [self._model(row, dataset, jobs, notes) for row in self.rows if row.kind in ("model", "random")]
            systems = [self._model(row, dataset, jobs, notes) for row in self.rows if row.kind == "system"]
            judged = {row.name for row in self.rows if row.control is not None}
            both = [*controls, *(cell for cell in systems if cell.row in judged)]
            cells += [*(mark(cell, both) for cell in models), *systems, *controls]
        quoted = [row for row in self.rows if row.kind == "quoted"]
        cells += [empty_cell(row, dataset) for dataset in self.stores for row in quoted]
        cells += [empty_cell(row, dataset) for dataset in self.not_run for row in self.rows]
        return self._summary(self._in_order(cells), device, notes)

    def _networks(self, dataset: str) -> list[tuple[PaperRow, ...]]:
        """Return the rows to run on a data set, grouped by network; those of one network are evaluated together.

        Systems other than networks are a group of their own.
        """
        groups: dict[tuple[str | None, int], list[PaperRow]] = {}
        for row in self.rows:
            if dataset in row.datasets:
                groups.setdefault((row.gnn, row.blocks), []).append(row)
        return [tuple(rows) for rows in groups.values()]

    def _request(self, rows: Sequence[PaperRow], dataset: str, seed: int) -> Request:
        selection = self.selection
        first = rows[0]
        return Request(
            pools=[name for row in rows if (name := row.runs(dataset))],
            protocols=selection.protocols,
            gnn=first.gnn or PRESETS[selection.table.preset].gnn,
            settings=selection.settings,
            epochs=selection.epochs,
            folds=selection.folds,
            seed=seed,
            steps=selection.steps_asked,
            preset=selection.table.preset,
            blocks=first.blocks,
            head=selection.table.head,
        )

    def _model(self, row: PaperRow, dataset: str, jobs: Sequence[CellJob], notes: list[str]) -> TableCell:
        """Return a cell of the table, computed for one seed after the other to limit memory.

        Reasons why a protocol has no result with some seed are added to ``notes``.
        """
        outcomes = []
        epochs = 0
        seconds = 0.0
        for job in jobs:
            name = row.runs(dataset)
            if row in job.rows and name:
                found = job.evaluator.judge(name)
                outcomes.append(found.outcomes)
                notes += [f"{row.name} on {dataset}, seed {job.seed}: {why}" for why in found.missing.values()]
                epochs = epochs + found.model_epochs
                seconds = seconds + found.seconds
        judged = [name for name in self.selection.protocols if outcomes and all(name in one for one in outcomes)]
        measured = {name: Measured.of([one[name] for one in outcomes]) for name in judged}
        return replace(empty_cell(row, dataset), measured=measured, model_epochs=epochs, seconds=round(seconds, 3))

    def _controls(self, dataset: str, stop: Callable[[], bool], say: Callable[[str], None]) -> list[TableCell]:
        cells = []
        for row in self.rows:
            if row.control is None or row.kind != "control" or stop():
                continue
            say(f"control {row.control} on {dataset}")
            facts = (self.stores[dataset], self.selection.folds)
            found = [run_control(row.control, *facts, seed, self.runs.folder) for seed in self.selection.seeds]
            measured = {"fair": Measured.of([one.outcome for one in found])}
            seconds = sum(one.seconds for one in found)
            cells.append(replace(empty_cell(row, dataset), measured=measured, seconds=round(seconds, 3)))
        return cells

    def _in_order(self, cells: Sequence[TableCell]) -> tuple[TableCell, ...]:
        table = {(cell.dataset, cell.row): cell for cell in cells}
        return tuple(table[name, row.name] for name in self.selection.data for row in self.rows)

    def _summary(self, cells: tuple[TableCell, ...], device: str, said: Sequence[str]) -> Reproduction:
        selection = self.selection
        table = self.selection.table
        notes = [PROTOCOL_NOTE] if any(row.protocol for row in self.rows) else []
        if selection.departures:
            notes.insert(0, f"Not the paper's budget: {'; '.join(selection.departures)}.")
        return Reproduction(
            table=table.name,
            title=table.title,
            datasets=selection.data,
            protocols=tuple(selection.protocols),
            rows=self.rows,
            cells=cells,
            comparisons=tuple(compare_cells(self.rows, cells)),
            across=tuple(across(self.rows, cells, protocol) for protocol in selection.protocols),
            notes=(*notes, *said, *table.notes),
            not_run=self.not_run,
            setup=self._setup(device),
        )

    def _setup(self, device: str) -> dict[str, Any]:
        chosen = self.selection
        return {
            "preset": chosen.table.preset,
            "head": chosen.table.head,
            "settings": [setting.to_json() for setting in chosen.settings],
            "epochs": chosen.epochs,
            "steps": chosen.steps_asked,
            "folds": chosen.folds,
            "seeds": list(chosen.seeds),
            "device": device,
            "sopool": __version__,
        }


def compare_cells(rows: Sequence[PaperRow], cells: Sequence[TableCell]) -> list[PairComparison]:
    """Compare rows on each data set under each protocol: declared pairs, random parameters and the best control."""
    table = {(cell.dataset, cell.row): cell for cell in cells}
    controls = [row.name for row in rows if row.control is not None]
    found = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        for row in rows:
            pair = (row.against, row.name) if row.kind == "random" else (row.name, row.against)
            why = "random" if row.kind == "random" else "declared"
            found += _compared(table.get((dataset, pair[0] or "")), table.get((dataset, pair[1] or "")), why)
            if row.kind == "model":
                judged = [table[dataset, name] for name in controls if "fair" in table[dataset, name].measured]
                best = max(judged, key=lambda cell: cell.measured["fair"].mean, default=None)
                found += _compared(table[dataset, row.name], best, "control")
    return found


def across(rows: Sequence[PaperRow], cells: Sequence[TableCell], protocol: str) -> Across:
    """Compare all models over all data sets under one protocol."""
    models = {row.name: row for row in rows if row.kind == "model"}
    scores: dict[str, dict[str, float]] = {}
    for cell in cells:
        if cell.row in models and protocol in cell.measured:
            scores.setdefault(cell.row, {})[cell.dataset] = cell.measured[protocol].mean
    return compare_across(protocol, scores, [(row.name, row.against) for row in models.values() if row.against])


def _compared(cell: TableCell | None, other: TableCell | None, why: str) -> list[PairComparison]:
    if cell is None or other is None:
        return []
    found = []
    for protocol, measured in cell.measured.items():
        if protocol in other.measured:
            test = corrected_paired_test(measured.folds, other.measured[protocol].folds, len(measured.folds))
            found.append(PairComparison(cell.row, other.row, cell.dataset, protocol, why, test))
    return found


def mark(cell: TableCell, controls: Sequence[TableCell]) -> TableCell:
    """Return the cell with the names of the controls that it does not exceed."""
    if "fair" not in cell.measured:
        return cell
    reached = cell.measured["fair"].mean
    judged = [one for one in controls if "fair" in one.measured]
    names = tuple(one.row for one in judged if one.measured["fair"].mean >= reached)
    return TableCell(**vars(cell) | {"not_above": names})


def empty_cell(row: PaperRow, dataset: str) -> TableCell:
    """Return the cell of a row on a data set with the paper's figure only."""
    return TableCell(row.name, dataset, row.figures.get(dataset), source=row.sources.get(dataset))
