"""Compare the normalizations of `MultiHeadSecondOrderPooling` with and without batch norms, on held-out graphs only.

    python -m benchmarks.multi_head_scale [--data MUTAG PROTEINS IMDB-BINARY] [--epochs 10]
    python -m benchmarks.multi_head_scale --print

Two kinds of models are trained: plain PyG networks without batch norms (two GIN or GCN layers, the pooling, and with
two blocks a GraphConv layer and a second pooling; Adam at 0.01, batches of 32, three folds), and our hierarchical
models of two blocks with the preset `default` (ten folds). In both, a tenth of the training graphs of each fold is held
out, and their accuracy at the best epoch counts. Test folds are not used. Each result is appended to a file as it is
found, and those that the file has are not computed again; `--print` shows the table of the file.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import GCNConv, GINConv, GraphConv

from benchmarks.common import DATA, make_parser, results_in
from benchmarks.hierarchy_options import held_out
from sopool.data import default_encoder, load
from sopool.data.splits import holdout, stratified_folds
from sopool.experiments.evaluation import Request
from sopool.nn import make_pooling
from sopool.report.grid import NONE, Cell, Grid
from sopool.report.papers import grid_markdown

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "results" / "multi_head_scale.jsonl"
NORMALIZE = ("adjacency", "degree", "norm")
PLAIN = {"GIN, 1 block": (GINConv, 1), "GIN, 2 blocks": (GINConv, 2), "GCN, 2 blocks": (GCNConv, 2)}
BANK = "2 blocks, batch norm"
HIDDEN = 64
FOLDS = 3


class Plain(torch.nn.Module):
    """A network as a user of PyG writes it, without batch norms."""

    def __init__(self, conv: type, blocks: int, in_channels: int, classes: int, normalize: str) -> None:
        super().__init__()
        self.convs = torch.nn.ModuleList(_conv(conv, width) for width in (in_channels, HIDDEN))
        self.pools = torch.nn.ModuleList(
            make_pooling("sopool-m-attn", HIDDEN, heads=16 // 2**block, normalize=normalize) for block in range(blocks)
        )
        self.between = GraphConv(HIDDEN, HIDDEN)
        self.classify = torch.nn.Linear(self.pools[-1].heads * HIDDEN, classes)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, graphs: int) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        pooled = self.pools[0](x, edge_index, batch, graphs)
        for pool in self.pools[1:]:
            x = self.between(pooled.x, pooled.edge_index, pooled.edge_weight).relu()
            pooled = pool(x, pooled.edge_index, pooled.batch, graphs, pooled.edge_weight)
        return self.classify(pooled.x.reshape(graphs, -1))


def _conv(conv: type, width: int) -> torch.nn.Module:
    if conv is GCNConv:
        return GCNConv(width, HIDDEN)
    layers = (torch.nn.Linear(width, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, HIDDEN))
    return GINConv(torch.nn.Sequential(*layers))


def train_plain(store: Any, name: str, normalize: str, epochs: int, fold: int) -> dict[str, float]:
    """Train a network on a fold; return losses of training batches and the best accuracy on the held-out graphs."""
    labels = store.labels.numpy()
    train, held = holdout(stratified_folds(labels)[fold][0], labels, 0.1, fold)
    features = default_encoder(store).fit(store).transform(store)
    torch.manual_seed(fold)
    model = Plain(*PLAIN[name], features.width, len(store.classes), normalize)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def scores(graphs: np.ndarray) -> tuple[Tensor, Tensor]:
        part = store.batch(torch.as_tensor(graphs))
        batch = torch.arange(len(graphs)).repeat_interleave(part.ptr.diff())
        out = model(features.rows(part.nodes).float(), part.edge_index.long(), batch, len(graphs))
        return out, store.labels[part.graphs].long()

    losses, accuracy = [], []
    for _ in range(epochs):
        order = train[torch.randperm(len(train)).numpy()]
        for start in range(0, len(order), 32):
            loss = torch.nn.functional.cross_entropy(*scores(order[start : start + 32]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            out, wanted = scores(held)
        accuracy.append((out.argmax(1) == wanted).float().mean().item())
    last = losses[-(len(losses) // epochs) :]
    return {"first": losses[0], "highest": max(losses), "last": float(np.mean(last)), "accuracy": max(accuracy)}


def train_bank(store: Any, normalize: str, epochs: int, runs: Path) -> list[dict[str, float]]:
    """Train our hierarchical models of two blocks; return the accuracy of each fold on its held-out graphs."""
    request = Request(["sopool-m-attn"], epochs=epochs, blocks=2, pool_options={"normalize": normalize})
    return [{"accuracy": float(fold)} for fold in held_out(store, request, runs)]


def compute(names: list[str], models: list[str], root: Path, epochs: int, runs: Path) -> Iterator[dict[str, Any]]:
    """Yield the results that the file does not have."""
    known = {(one["data"], one["model"], one["normalize"], one["epochs"]) for one in figures()}
    for name in names:
        store = load(name, root)
        for model in models:
            for normalize in NORMALIZE:
                if (name, model, normalize, epochs) in known:
                    continue
                if model == BANK:
                    folds = train_bank(store, normalize, epochs, runs)
                else:
                    folds = [train_plain(store, model, normalize, epochs, fold) for fold in range(FOLDS)]
                yield {"data": name, "model": model, "normalize": normalize, "epochs": epochs, "folds": folds}


def figures() -> list[dict[str, Any]]:
    """Return the results of the file."""
    return results_in(FIGURES)


def grid(found: list[dict[str, Any]]) -> Grid:
    """Return the table: the held-out accuracy and, without batch norms, the highest and the last training loss."""
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    for one in found:
        cells.setdefault((one["data"], one["model"]), {})[one["normalize"]] = Cell(_text(one["folds"]))
    rows = [
        [Cell(data), Cell(model), *(each.get(how, NONE) for how in NORMALIZE)] for (data, model), each in cells.items()
    ]
    return Grid("Held-out accuracy", ["data set", "model", *NORMALIZE], rows, 2)


def _text(folds: list[dict[str, float]]) -> str:
    accuracy = f"{100 * np.mean([fold['accuracy'] for fold in folds]):.1f}"
    if "highest" not in folds[0]:
        return accuracy
    highest = max(fold["highest"] for fold in folds)
    last = np.mean([fold["last"] for fold in folds])
    return f"{accuracy} ({highest:,.1f}, {last:.2f})"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", default=["MUTAG", "PROTEINS", "IMDB-BINARY"])
    parser.add_argument("--models", nargs="+", choices=(*PLAIN, BANK), default=[*PLAIN, BANK])
    parser.add_argument("--root", type=Path, default=DATA)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--print", action="store_true", help="show the table of the file, without training")
    args = parser.parse_args()
    for one in () if args.print else compute(args.data, args.models, args.root, args.epochs, args.runs):
        with FIGURES.open("a") as file:
            print(json.dumps(one), file=file)
        print(one["data"], one["model"], one["normalize"], _text(one["folds"]), flush=True)
    print(grid_markdown(grid(figures())))


if __name__ == "__main__":
    main()
