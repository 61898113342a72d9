"""A table, whatever it is written as: the page, Markdown and LaTeX show the same ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


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
