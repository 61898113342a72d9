"""The second figure of the paper."""

from collections.abc import Sequence

from sopool.experiments.reproduce.paper.figure2 import DRAWS, Verdict
from sopool.report.grid import Cell, Grid, word_cells


def figure2_grid(verdicts: Sequence[Verdict]) -> Grid:
    """Show which poolings distinguish the pairs of graphs of the paper."""
    examples = list(dict.fromkeys(one.example for one in verdicts))
    columns = ["pooling"]
    for example in examples:
        columns += [f"({example}) distance", f"({example})\ndistinguished", f"({example})\npaper"]
    rows = []
    for pool in dict.fromkeys(one.pool for one in verdicts):
        cells = [Cell(pool)]
        for example in examples:
            (one,) = (one for one in verdicts if (one.pool, one.example) == (pool, example))
            cells.append(Cell(f"{one.nearest:.2g} to {one.farthest:.2g}", one.nearest))
            cells += word_cells(["yes" if one.told_apart else "no", one.paper])
        rows.append(cells)
    return Grid(
        "Figure 2: distance between the vectors of two different graphs",
        columns,
        rows,
        words=[number for number, name in enumerate(columns) if "distance" not in name],
        notes=[
            "(a) Graphs of one color, with 3 and 5 nodes. (b) Graphs of two colors in equal shares, with 2 and 4 "
            "nodes. Nodes of the same color have the same features.",
            f"The distances are over {DRAWS} random draws of colors and parameters, in float64; below 1e-9 is rounding "
            "error.",
            "Paper: whether the paper says that the pooling fails.",
        ],
    )
