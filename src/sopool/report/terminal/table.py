"""A grid as a table for the terminal."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult

    from sopool.report.grid import Grid

PIECE = re.compile(r"[^/,;_-]*[/,;_-]+|[^/,;_-]+")
"""The pieces of a long word, which may be broken after these signs."""
WORD = re.compile(r"\S+(?: \+- \S+)?")
"""A word, or a mean with its standard deviation."""
GAP = 2
"""The number of spaces between two columns."""


class TerminalTable:
    """A Rich renderable that shows a grid as a table, with its notes below, within the width of the terminal.

    Figures are right-aligned. On a narrow terminal the text wraps between words, and then long words are broken. The
    sign ± is written +-, because some terminals and files accept ASCII only, and bold cells look like the others.
    """

    def __init__(self, grid: "Grid") -> None:
        self._grid = grid
        self._headings = list(grid.columns)
        self._rows = [
            [_ascii_signs(cell.text) if grid.is_figure(i) else cell.text for i, cell in enumerate(row)]
            for row in grid.rows
        ]

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """Render the table within the available width."""
        columns = [[heading, *cells] for heading, *cells in zip(self._headings, *self._rows, strict=True)]
        natural = [_widest(column, str.splitlines) for column in columns]
        words = [_widest(column, WORD.findall) for column in columns]
        pieces = [_widest(column, _pieces) for column in columns]
        least = [_widest(column, PIECE.findall) for column in _in_words(columns)]
        whole = [natural[i] if self._grid.is_figure(i) else words[i] for i in range(len(columns))]
        spare = options.max_width - GAP * (len(columns) - 1)
        yield Text(self._grid.title, style="italic")
        yield self._table(_share(spare, [least, pieces, words, whole], natural))
        if self._grid.notes:
            yield Text("\n".join(map(_ascii_signs, self._grid.notes)), style="dim italic")

    def __rich_measure__(self, console: "Console", options: "ConsoleOptions") -> Measurement:
        """Return the smallest and the largest useful width."""
        return Measurement.get(console, options, self._table(None))

    def _table(self, widths: Sequence[int] | None) -> Table:
        grid = self._grid
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
        for number, name in enumerate(self._headings):
            width = None if widths is None else widths[number]
            justify: JustifyMethod = "right" if grid.is_figure(number) else "left"
            table.add_column(_broken(name, width), justify=justify, overflow="fold", width=width)
        for number, row in enumerate(self._rows):
            if number in grid.sections:
                table.add_section()
            table.add_row(*(_broken(cell, None if widths is None else widths[i]) for i, cell in enumerate(row)))
        return table


def rich_table(grid: "Grid") -> TerminalTable:
    """Return what Rich prints for a grid."""
    return TerminalTable(grid)


def _widest(cells: Sequence[str], parts: Callable[[str], Sequence[str]]) -> int:
    """Return the width of the widest part of any line of the cells."""
    return max((cell_len(part) for cell in cells for line in cell.splitlines() for part in parts(line)), default=0)


def _share(spare: int, levels: Sequence[Sequence[int]], natural: Sequence[int]) -> list[int]:
    """Return widths of the columns that add up to at most ``spare``, if their smallest ones do.

    Columns are first brought from level to level, those that need least first, and then widened toward their natural
    width so that no cell needs many more lines than the others.
    """
    widths = list(levels[0])
    for level in levels[1:]:
        for i in sorted(range(len(widths)), key=lambda i: level[i] - widths[i]):
            if sum(widths) - widths[i] + level[i] <= spare:
                widths[i] = max(widths[i], level[i])
    while sum(widths) < min(spare, sum(natural)):
        narrow = max(range(len(widths)), key=lambda i: natural[i] / max(widths[i], 1))
        if widths[narrow] >= natural[narrow]:
            break
        widths[narrow] += 1
    return widths


def _broken(text: str, width: int | None) -> str:
    """Break the words that are wider than a column after one of the signs of :data:`PIECE`."""
    if width is None or all(cell_len(word) <= width for word in text.split()):
        return text
    return "\n".join(" ".join(_break_word(word, width) for word in line.split(" ")) for line in text.splitlines())


def _pieces(line: str) -> list[str]:
    """Return the pieces of the words of a line; a mean with its standard deviation is one piece."""
    words = WORD.findall(line)
    return [piece for word in words for piece in ([word] if " " in word else PIECE.findall(word))]


def _in_words(columns: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[word for cell in column for word in cell.split()] for column in columns]


def _break_word(word: str, width: int) -> str:
    lines = [""]
    for piece in PIECE.findall(word):
        if lines[-1] and cell_len(lines[-1] + piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def _ascii_signs(text: str) -> str:
    return text.replace("±", "+-")
