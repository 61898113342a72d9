"""A table, whatever it is written as: the terminal, the page, Markdown and LaTeX show the same ones."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sopool.experiments.comparison import Comparison
from sopool.training.protocols.protocols import PROTOCOLS

if TYPE_CHECKING:
    from sopool.report.terminal.table import TerminalTable


class Cell(NamedTuple):
    """What stands in a table."""

    text: str
    value: float | None = None
    """What it is sorted by; None: its text."""
    strong: bool = False


@dataclass(frozen=True)
class Grid:
    """Lines of cells under named columns."""

    title: str
    columns: Sequence[str]
    """Their names; a line break in one is where a terminal breaks it, see :attr:`headings`."""
    rows: Sequence[Sequence[Cell]]
    words: int | Collection[int] = 1
    """How many columns, from the left, are words, or which ones, from 0; the others are figures."""
    notes: Sequence[str] = field(default_factory=tuple)
    sections: Collection[int] = ()
    """The rows, from 0, that have a rule above them."""

    @property
    def headings(self) -> list[str]:
        """The names of the columns, each on one line."""
        return [name.replace("/\n", "/").replace("\n", " ") for name in self.columns]

    def __rich__(self) -> "TerminalTable":
        """Return what Rich prints of it."""
        from sopool.report.terminal.table import rich_table

        return rich_table(self)

    def is_figure(self, column: int) -> bool:
        """Return whether a column, from 0, has figures."""
        return column >= self.words if isinstance(self.words, int) else column not in self.words

    def without_empty(self) -> "Grid":
        """Return the grid without the columns that say nothing in any line."""
        kept = [i for i in range(len(self.columns)) if any(row[i].text for row in self.rows)]
        if isinstance(self.words, int):
            words: int | Collection[int] = sum(not self.is_figure(i) for i in kept)
        else:
            words = [new for new, old in enumerate(kept) if not self.is_figure(old)]
        return Grid(
            self.title,
            [self.columns[i] for i in kept],
            [[row[i] for i in kept] for row in self.rows],
            words,
            self.notes,
            self.sections,
        )


NONE = Cell("-", float("-inf"))
"""Where there is no figure."""


def word_cells(texts: Iterable[str]) -> list[Cell]:
    """Make a cell of each text."""
    return [Cell(text) for text in texts]


def accuracy_cell(mean: float, std: float | None) -> Cell:
    """Show fractions as percent; the spread where it is known."""
    return Cell(f"{100 * mean:.1f}" + ("" if std is None else f" ± {100 * std:.1f}"), mean)


def number_cell(number: int) -> Cell:
    """Show a whole number."""
    return Cell(f"{number:,}", number)


def seconds_cell(seconds: float | None) -> Cell:
    """Show seconds, to the tenth while they are few."""
    if seconds is None:
        return NONE
    return Cell(f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.1f}", seconds)


def points_cell(difference: float, strong: bool = False) -> Cell:
    """Show a difference of fractions in points, with its sign."""
    return Cell(points(difference), difference, strong)


def points(difference: float) -> str:
    """Write a difference of fractions in points, with its sign; what rounds to 0 has no minus."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}"


def gain_words(test: Comparison) -> str:
    """Write a difference in points, with its interval."""
    return f"{points(test.difference)} ({interval_words(test)})"


def interval_words(test: Comparison) -> str:
    """Write the interval in points: -0.0 is below 0, so that it shows on which side of 0 an end lies."""
    return f"{100 * test.low:+.1f} to {100 * test.high:+.1f}"


def p_cell(p: float) -> Cell:
    """Show a p value."""
    return Cell("<0.001" if p < 0.001 else f"{p:.3f}", p)


def paired_test_note(tests: Iterable[Comparison]) -> str:
    """Say where the intervals and p values of these comparisons come from."""
    folds = ", ".join(str(count) for count in sorted({one.folds for one in tests}))
    return (
        f"Interval and p: corrected resampled t-test (Nadeau and Bengio) over the same {folds} folds, two-sided, not "
        "adjusted for the number of comparisons."
    )


def protocol_label(protocol: str) -> str:
    """Return a protocol's name with a warning where it is due."""
    optimistic = PROTOCOLS[protocol].optimistic
    return f"{protocol} ({optimistic})" if optimistic else protocol


def protocol_heading(protocol: str) -> str:
    """Return the same for a column's name."""
    return protocol_label(protocol).replace(" (", "\n(")
