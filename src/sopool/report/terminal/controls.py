"""Results of controls as a table for the terminal."""

from collections import Counter
from collections.abc import Sequence

from rich.table import Table

from sopool.experiments.systems import CONTROLS, ControlResult
from sopool.report.terminal.results import accuracy_text, seconds_text


def controls_table(results: Sequence[ControlResult]) -> Table:
    """One line for each result on one data set, in the order given."""
    folds = len(results[0].outcome.folds)
    title = f"Controls on {results[0].dataset}, fair, {folds} folds: accuracy, per cent"
    table = Table(title=title, caption_justify="left")
    for name in ("control", "sees"):
        table.add_column(name, overflow="fold")
    for name in ("accuracy", "chosen", "seconds"):
        table.add_column(name, justify="right", overflow="fold")
    for one in results:
        table.add_row(
            one.control, CONTROLS[one.control].sees, accuracy_text(one.outcome), _chosen(one), seconds_text(one.seconds)
        )
    table.caption = (
        "Accuracy: mean +- standard deviation (ddof=0) over the test folds.\nChosen on held-out training graphs, the "
        "median (range) over folds or how many folds chose it; then the model learns from the whole training fold and "
        "is tested once."
    )
    return table


def _chosen(result: ControlResult) -> str:
    """Each setting on a line of its own."""
    names = dict.fromkeys(name for setting in result.settings for name in setting)
    lines = [f"{name} {_values([setting[name] for setting in result.settings])}" for name in names]
    return "\n".join(lines) or "-"


def _values(values: Sequence[float | bool]) -> str:
    """Such as ``10 (1-100)``, or ``8 of 10`` for what is either chosen or not."""
    if isinstance(values[0], bool):
        return f"{Counter(values)[True]} of {len(values)}"
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    low = ordered[0]
    high = ordered[-1]
    return f"{low:g}" if low == high else f"{middle:g} ({low:g}-{high:g})"
