"""The controls by name."""

from collections.abc import Callable
from dataclasses import dataclass

from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.subtree import subtree_views
from sopool.experiments.systems.views import Views, histogram_view, no_view, sizes_view


@dataclass(frozen=True)
class Control:
    """A simple classifier to compare with.

    Examples:
        >>> from sopool.experiments.systems import CONTROLS
        >>> CONTROLS["size"].sees
        'the numbers of nodes and edges; logistic regression'
    """

    name: str
    """The name of the control."""
    sees: str
    """What it uses of a graph, and its classifier, in a few words."""
    views: Callable[[PackedGraphs], Views]
    """The function that extracts what it uses."""
    version: int = 1
    """Part of a result's key; increased when the same graphs may give another result."""


CONTROLS = {
    control.name: control
    for control in (
        Control("majority", "nothing: the most frequent class of the training graphs", no_view),
        Control("size", "the numbers of nodes and edges; logistic regression", sizes_view),
        Control(
            "histogram", "how many nodes have each label, else each degree; logistic regression", histogram_view, 2
        ),
        Control("wl", "the colors of up to 5 rounds of refinement (Weisfeiler-Lehman subtree); SVM", subtree_views),
    )
}
"""The controls by name, ordered by how much of a graph they use.

Examples:
    >>> from sopool.experiments.systems import CONTROLS
    >>> list(CONTROLS)
    ['majority', 'size', 'histogram', 'wl']
"""
