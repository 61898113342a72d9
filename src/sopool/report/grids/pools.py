"""The list of poolings."""

from collections.abc import Sequence

from sopool.nn.registry import About
from sopool.report.grid import Cell, Grid, word_cells

SYMBOLS = "N nodes, E edges, P pairs of nodes, f features, k remaining nodes, r rank, m eigenvectors."


def pools_grids(pools: Sequence[About], channels: int) -> list[Grid]:
    """Show the formula and size of each pooling for ``channels`` features, then its defaults and its paper."""
    return [_sizes(pools, channels), _origins(pools)]


def _sizes(pools: Sequence[About], channels: int) -> Grid:
    rows = []
    for one in pools:
        block = one.block_parameters(channels)
        parameters = _number(one.parameters(channels)) + ("" if block is None else f"\n{block:,}")
        words = word_cells((one.name, one.formula, one.cost))
        rows.append([*words, Cell(parameters), Cell(_number(one.width(channels)))])
    return Grid(
        f"Poolings, for f = {channels} features",
        ["name", "formula", "cost", "parameters,\nper block", "width"],
        rows,
        words=3,
        notes=[
            f"{SYMBOLS} Poolings with parameters per block can also be used in hierarchical models (--blocks).",
            "sum-avg is the paper's rule: sum if nodes have labels or attributes, else mean. In the latter case, "
            "second-order poolings are divided by the number of nodes, except with --preset paper.",
            "sopool-bimap-random, sopool-attn-random and sopool-m-attn-random are controls: W, mu and U keep their "
            "random initial values, and everything else is trained.",
        ],
        sections=range(1, len(rows)),
    )


def _origins(pools: Sequence[About]) -> Grid:
    rows = [word_cells((one.name, one.vector, one.default, one.paper)) for one in pools]
    columns = ["name", "vector in a flat model", "defaults", "paper"]
    return Grid("Defaults and papers", columns, rows, words=4, sections=range(1, len(rows)))


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
