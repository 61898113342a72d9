"""``sopool systems``."""

from sopool.cli.options import JsonOption
from sopool.cli.output import print_result


def systems(as_json: JsonOption = False) -> None:
    """List kernels, features and networks to compare with or fit: what each sees, its cost and its paper."""
    from sopool.experiments.systems import SYSTEMS
    from sopool.report.grids.systems import systems_grid

    found = [*SYSTEMS.values()]
    print_result(as_json, lambda: [one.to_json() for one in found], lambda: systems_grid(found))
