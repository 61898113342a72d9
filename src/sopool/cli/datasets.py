"""``sopool datasets``."""

from sopool.cli.options import AsJson, Root
from sopool.cli.output import print_result


def datasets(root: Root = None, as_json: AsJson = False) -> None:
    """List the known data sets: where each was found, its statistics beside the paper's."""
    from sopool.data.sources.catalogue import list_datasets
    from sopool.report.terminal.datasets import datasets_table

    listed = list_datasets(root)
    print_result(as_json, lambda: [one.to_json() for one in listed], lambda: datasets_table(listed))
