"""Controls: classifiers that see little of a graph, or see it without a network, on the folds of the networks.

What a pooling reaches means something only beside what the sizes of the graphs, or a histogram of their labels, reach.
"""

from sopool.experiments.systems.registry import CONTROLS, Control
from sopool.experiments.systems.result import ControlResult
from sopool.experiments.systems.run import run_control

__all__ = ["CONTROLS", "Control", "ControlResult", "run_control"]
