"""The controls by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.subtree import subtree_views
from sopool.experiments.systems.views import Views, histogram_view, no_view, sizes_view


@dataclass(frozen=True)
class Control:
    """A simple model to compare with.

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
    others: Mapping[str, str] = field(default_factory=dict)
    """The same as :attr:`sees` for other tasks than a classification, where it differs."""

    def seen_for(self, task: str) -> str:
        """Return what it uses of a graph, and its model, for a task."""
        return self.others.get(task, self.sees)


CONTROLS = {
    control.name: control
    for control in (
        Control(
            "majority",
            "nothing: the most frequent class of the training graphs",
            no_view,
            others={
                "multi-label": "nothing: the share of each label among the training graphs",
                "regression": "nothing: the mean of the training graphs",
            },
        ),
        Control(
            "size",
            "the numbers of nodes and edges; logistic regression",
            sizes_view,
            others={"regression": "the numbers of nodes and edges; ridge regression"},
        ),
        Control(
            "histogram",
            "how many nodes have each label, else each degree; logistic regression",
            histogram_view,
            2,
            {"regression": "how many nodes have each label, else each degree; ridge regression"},
        ),
        Control(
            "wl",
            "the colors of up to 5 rounds of refinement (Weisfeiler-Lehman subtree); SVM",
            subtree_views,
            others={
                "regression": "the colors of up to 5 rounds of refinement (Weisfeiler-Lehman subtree); kernel ridge"
            },
        ),
    )
}
"""The controls by name, ordered by how much of a graph they use.

Examples:
    >>> from sopool.experiments.systems import CONTROLS
    >>> list(CONTROLS)
    ['majority', 'size', 'histogram', 'wl']
"""
