"""``sopool pools``."""

from typing import Annotated

import typer

from sopool.cli.options import JsonOption
from sopool.cli.output import print_result


def pools(
    channels: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number f of node features for which parameters are counted.")
    ] = 160,
    as_json: JsonOption = False,
) -> None:
    """List the poolings with formula, cost, number of parameters, defaults and paper."""
    from rich.console import Group

    from sopool.nn.registry import about_all
    from sopool.report.grids.pools import pools_grids

    found = about_all()
    print_result(
        as_json, lambda: [one.to_json(channels) for one in found], lambda: Group(*pools_grids(found, channels))
    )
