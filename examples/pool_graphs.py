"""Pool a batch of real graphs with every readout.

Four small social networks that ship with NetworkX go through a GIN with random weights; each readout then turns the
node representations H into one vector per graph.
"""

import time

import networkx as nx
import torch
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Batch, Data
from torch_geometric.nn import MLP, GINConv
from torch_geometric.utils import from_networkx

from sopool.nn import READOUTS, make_readout

GRAPHS = {
    "karate": nx.karate_club_graph,
    "florence": nx.florentine_families_graph,
    "les mis.": nx.les_miserables_graph,
    "women": nx.davis_southern_women_graph,
}


def load() -> Batch:
    """The graphs as one PyG batch; each node's feature is the logarithm of its degree."""
    graphs = []
    for make in GRAPHS.values():
        graph = make()
        structure = from_networkx(nx.Graph(graph.edges))
        degrees = torch.tensor([float(degree) for _, degree in nx.Graph(graph.edges).degree])
        graphs.append(Data(x=degrees.log().unsqueeze(1), edge_index=structure.edge_index))
    return Batch.from_data_list(graphs)


def represent(batch: Batch, hidden: int = 16) -> torch.Tensor:
    """H [nodes, 2 x hidden]: two GIN layers, concatenated."""
    first = GINConv(MLP([1, hidden, hidden]))(batch.x, batch.edge_index).relu()
    second = GINConv(MLP([hidden, hidden, hidden]))(first, batch.edge_index).relu()
    return torch.cat([first, second], dim=1)


@torch.no_grad()
def main() -> None:
    torch.manual_seed(0)
    batch = load()
    h = represent(batch)
    table = Table(title=f"{batch.num_graphs} graphs, {batch.num_nodes} nodes, H has {h.shape[1]} channels")
    for column in ("readout", "class"):
        table.add_column(column, no_wrap=True)
    for column in ("weights", "width", "ms", *GRAPHS):
        table.add_column(column, justify="right")
    for name in READOUTS:
        readout = make_readout(name, h.shape[1])
        readout(h, batch.batch)
        start = time.perf_counter()
        embeddings = readout(h, batch.batch)
        ms = 1e3 * (time.perf_counter() - start)
        parameters = sum(p.numel() for p in readout.parameters())
        norms = [f"{norm:.3g}" for norm in embeddings.norm(dim=1).tolist()]
        width = f"{embeddings.shape[1]:,}"
        table.add_row(name, type(readout).__name__, f"{parameters:,}", width, f"{ms:.2f}", *norms)
    table.caption = "Under each graph: the length of its embedding."
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
