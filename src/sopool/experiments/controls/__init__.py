"""Controls: classifiers that see little of a graph, or see it without a network, on the folds of the networks.

What a pooling reaches means something only beside what the sizes of the graphs, or a histogram of their labels, reach.
"""

from sopool.experiments.controls.registry import CONTROLS, Control
from sopool.experiments.controls.result import ControlResult
from sopool.experiments.controls.run import run_control

__all__ = ["CONTROLS", "Control", "ControlResult", "run_control"]
