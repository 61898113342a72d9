"""What else lies in a folder of runs, as tables: reproduced tables of the paper, and controls."""

from collections.abc import Sequence

from sopool.experiments.reproduce.paper.tables import Figure, Row
from sopool.experiments.reproduce.reproduction import Cell as TableCell
from sopool.experiments.reproduce.reproduction import Measured, Reproduction
from sopool.experiments.systems import CONTROLS, ControlResult
from sopool.report.grid import NONE, Cell, Grid, accuracy_cell, in_words, points_cell


def reproduction_grid(found: Reproduction) -> Grid:
    """Each line on each data set: the paper's figure, ours under every protocol."""
    rows = []
    for dataset in found.datasets:
        for row in found.rows:
            cell = found.cell(row.name, dataset)
            if cell.measured or cell.paper is not None:
                rows.append(_line(found, row, cell))
    columns = [
        *("data set", "line", "where the figure is from", "its protocol", "paper"),
        *map(in_words, found.protocols),
        *("ours less the paper's", "not above"),
    ]
    notes = [
        "Per cent: mean ± standard deviation over the test folds. Ours less the paper's: in points, under the protocol "
        "of the paper's figure; empty where nothing was run or that is not known. Not above: controls whose mean is as "
        "high under fair.",
        *(f"Not run: {name}: {why}" for name, why in found.not_run.items()),
    ]
    return Grid(found.title, columns, rows, 4, notes).without_empty()


def _line(found: Reproduction, row: Row, cell: TableCell) -> list[Cell]:
    ours = cell.measured.get(row.protocol or "")
    off = NONE
    if ours is not None and cell.paper is not None:
        off = points_cell(ours.mean - cell.paper.mean)
    source = f"quoted: {row.quoted}" if row.quoted else "the paper's own runs" if cell.paper else "ours only"
    return [
        Cell(cell.dataset),
        Cell(row.name),
        Cell(source),
        Cell((row.protocol or "not known") if cell.paper else ""),
        _figure(cell.paper),
        *(_figure(cell.measured.get(protocol)) for protocol in found.protocols),
        off,
        Cell(", ".join(cell.not_above)),
    ]


def _figure(figure: Figure | Measured | None) -> Cell:
    return NONE if figure is None else accuracy_cell(figure.mean, figure.std)


def controls_grid(results: Sequence[ControlResult]) -> Grid:
    """One line for each."""
    rows = [
        [
            Cell(one.dataset),
            Cell(one.control),
            Cell(CONTROLS[one.control].sees),
            accuracy_cell(one.outcome.mean, one.outcome.std),
            Cell(f"{len(one.outcome.folds)} x {one.outcome.repeats}", len(one.outcome.folds)),
            Cell(f"{one.seconds:,.1f}", one.seconds),
        ]
        for one in results
    ]
    return Grid("Controls under fair", ["data set", "control", "sees", "accuracy", "folds x seeds", "seconds"], rows, 3)
