"""The runs that a reproduction would train."""

from collections.abc import Sequence

from sopool.experiments.reproduce.plan import Planned
from sopool.report.grid import Cell, Grid, number_cell, word_cells

COUNTS = ("runs", "found", "model_epochs", "left")


def plan_grid(lines: Sequence[Planned]) -> Grid:
    """Show what would be trained, and an estimate of the time."""
    rows = [
        _row((one.dataset, one.network, ", ".join(one.pools)), [getattr(one, name) for name in COUNTS], one.seconds)
        for one in lines
    ]
    sections = []
    if len(lines) > 1:
        sections.append(len(rows))
        sums = [sum(getattr(one, name) for one in lines) for name in COUNTS]
        rows.append(_row(("all", "", ""), sums, sum(one.seconds for one in lines)))
    columns = ["data set", "GNN", "poolings or systems", "runs", "in the store", "model-epochs", "to train", "about"]
    return Grid("Runs to train", columns, rows, words=3, sections=sections)


def _row(names: Sequence[str], counts: Sequence[int], seconds: float) -> list[Cell]:
    return [*word_cells(names), *map(number_cell, counts), Cell(_time(seconds), seconds)]


def _time(seconds: float) -> str:
    """Format an estimated time with two significant digits."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.2g} {unit}" if seconds < 100 * length else f"{seconds / length:,.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s" if seconds else "-"
