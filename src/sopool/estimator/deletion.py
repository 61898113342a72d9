"""Do explanations point at what matters? Take away the nodes that they rank first, and see what the model says then."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from sopool.data.graphs import PackedGraphs, concatenate
from sopool.data.subgraph import without_nodes
from sopool.models.explain.shares import margins

if TYPE_CHECKING:
    from sopool.estimator.classifier import GraphClassifier


class Deletion(NamedTuple):
    """What is left of the predictions for whole graphs, of each graph, for each share of its nodes deleted."""

    margins: np.ndarray
    """The margin of the class that the whole graph gets [graphs, shares]."""
    probabilities: np.ndarray
    """Its probability [graphs, shares]."""


def delete_in_order(
    classifier: "GraphClassifier", store: PackedGraphs, orders: Sequence[np.ndarray], shares: Sequence[float]
) -> Deletion:
    """Delete shares of each graph's nodes, those first that ``orders`` [n] name first; one node always stays.

    A share is rounded to whole nodes, up, so that any but 0 deletes some.
    """
    plain = replace(store.to("cpu"), labels=None, classes=())
    cut = [
        without_nodes(graph, torch.from_numpy(np.array(order[: _count(share, len(order))], dtype=np.int64)))
        for graph, order in zip(plain, orders, strict=True)
        for share in shares
    ]
    weights = margins(len(classifier.classes_)).numpy()
    ensemble = classifier.ensemble_
    whole, left = (
        ensemble.scores(some, ensemble.encode(some)).double().cpu() for some in (plain, concatenate(cut, store.name))
    )
    chosen = whole.softmax(2).mean(0).argmax(1).repeat_interleave(len(shares)).numpy()
    rows = np.arange(len(chosen))
    shape = (len(store), len(shares))
    probabilities = left.softmax(2).mean(0).numpy()[rows, chosen]
    return Deletion((left.mean(0).numpy() @ weights.T)[rows, chosen].reshape(shape), probabilities.reshape(shape))


def _count(share: float, nodes: int) -> int:
    return min(nodes - 1, int(np.ceil(share * nodes)))
