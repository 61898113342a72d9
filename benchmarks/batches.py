"""Measure the time to assemble a batch: random graphs with their nodes, edges and features.

    python -m benchmarks.batches FOLDER

FOLDER contains MUTAG.zip and REDDIT-BINARY.zip of the TU collection.
"""

import sys
from statistics import median

import torch
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Batch

from benchmarks.common import seconds, versions
from sopool.data import load, paper_encoder, to_pyg

CASES = {"MUTAG": 32, "REDDIT-BINARY": 128}


def microseconds(function, times: int = 200) -> float:
    function()
    return 1e6 * median(seconds(function) for _ in range(times))


def measure(name: str, size: int) -> tuple[float, float, float]:
    store = load(name, sys.argv[1])
    features = paper_encoder(name).fit(store).transform(store)
    chosen = torch.randint(len(store), (size,), generator=torch.Generator().manual_seed(0))
    picked = [to_pyg(store[int(g)])[0] for g in chosen]
    return (
        microseconds(lambda: store.batch(chosen)),
        microseconds(lambda: features.rows(store.batch(chosen).nodes)),
        microseconds(lambda: Batch.from_data_list(picked), times=20),
    )


def main() -> None:
    torch.set_num_threads(2)
    table = Table(title="one batch on a CPU, microseconds (median of 200)")
    for column in ("data set", "graphs", "structure", "and features", "PyG Batch.from_data_list"):
        table.add_column(column, justify="left" if column == "data set" else "right")
    for name, size in CASES.items():
        table.add_row(name, str(size), *(f"{value:,.0f}" for value in measure(name, size)))
    Console(width=100).print(table)
    print(versions())


if __name__ == "__main__":
    main()
