"""The controls by name."""

from collections.abc import Callable
from dataclasses import dataclass

from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.subtree import subtree_views
from sopool.experiments.systems.views import Views, histogram_view, no_view, sizes_view


@dataclass(frozen=True)
class Control:
    """A classifier to compare with."""

    name: str
    sees: str
    """In a few words."""
    views: Callable[[PackedGraphs], Views]
    version: int = 1
    """Part of a result's key: raise it when the same graphs may give other figures."""


CONTROLS = {
    control.name: control
    for control in (
        Control("majority", "nothing: the most frequent class of the training graphs", no_view),
        Control("size", "the numbers of nodes and edges; logistic regression", sizes_view),
        Control(
            "histogram", "how many nodes have each label, else each degree; logistic regression", histogram_view, 2
        ),
        Control("wl", "the colours of up to 5 rounds of refinement (Weisfeiler-Lehman subtree); SVM", subtree_views),
    )
}
"""Name -> control, those that see least first."""
