"""The list of poolings as a table for the terminal."""

from collections.abc import Sequence

from rich.table import Table

from sopool.nn.registry import About


def pools_table(pools: Sequence[About], channels: int) -> Table:
    """One line for each, with the parameters it has for ``channels`` features."""
    table = Table(title=f"Poolings, for f = {channels} features", pad_edge=False, show_lines=True)
    for name in ("name", "formula", "cost", "flat: a vector by", "defaults", "paper"):
        table.add_column(name, overflow="fold", no_wrap=name == "name")
    for name in ("parameters,\nof a block", "width"):
        table.add_column(name, justify="right")
    for one in pools:
        words = (one.name, one.formula, one.cost, one.vector, one.default, one.paper)
        block = one.block_parameters(channels)
        parameters = _number(one.parameters(channels)) + ("" if block is None else f"\n{block:,}")
        table.add_row(*words, parameters, _number(one.width(channels)))
    table.caption = (
        "N nodes, E edges, f features, k nodes left, r rank, m eigenvectors. Those with parameters of a block can make "
        "graphs smaller block after block (--blocks).\nsum-avg is the paper's rule: sum where nodes carry labels or "
        "attributes, else mean. Where it is the mean, second-order poolings are divided by the number of nodes, unless "
        "with --preset paper.\nsopool-bimap-random, sopool-attn-random and sopool-m-attn-random are controls: W, mu "
        "and U stay as they were drawn, all else is trained."
    )
    table.caption_justify = "left"
    return table


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
