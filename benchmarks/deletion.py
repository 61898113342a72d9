"""Measure how predictions change when nodes are deleted in the order of their importance in an explanation.

    python -m benchmarks.deletion MUTAG [--pools sopool-bimap,sum] [--epochs 50]

A model is trained on four fifths of a data set and explained on the rest. The faster the margin of the predicted class
decreases, the better the explanation has identified the nodes that the model uses. The baseline deletes nodes in random
order.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.common import make_parser
from sopool import GraphClassifier
from sopool.data import load
from sopool.data.graphs import EDGE_FIELDS, NODE_FIELDS, PackedGraphs, concatenate
from sopool.data.splits import stratified_folds
from sopool.estimator.explaining import seen_by_members
from sopool.models.explain.shares import gradient_times_input, margins

POOLS = ("sopool-bimap", "sopool-attn", "sopool-m-attn", "sum")
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
DRAWS = 10


class Deletion(NamedTuple):
    """The remaining margins and probabilities for each graph and each fraction of deleted nodes."""

    margins: np.ndarray
    """The margin of the class predicted for the whole graph, ``[graphs, fractions]``."""
    probabilities: np.ndarray
    """The probability of this class, ``[graphs, fractions]``."""


def main() -> None:
    """Train a model, explain it, delete nodes and print a table."""
    parser = make_parser(__doc__)
    parser.add_argument("data", nargs="?", default="MUTAG")
    parser.add_argument("--root")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--pools", default=",".join(POOLS))
    given = parser.parse_args()
    store = load(given.data, given.root)
    labels = store.class_labels
    train, test = next(iter(stratified_folds(store.labels.numpy(), 5)))
    tested = store[test.tolist()]
    names = [f"{100 * share:.0f} %" for share in SHARES]
    print(f"{given.data}: margin left (in percent of the whole graph's) / probability left, {len(test)} test graphs\n")
    print(f"| pooling | deleted first | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for pool in given.pools.split(","):
        model = GraphClassifier(pool=pool, epochs=given.epochs, random_state=0, device="cpu")
        model.fit(store[train.tolist()], labels[train])
        for name, found in delete_by_each(model, tested).items():
            left = (100 * found.margins.mean(0) / found.margins[:, 0].mean()).round() + 0.0
            each = zip(left, found.probabilities.mean(0), strict=True)
            print(f"| {pool} | {name} | {' | '.join(f'{a:.0f} / {b:.2f}' for a, b in each)} |", flush=True)


def delete_by_each(model: GraphClassifier, store: PackedGraphs) -> dict[str, Deletion]:
    """Delete nodes in the order of each kind of explanation, and in random order."""
    explained = model.explain(store, top=0)
    kind = "its share" if all(one.exact for one in explained) else "its share, approximate"
    shares = [one.decompose().nodes for one in explained]
    inputs = by_gradient(model, store)
    found = {
        name: delete_in_order(model, store, [np.argsort(-some) for some in each], SHARES)
        for name, each in ((kind, shares), ("gradient x input", inputs))
    }
    return found | {"at random": at_random(model, store)}


def by_gradient(model: GraphClassifier, store: PackedGraphs) -> list[np.ndarray]:
    """Return gradient times input features of each node ``[N]``, for the margin of the predicted class."""
    ensemble = model.ensemble_
    chosen = model.predict_proba(store).argmax(1)
    weights = margins(len(model.classes_))
    found = []
    for number, seen in enumerate(seen_by_members(ensemble, store, ensemble.encode(store))):
        each = [gradient_times_input(member, batch.x, batch.neighbors) for member, batch in seen]
        found.append((torch.stack(each).mean(0) @ weights[chosen[number]]).numpy())
    return found


def at_random(model: GraphClassifier, store: PackedGraphs) -> Deletion:
    """Return the mean over several random orders."""
    random = np.random.default_rng(0)
    drawn = [
        delete_in_order(model, store, [random.permutation(int(n)) for n in store.sizes], SHARES) for _ in range(DRAWS)
    ]
    return Deletion(*(np.mean(values, axis=0) for values in zip(*drawn, strict=True)))


def delete_in_order(
    classifier: GraphClassifier, store: PackedGraphs, orders: Sequence[np.ndarray], shares: Sequence[float]
) -> Deletion:
    """Delete fractions of the nodes of each graph in the order ``orders`` ``[N]``; at least one node remains.

    A fraction is rounded up to a whole number of nodes, so every fraction but 0 deletes at least one.
    """
    plain = replace(store.to("cpu"), labels=None, classes=())
    cut = [
        without_nodes(graph, torch.from_numpy(np.array(order[: _count(share, len(order))], dtype=np.int64)))
        for graph, order in zip(plain, orders, strict=True)
        for share in shares
    ]
    weights = margins(len(classifier.classes_)).numpy()
    whole = _scores(classifier, plain)
    left = _scores(classifier, concatenate(cut, store.name))
    chosen = whole.softmax(2).mean(0).argmax(1).repeat_interleave(len(shares)).numpy()
    rows = np.arange(len(chosen))
    shape = (len(store), len(shares))
    probabilities = left.softmax(2).mean(0).numpy()[rows, chosen]
    return Deletion((left.mean(0).numpy() @ weights.T)[rows, chosen].reshape(shape), probabilities.reshape(shape))


def _scores(classifier: GraphClassifier, store: PackedGraphs) -> Tensor:
    ensemble = classifier.ensemble_
    return ensemble.scores(store, ensemble.encode(store)).double().cpu()


def _count(share: float, nodes: int) -> int:
    return min(nodes - 1, int(np.ceil(share * nodes)))


def without_nodes(graph: PackedGraphs, nodes: Tensor) -> PackedGraphs:
    """Return a store of one graph without the given nodes and their edges; the other nodes keep their order."""
    if len(graph) != 1:
        raise ValueError(f"A store of {len(graph)} graphs was given: pass one graph, such as store[0].")
    stays = torch.ones(graph.num_nodes, dtype=torch.bool)
    stays[nodes] = False
    number = stays.cumsum(0) - 1
    ends = graph.edge_index.long()
    edges = stays[ends].all(0)
    taken: dict[str, Any] = {"edge_index": number[ends[:, edges]].int()}
    for names, rows in ((NODE_FIELDS, stays), (EDGE_FIELDS, edges)):
        for name in names:
            value = getattr(graph, name)
            taken[name] = None if value is None else value[rows]
    ptr = [torch.tensor([0, int(rows.sum())]) for rows in (stays, edges)]
    return replace(graph, node_ptr=ptr[0], edge_ptr=ptr[1], **taken)


if __name__ == "__main__":
    main()
