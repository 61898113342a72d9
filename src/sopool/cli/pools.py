"""``sopool pools``."""

from typing import Annotated

import typer

from sopool.cli.options import JsonOption
from sopool.cli.output import print_result


def pools(
    channels: Annotated[int, typer.Option(min=1, help="The number f of node features to count parameters for.")] = 160,
    as_json: JsonOption = False,
) -> None:
    """List the poolings: formula, cost, parameters, how a flat network gets a vector from each, where it is from."""
    from sopool.nn.registry import about_all
    from sopool.report.grids.pools import pools_grid

    found = about_all()
    print_result(as_json, lambda: [one.to_json(channels) for one in found], lambda: pools_grid(found, channels))
