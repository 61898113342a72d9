"""A grid as a table for the terminal."""

from rich.table import Table

from sopool.report.grid import Grid

SHORT = 15
"""Names of rows up to this length are never broken."""


def rich_table(grid: Grid) -> Table:
    """Make a Rich table of a grid, its notes below. Figures are at the right; long text goes on in the next line.

    The sign ± is written +-, for terminals and files that take ASCII only, and bold cells look like the others.
    """
    notes = "\n".join(map(_ascii_signs, grid.notes))
    table = Table(title=grid.title, caption=notes or None, title_justify="left", caption_justify="left")
    for number, name in enumerate(grid.columns):
        whole = number == 0 and all(len(row[0].text) <= SHORT for row in grid.rows)
        table.add_column(name, justify="right" if grid.is_figure(number) else "left", overflow="fold", no_wrap=whole)
    for number, row in enumerate(grid.rows):
        if number in grid.sections:
            table.add_section()
        table.add_row(*(_ascii_signs(cell.text) if grid.is_figure(i) else cell.text for i, cell in enumerate(row)))
    return table


def _ascii_signs(text: str) -> str:
    return text.replace("±", "+-")
