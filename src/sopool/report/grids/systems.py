"""The list of systems."""

from collections.abc import Sequence

from sopool.experiments.systems import System
from sopool.report.grid import Grid, word_cells


def systems_grid(systems: Sequence[System]) -> Grid:
    """Show what each system sees of a graph, whether chance or test graphs play a part, its cost and its paper."""
    rows = [word_cells([one.name, one.seen_for("classification"), _kind(one), one.cost, one.paper]) for one in systems]
    columns = ["name", "sees", "kind", "cost", "paper"]
    notes = [
        "sopool evaluate DATA --system NAME,... evaluates any of them, beside poolings and GNNs with a pooling such as "
        "gcn+sum.",
        "sopool fit DATA --system NAME makes a model of a trained one.",
        "Fixed: features or a kernel, and a learner; trained: a network. Random: the result depends on a seed, so fair "
        "averages three final runs. Transductive: the representation of a graph depends on the other graphs, test "
        "graphs included, but never on labels.",
        "Cost: G graphs, N nodes, E edges, h rounds.",
    ]
    return Grid("Systems", columns, rows, len(columns), notes, sections=range(1, len(rows)))


def _kind(system: System) -> str:
    chance = "random" if system.chance else ""
    transductive = "transductive" if system.transductive else ""
    return ", ".join(filter(None, [system.kind, chance, transductive]))
