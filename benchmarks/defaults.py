"""Evaluate `GraphClassifier` with default settings on the ten folds that are used to compare poolings.

    python -m benchmarks.defaults MUTAG PROTEINS [--device cuda] [--pools sopool-bimap sum-avg] [--networks 1]
    python -m benchmarks.defaults MUTAG --set dropout=0.0 --options rank=16,normalize=matrix-sqrt --held-out

The classifier of each fold sees its training graphs only, and the test fold is scored once. Compare the result with GIN
and Sum/Avg under the `fair` protocol: `sopool evaluate DATA --pool sum-avg --preset paper`. To choose a default, use
`--held-out`: it scores a tenth of the training graphs, which the classifier does not see, and no test fold.
"""

import json
import time
from pathlib import Path

import numpy as np

from benchmarks.common import DATA, make_parser
from sopool import GraphClassifier
from sopool.cli.options import settings as named_values
from sopool.data import load
from sopool.data.splits import stratified_folds


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", nargs="+", help="names")
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pools", nargs="+", default=["sopool-bimap"])
    parser.add_argument("--networks", type=int, default=5, help="that vote")
    parser.add_argument("--set", help="arguments of the classifier, such as average=0.0,dropout=0.2")
    parser.add_argument("--options", help="options of the pooling, such as rank=16")
    parser.add_argument("--held-out", action="store_true", help="score held-out training graphs instead of test folds")
    args = parser.parse_args()
    options = named_values("--options", args.options) if args.options else {}
    given = named_values("--set", args.set) if args.set else {}
    settings = {"n_models": args.networks, "device": args.device, "pool_options": options} | given
    for data in args.data:
        store = load(data, args.root)
        labels = store.class_labels
        for pool in args.pools:
            start = time.perf_counter()
            scores = []
            for train, test in stratified_folds(store.labels.numpy()):
                if args.held_out:
                    inner = stratified_folds(store.labels.numpy()[train])[0]
                    test = train[inner[1]]
                    train = train[inner[0]]
                model = GraphClassifier(pool=pool, random_state=0, **settings)
                model.fit(store[train.tolist()], labels[train])
                scores.append(model.score(store[test.tolist()], labels[test]))
            seconds = time.perf_counter() - start
            print(f"{store.name} {pool} {100 * np.mean(scores):.1f} ± {100 * np.std(scores):.1f} ({seconds:.0f} s)")
            how = {"held_out": args.held_out, "networks": args.networks, "options": options, "set": given}
            print(json.dumps({"data": store.name, "pool": pool, "folds": scores} | how), flush=True)


if __name__ == "__main__":
    main()
