"""Controls: classifiers that use little of a graph, or no network, evaluated on the same folds as the networks.

The accuracy of a pooling is meaningful only in comparison with what the sizes of the graphs, or a histogram of their
labels, achieve.
"""

from sopool.experiments.systems.registry import CONTROLS, Control
from sopool.experiments.systems.result import ControlResult
from sopool.experiments.systems.run import run_control

__all__ = ["CONTROLS", "Control", "ControlResult", "run_control"]
