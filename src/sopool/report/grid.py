"""A table, whatever it is written as: the page, Markdown and LaTeX show the same ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sopool.experiments.comparison import Comparison
from sopool.training.protocols.protocols import PROTOCOLS


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
    rows: Sequence[Sequence[Cell]]
    words: int = 1
    """How many columns, from the left, are words; the others are figures."""
    notes: Sequence[str] = field(default_factory=tuple)

    def without_empty(self) -> "Grid":
        """Without the columns that say nothing in any line."""
        kept = [i for i in range(len(self.columns)) if any(row[i].text for row in self.rows)]
        return Grid(
            self.title,
            [self.columns[i] for i in kept],
            [[row[i] for i in kept] for row in self.rows],
            sum(i < self.words for i in kept),
            self.notes,
        )


NONE = Cell("-", float("-inf"))
"""Where there is no figure."""


def accuracy_cell(mean: float, std: float | None) -> Cell:
    """Fractions as per cent; the spread where it is known."""
    return Cell(f"{100 * mean:.1f}" + ("" if std is None else f" ± {100 * std:.1f}"), mean)


def points_cell(difference: float, strong: bool = False) -> Cell:
    """A difference of fractions in points, with its sign."""
    return Cell(points(difference), difference, strong)


def points(difference: float) -> str:
    """The same as text; what rounds to 0 has no minus."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}"


def gain_words(test: Comparison) -> str:
    """A difference in points, with its interval."""
    return f"{points(test.difference)} ({interval_words(test)})"


def interval_words(test: Comparison) -> str:
    """The interval in points: -0.0 is below 0, so that it shows on which side of 0 an end lies."""
    return f"{100 * test.low:+.1f} to {100 * test.high:+.1f}"


def p_cell(p: float) -> Cell:
    """A p value."""
    return Cell("<0.001" if p < 0.001 else f"{p:.3f}", p)


def in_words(protocol: str) -> str:
    """A protocol's name with a warning where it is due."""
    optimistic = PROTOCOLS[protocol].optimistic
    return f"{protocol} ({optimistic})" if optimistic else protocol
