"""What is left of a prediction when nodes are deleted, those first that an explanation names first.

A model is trained on four fifths of a data set and explained on the rest. The sooner the margin of the predicted class
falls, the better the explanation has found what the model looks at; deleting at random is what it has to beat.

    python benchmarks/deletion.py MUTAG
"""

import argparse

import numpy as np
import torch

from sopool import GraphClassifier
from sopool.data import load
from sopool.data.graphs import PackedGraphs
from sopool.data.splits import stratified_folds
from sopool.estimator.deletion import Deletion, delete_in_order
from sopool.estimator.explaining import seen_by_members
from sopool.estimator.validation import own_labels
from sopool.models.explain.shares import gradient_times_input, margins

POOLS = ("sopool-bimap", "sopool-attn", "sopool-m-attn", "sum")
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
DRAWS = 10


def main() -> None:
    """Train, explain, delete, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="MUTAG")
    parser.add_argument("--root")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--pools", default=",".join(POOLS))
    given = parser.parse_args()
    store = load(given.data, given.root)
    labels = own_labels(store)
    train, test = next(iter(stratified_folds(store.labels.numpy(), 5)))
    tested = store[test.tolist()]
    names = [f"{100 * share:.0f} %" for share in SHARES]
    print(f"{given.data}: margin left (in per cent of the whole graph's) / probability left, {len(test)} test graphs\n")
    print(f"| pooling | deleted first | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for pool in given.pools.split(","):
        model = GraphClassifier(pool=pool, epochs=given.epochs, random_state=0, device="cpu")
        model.fit(store[train.tolist()], labels[train])
        for name, found in ways(model, tested).items():
            left = (100 * found.margins.mean(0) / found.margins[:, 0].mean()).round() + 0.0
            each = zip(left, found.probabilities.mean(0), strict=True)
            print(f"| {pool} | {name} | {' | '.join(f'{a:.0f} / {b:.2f}' for a, b in each)} |", flush=True)


def ways(model: GraphClassifier, store: PackedGraphs) -> dict[str, Deletion]:
    """Deletion in the order of each kind of explanation, and in none."""
    explained = model.explain(store, top=0)
    kind = "its share" if all(one.exact for one in explained) else "its share, approximate"
    shares = [one.margin().nodes for one in explained]
    inputs = by_gradient(model, store)
    found = {
        name: delete_in_order(model, store, [np.argsort(-some) for some in each], SHARES)
        for name, each in ((kind, shares), ("gradient x input", inputs))
    }
    return found | {"at random": at_random(model, store)}


def by_gradient(model: GraphClassifier, store: PackedGraphs) -> list[np.ndarray]:
    """Gradient x input features of each node [n], of the margin of the predicted class."""
    ensemble = model.ensemble_
    chosen = model.predict_proba(store).argmax(1)
    weights = margins(len(model.classes_))
    found = []
    for number, seen in enumerate(seen_by_members(ensemble, store, ensemble.encode(store))):
        each = [gradient_times_input(member, batch.x, batch.neighbors) for member, batch in seen]
        found.append((torch.stack(each).mean(0) @ weights[chosen[number]]).numpy())
    return found


def at_random(model: GraphClassifier, store: PackedGraphs) -> Deletion:
    """The mean over several orders."""
    random = np.random.default_rng(0)
    drawn = [
        delete_in_order(model, store, [random.permutation(int(n)) for n in store.sizes], SHARES) for _ in range(DRAWS)
    ]
    return Deletion(*(np.mean(values, axis=0) for values in zip(*drawn, strict=True)))


if __name__ == "__main__":
    main()
