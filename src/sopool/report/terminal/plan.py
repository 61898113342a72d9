"""What a reproduction would train, for the terminal."""

from collections.abc import Sequence

from rich.table import Table

from sopool.experiments.reproduce.plan import Planned


def plan_table(lines: Sequence[Planned]) -> Table:
    """What would be trained, and about how long it takes."""
    table = Table(title="What is to train", title_justify="left")
    for column in ("data set", "GNN", "poolings"):
        table.add_column(column, overflow="fold")
    for column in ("runs", "in the store", "model-epochs", "to train", "about"):
        table.add_column(column, justify="right", overflow="fold")
    for one in lines:
        counts = (f"{number:,}" for number in (one.runs, one.found, one.model_epochs, one.left))
        table.add_row(one.dataset, one.network, ", ".join(one.pools), *counts, _time(one.seconds))
    if len(lines) > 1:
        table.add_section()
        sums = (sum(getattr(one, name) for one in lines) for name in ("runs", "found", "model_epochs", "left"))
        table.add_row("all", "", "", *(f"{number:,}" for number in sums), _time(sum(one.seconds for one in lines)))
    return table


def _time(seconds: float) -> str:
    """Two figures at most, for it is an estimate."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.2g} {unit}" if seconds < 100 * length else f"{seconds / length:,.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s" if seconds else "-"
