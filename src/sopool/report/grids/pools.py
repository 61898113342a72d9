"""The list of poolings."""

from collections.abc import Sequence

from sopool.nn.registry import About
from sopool.report.grid import Cell, Grid, word_cells


def pools_grid(pools: Sequence[About], channels: int) -> Grid:
    """Show one line for each, with the parameters it has for ``channels`` features."""
    rows = []
    for one in pools:
        words = (one.name, one.formula, one.cost, one.vector, one.default, one.paper)
        block = one.block_parameters(channels)
        parameters = _number(one.parameters(channels)) + ("" if block is None else f"\n{block:,}")
        rows.append([*word_cells(words), Cell(parameters), Cell(_number(one.width(channels)))])
    return Grid(
        f"Poolings, for f = {channels} features",
        ["name", "formula", "cost", "flat: a vector by", "defaults", "paper", "parameters,\nof a block", "width"],
        rows,
        words=6,
        notes=[
            "N nodes, E edges, f features, k nodes left, r rank, m eigenvectors. Those with parameters of a block can "
            "make graphs smaller block after block (--blocks).",
            "sum-avg is the paper's rule: sum where nodes carry labels or attributes, else mean. Where it is the mean, "
            "second-order poolings are divided by the number of nodes, unless with --preset paper.",
            "sopool-bimap-random, sopool-attn-random and sopool-m-attn-random are controls: W, mu and U stay as they "
            "were drawn, all else is trained.",
        ],
        sections=range(1, len(rows)),
    )


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
