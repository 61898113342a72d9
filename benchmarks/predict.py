"""Predictions per second of a trained model, beside PyG's way: a DataLoader loop over ``Data`` objects.

    python benchmarks/predict.py [--graphs 20000] [--threads 1]

Both have the same network (GIN-0, bilinear second-order pooling) on the same graphs, MUTAG's over and over. PyG's
figure leaves out the making of the ``Data`` objects, as does that of a packed store the packing; the third has it.
"""

import argparse
import time

import numpy as np
import torch
from torch_geometric.loader import DataLoader

from sopool import GraphClassifier
from sopool.data import load, to_pyg
from sopool.data.store import concatenate
from sopool.experiments.bench.rivals import EVALUATION_BATCH, Model, make_graphs


def main() -> None:
    """Print graphs per second, the best of three rounds each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--graphs", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    mutag = load("MUTAG")
    many = concatenate([mutag] * -(-given.graphs // len(mutag)))[: given.graphs]
    one, five = (GraphClassifier(n_models=models, epochs=1, device="cpu").fit(mutag) for models in (1, 5))
    data, features = to_pyg(many), one.encoder_.transform(many).rows()
    unpacked = GraphClassifier(n_models=1, epochs=1, device="cpu").fit(to_pyg(mutag))
    rivals = make_graphs(many, features, torch.zeros(len(many), dtype=torch.long))
    ways = {
        "1 model, packed store": lambda: one.predict_proba(many),
        "5 models, packed store": lambda: five.predict_proba(many),
        "1 model, list of Data": lambda: unpacked.predict_proba(data),
        f"PyG, 1 model, batches of {EVALUATION_BATCH}": lambda: by_pyg(rivals, features.shape[1]),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(3):
        for name, work in ways.items():
            start = time.perf_counter(), time.process_time()
            work()
            times[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    for name, some in times.items():
        wall, cpu = (len(many) / min(seconds) for seconds in zip(*some, strict=True))
        print(f"{name:32} {wall:10,.0f} graphs/s {cpu:10,.0f} per second of a core")


@torch.no_grad()
def by_pyg(graphs: list, channels: int) -> np.ndarray:
    """The usual loop."""
    model = Model(channels, 2).eval()
    parts = [model(batch).softmax(1) for batch in DataLoader(graphs, EVALUATION_BATCH)]
    return torch.cat(parts).numpy()


if __name__ == "__main__":
    main()
