"""What a reproduced table looks like, from made-up figures."""

import pytest

from sopool.cli.output import SafeConsole
from sopool.experiments.reproduce.paper import Figure, PaperRow
from sopool.experiments.reproduce.plan import Planned
from sopool.experiments.reproduce.reproducer import across, compare_cells
from sopool.experiments.reproduce.reproduction import Measured, Reproduction, TableCell
from sopool.report.grids.plan import plan_grid
from sopool.report.grids.reproduction import reproduction_grids

PROTOCOLS = ("per-fold-max", "fair")


def measured(*folds):
    return {name: Measured(folds, (1, 2, 3), {}) for name in PROTOCOLS}


def reproduction(datasets):
    rows = (
        PaperRow("an [old] kernel", quoted="somebody", figures={"MUTAG": Figure(0.7, None)}),
        PaperRow("Sum", "gin-0", "sum-avg", protocol="single-epoch", figures={"MUTAG": Figure(0.894, 0.056)}),
        PaperRow(
            "Second", "gin-0", "sopool", protocol="per-fold-max", against="Sum", figures={"MUTAG": Figure(0.95, 0.04)}
        ),
        PaperRow("Second, random", "gin-0", "sopool-bimap-random", against="Second"),
        PaperRow("size", control="size"),
    )
    cells = []
    for number, dataset in enumerate(datasets):
        cells += [
            TableCell(rows[0].name, dataset, rows[0].figures.get(dataset)),
            TableCell("Sum", dataset, rows[1].figures.get(dataset), measured(0.80, 0.86), ("size",)),
            TableCell("Second", dataset, rows[2].figures.get(dataset), measured(0.90, 0.94 + number / 100)),
            TableCell("Second, random", dataset, None, measured(0.85, 0.85)),
            TableCell("size", dataset, None, {"fair": Measured((0.84, 0.84), (), {})}),
        ]
    return Reproduction(
        table="table2",
        title="A table",
        datasets=tuple(datasets),
        protocols=PROTOCOLS,
        rows=rows,
        cells=tuple(cells),
        comparisons=tuple(compare_cells(rows, cells)),
        across=tuple(across(rows, cells, protocol) for protocol in PROTOCOLS),
    )


def text(tables, width=160):
    console = SafeConsole(width=width, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as shown:
        for table in tables:
            console.print(table)
    return shown.get()


def line(grids, *starts):
    """The cells of the one line that starts with these."""
    lines = [[cell.text.replace("±", "+-") for cell in row] for grid in grids for row in grid.rows]
    (found,) = [cells for cells in lines if tuple(cells[: len(starts)]) == starts]
    return found


def test_the_lines_of_a_data_set():
    shown = reproduction_grids(reproduction(["MUTAG"]))[:1]
    assert line(shown, "an [old] kernel") == ["an [old] kernel", "70.0", "not known", "", "", "", "quoted: somebody"]
    note = "! not above size"
    assert line(shown, "Sum") == ["Sum", "89.4 +- 5.6", "single-epoch", "83.0 +- 3.0", "83.0 +- 3.0", "", note]
    assert line(shown, "Second") == ["Second", "95.0 +- 4.0", "per-fold-max", "92.0 +- 2.0", "92.0 +- 2.0", "-3.0", ""]
    assert line(shown, "size") == ["size", "-", "", "", "84.0 +- 0.0", "", ""]


def test_gains_stand_beside_the_papers():
    tables = reproduction_grids(reproduction(["MUTAG"]))
    assert [str(table.title).split(":")[0].split(",")[0] for table in tables] == [
        "MUTAG",
        "Gain over the baseline",
        "Gain of learned over random parameters",
        "Gain over the best control",
    ]
    gains = line(tables[1:2], "MUTAG", "Second", "Sum")
    assert gains[3] == "+5.6"
    assert gains[4].startswith("+9.0 (")
    assert line(tables[2:3], "MUTAG", "Second", "Second, random")[3].startswith("+7.0 (")
    assert line(tables[3:], "MUTAG", "Sum", "size")[3].startswith("-1.0 (")


def test_over_several_data_sets_there_are_ranks_and_tests():
    shown = reproduction_grids(reproduction(["MUTAG", "PTC", "NCI1"]))[-2:]
    assert line(shown, "Second", "1.00", "1.00")
    assert line(shown, "Sum", "2.00", "2.00")
    assert "too few for the Friedman test" in " ".join(text(shown).split())
    assert line(shown, "Second", "Sum", "3")[3] == "+9.5, 0.250, 0.250"


def test_nothing_is_cut_off_where_it_is_narrow():
    wide, narrow = (text(reproduction_grids(reproduction(["MUTAG"])), width) for width in (160, 60))
    assert max(map(len, narrow.splitlines())) <= 60
    assert "…" not in narrow
    assert "per-fold-max" in wide


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "-"), (0.2, "1 s"), (100, "100 s"), (1000, "17 min"), (1e4, "2.8 h"), (1e6, "12 d")]
)
def test_estimates_have_two_figures(seconds, expected):
    shown = [plan_grid([Planned("MUTAG", "gin-0", ("sum",), 1200, 0, 3600, 3600, seconds)])]
    assert line(shown, "MUTAG")[2:] == ["sum", "1,200", "0", "3,600", "3,600", expected]


def test_a_plan_of_several_lines_is_summed_up():
    one = Planned("MUTAG", "gin-0", ("sum",), 10, 4, 30, 18, 60.0)
    assert line([plan_grid([one, one])], "all") == ["all", "", "", "20", "8", "60", "36", "2 min"]
