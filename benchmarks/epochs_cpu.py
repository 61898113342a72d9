"""Compare training epochs of PyG's GIN example on a CPU: readouts of sopool against hand-written ones.

    python -m benchmarks.epochs_cpu [--root FOLDER] [--datasets MUTAG] [--batch 32 128] [--threads 1 2] [--rounds 3]

The model is that of PyG's example ``mutag_gin.py`` with another readout: ``GIN`` with five layers of width 32 and an
``MLP``. FOLDER contains MUTAG.zip and others of the TU collection. Batches are assembled beforehand. The models take
turns on every batch, in one process. Ratios are as in :mod:`benchmarks.readouts_cpu`, of sums over an epoch.
"""

import importlib.util
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GIN, MLP

from benchmarks.common import DATA, make_parser, processor, seconds, versions
from benchmarks.readouts_cpu import OWN, numba_for, ratio_of
from benchmarks.rivals.pyg import make_graphs
from benchmarks.rivals.readouts import index_add_attn, padded_bimap
from sopool.data import load, paper_encoder
from sopool.nn import AttentionalSecondOrderAggregation, BilinearSecondOrderAggregation

HIDDEN = 32
READOUTS = {"bimap": BilinearSecondOrderAggregation, "attn": AttentionalSecondOrderAggregation}
RIVALS = {"bimap": "padding", "attn": "index_add"}


class Model(nn.Module):
    """PyG's example with any readout, a function of node features, batch and number of graphs."""

    def __init__(self, channels: int, classes: int, readout: nn.Module, form: Callable[..., Tensor]) -> None:
        super().__init__()
        self.gnn = GIN(channels, HIDDEN, num_layers=5, dropout=0.5)
        self.readout = readout
        self.form = form
        self.classifier = MLP([readout.out_channels, HIDDEN, classes], norm=None, dropout=0.5)

    def forward(self, data: Data) -> Tensor:
        """Return the scores ``[G, classes]``."""
        x = self.gnn(data.x, data.edge_index)
        scores: Tensor = self.classifier(self.form(self.readout, x, data.batch, data.num_graphs))
        return scores


FORMS: dict[str, Callable[..., Tensor]] = {
    "sopool": lambda pool, x, batch, graphs: pool(x, batch, dim_size=graphs),
    "padding": lambda pool, x, batch, graphs: padded_bimap(x, pool.weight, batch, graphs),
    "index_add": lambda pool, x, batch, graphs: index_add_attn(x, pool.query, batch, graphs),
}


def make_models(channels: int, classes: int) -> dict[str, Model]:
    """Return a model for each form of each readout, with the same initial parameters."""
    models = {}
    for kind, rival in RIVALS.items():
        names = [name for name, needed in OWN.items() if not needed or importlib.util.find_spec("numba")]
        for name in (*names, rival):
            torch.manual_seed(0)
            form = FORMS["sopool" if name in OWN else name]
            models[f"{kind}: {name}"] = Model(channels, classes, READOUTS[kind](HIDDEN), form)
    return models


def measure(batches: list[Data], models: dict[str, Model], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each epoch of each model; the first epoch is not counted."""
    optimizers = {name: torch.optim.Adam(model.parameters(), lr=0.01) for name, model in models.items()}
    times: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(1 + rounds):
        totals = dict.fromkeys(models, 0.0)
        for data in batches:
            for name, model in models.items():
                with numba_for(name):
                    totals[name] += seconds(lambda m=model, o=optimizers[name], d=data: step(m, o, d))
        for name, total in totals.items():
            times[name].append(total)
    return {name: epochs[1:] for name, epochs in times.items()}


def step(model: Model, optimizer: torch.optim.Optimizer, data: Data) -> None:
    """Make one training step."""
    optimizer.zero_grad()
    F.cross_entropy(model(data), data.y).backward()
    optimizer.step()


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--datasets", nargs="+", default=["MUTAG", "PROTEINS", "NCI1"])
    parser.add_argument("--batch", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    table = Table(title="training epochs: time of sopool / time of the hand-written readout")
    for column in ("data set", "batch", "threads", "readout", "hand-written, s", *OWN):
        table.add_column(column, justify="left" if column in ("data set", "readout") else "right")
    for name, size, threads in product(args.datasets, args.batch, args.threads):
        torch.set_num_threads(threads)
        store = load(name, args.root)
        features = paper_encoder(name).fit(store).transform(store)
        graphs = make_graphs(store, features.rows(), store.labels)
        torch.manual_seed(0)
        batches = list(DataLoader(graphs, batch_size=size, shuffle=True))
        times = measure(batches, make_models(features.width, len(store.classes)), args.rounds)
        for kind, rival in RIVALS.items():
            theirs = times[f"{kind}: {rival}"]
            ratios = [ratio_of(times[f"{kind}: {own}"], theirs) for own in OWN if f"{kind}: {own}" in times]
            table.add_row(name, str(size), str(threads), f"{kind} / {rival}", f"{median(theirs):.3f}", *ratios)
    Console(width=140).print(table)
    print(processor(), versions(), sep=", ")


if __name__ == "__main__":
    main()
