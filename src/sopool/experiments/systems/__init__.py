"""Systems: what networks are compared with, from the majority class to graph kernels, on the same folds.

Controls are the systems that use little of a graph: the accuracy of a pooling is meaningful only in comparison with
what the sizes of the graphs, or a histogram of their labels, achieve.
"""

import sopool.experiments.systems.fixed
import sopool.models.systems.networks  # noqa: F401 - the imports register the systems
from sopool.experiments.systems.registry import FixedSystem, fixed
from sopool.experiments.systems.result import ControlResult
from sopool.experiments.systems.run import CONTROLS, run_control
from sopool.experiments.systems.views import Gram
from sopool.models.systems import SYSTEMS, Recipe, System, TrainedSystem, trained

__all__ = [
    "CONTROLS",
    "SYSTEMS",
    "ControlResult",
    "FixedSystem",
    "Gram",
    "Recipe",
    "System",
    "TrainedSystem",
    "fixed",
    "run_control",
    "trained",
]

for _name in [name for name, system in SYSTEMS.items() if isinstance(system, TrainedSystem)]:
    SYSTEMS[_name] = SYSTEMS.pop(_name)  # after the controls, whichever were registered first
