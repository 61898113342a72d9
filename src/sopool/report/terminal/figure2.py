"""The paper's second figure as a table for the terminal."""

from collections.abc import Sequence

from rich.table import Table

from sopool.experiments.reproduce.paper.figure2 import DRAWS, Verdict


def figure2_table(verdicts: Sequence[Verdict]) -> Table:
    """Which poolings tell the paper's pairs of graphs apart."""
    table = Table(title="Figure 2: two different graphs, how far apart?", title_justify="left", caption_justify="left")
    table.add_column("pooling")
    examples = list(dict.fromkeys(one.example for one in verdicts))
    for example in examples:
        table.add_column(f"({example}) distance", justify="right")
        table.add_column(f"({example})\ntold apart")
        table.add_column(f"({example})\npaper")
    for pool in dict.fromkeys(one.pool for one in verdicts):
        cells = []
        for example in examples:
            (one,) = (one for one in verdicts if (one.pool, one.example) == (pool, example))
            cells += [f"{one.nearest:.2g} to {one.farthest:.2g}", "yes" if one.told_apart else "no", one.paper]
        table.add_row(pool, *cells)
    table.caption = (
        "(a) one colour, 3 nodes and 5. (b) two colours in equal shares, 2 nodes and 4. Nodes of one colour have one "
        f"representation.\nDistance of the two vectors over {DRAWS} draws of colours and parameters, in float64: below "
        "1e-9 is rounding.\npaper: where it says that the pooling fails."
    )
    return table
