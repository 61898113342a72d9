"""``sopool datasets``."""

from sopool.cli.options import JsonOption, RootOption
from sopool.cli.output import print_result


def datasets(root: RootOption = None, as_json: JsonOption = False) -> None:
    """List the known data sets with their statistics, and where each was found."""
    from sopool.data.sources.catalogue import list_datasets
    from sopool.report.grids.datasets import datasets_grid

    listed = list_datasets(root)
    print_result(as_json, lambda: [one.to_json() for one in listed], lambda: datasets_grid(listed))
