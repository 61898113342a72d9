"""Networks with their own recipes, which take the place of layers and a pooling.

Those of this package are registered when one of them is wanted, see :func:`sopool.models.network.network_of`.
"""

from sopool.models.systems.recipe import Recipe
from sopool.models.systems.registry import SYSTEMS, System, TrainedSystem, trained

__all__ = ["SYSTEMS", "Recipe", "System", "TrainedSystem", "trained"]
