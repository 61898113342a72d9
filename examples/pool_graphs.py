"""Pool the 188 molecules of MUTAG with every readout.

They go through a GIN with random, untrained weights; each readout turns the node representations H into one vector per
molecule; a logistic regression on these vectors is scored by ten-fold cross-validation. Nothing is tuned, so the
accuracy is an honest one, of an untrained network. No download: the data ship with the package.
"""

import time

import torch
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch_geometric.nn import MLP, GINConv

from sopool.data import load, paper_encoder
from sopool.nn import READOUTS, make_readout


def represent(x: torch.Tensor, edge_index: torch.Tensor, hidden: int = 16) -> torch.Tensor:
    """H [nodes, width + 2 x hidden]: the features and two GIN layers, concatenated."""
    first = GINConv(MLP([x.shape[1], hidden, hidden]))(x, edge_index).relu()
    second = GINConv(MLP([hidden, hidden, hidden]))(first, edge_index).relu()
    return torch.cat([x, first, second], dim=1)


@torch.no_grad()
def main() -> None:
    torch.manual_seed(0)
    graphs = load("MUTAG")
    batch = graphs.batch(range(len(graphs)))
    features = paper_encoder("MUTAG", unknown=False).fit(graphs).transform(graphs)
    h = represent(features.rows(batch.nodes), batch.edge_index)
    table = Table(title=f"MUTAG: {len(graphs)} graphs, {graphs.num_nodes:,} nodes, H has {h.shape[1]} channels")
    for column in ("readout", "class"):
        table.add_column(column, no_wrap=True)
    for column in ("weights", "width", "ms", "accuracy, %"):
        table.add_column(column, justify="right")
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    for name in READOUTS:
        readout = make_readout(name, h.shape[1])
        readout(h, ptr=batch.ptr)
        start = time.perf_counter()
        embeddings = readout(h, ptr=batch.ptr)
        ms = 1e3 * (time.perf_counter() - start)
        scores = 100 * cross_val_score(classifier, embeddings.numpy(), graphs.labels.numpy(), cv=folds)
        weights = sum(p.numel() for p in readout.parameters())
        accuracy = f"{scores.mean():.1f} ± {scores.std(ddof=1):.1f}"
        table.add_row(name, type(readout).__name__, f"{weights:,}", f"{embeddings.shape[1]:,}", f"{ms:.2f}", accuracy)
    table.caption = (
        "Accuracy of a logistic regression, 10 folds, mean ± deviation;\nnothing else is trained, nothing tuned."
    )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
