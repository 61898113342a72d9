"""The paper's second figure."""

from collections.abc import Sequence

from sopool.experiments.reproduce.paper.figure2 import DRAWS, Verdict
from sopool.report.grid import Cell, Grid, word_cells


def figure2_grid(verdicts: Sequence[Verdict]) -> Grid:
    """Show which poolings tell the paper's pairs of graphs apart."""
    examples = list(dict.fromkeys(one.example for one in verdicts))
    columns = ["pooling"]
    for example in examples:
        columns += [f"({example}) distance", f"({example})\ntold apart", f"({example})\npaper"]
    rows = []
    for pool in dict.fromkeys(one.pool for one in verdicts):
        cells = [Cell(pool)]
        for example in examples:
            (one,) = (one for one in verdicts if (one.pool, one.example) == (pool, example))
            cells.append(Cell(f"{one.nearest:.2g} to {one.farthest:.2g}", one.nearest))
            cells += word_cells(["yes" if one.told_apart else "no", one.paper])
        rows.append(cells)
    return Grid(
        "Figure 2: two different graphs, how far apart?",
        columns,
        rows,
        words=[number for number, name in enumerate(columns) if "distance" not in name],
        notes=[
            "(a) one colour, 3 nodes and 5. (b) two colours in equal shares, 2 nodes and 4. Nodes of one colour have "
            "one representation.",
            f"Distance of the two vectors over {DRAWS} draws of colours and parameters, in float64: below 1e-9 is "
            "rounding.",
            "paper: where it says that the pooling fails.",
        ],
    )
