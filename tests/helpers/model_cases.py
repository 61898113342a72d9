"""Every model that a registry line makes, flat and hierarchical, on the awkward little graphs."""

from dataclasses import replace
from itertools import cycle

import torch

from sopool.models import ModelConfig, extras_for, make_model
from sopool.nn import GRAPH_READOUTS, POOLINGS, READOUTS
from sopool.ops.message_passing.clusters import Clusters
from sopool.ops.message_passing.neighbors import EdgeLabels, Neighbors
from sopool.ops.message_passing.pairs import list_pairs
from tests.helpers.rich_tables import EDGE_ATTRIBUTES, EDGE_CATEGORIES, GRAPH_ATTRIBUTES, RichTables, with_values
from tests.helpers.training_graphs import EDGE_LABELS, edge_label_options, little_store, tables_of

FIRST_ORDER = ("sum", "mean", "max")


def flat(pool, **changes):
    return ModelConfig(pool=pool, hidden=5, layers=2, join="per-layer" if pool in FIRST_ORDER else "concat", **changes)


def hierarchy(pool, blocks, head="per-block", **changes):
    return ModelConfig(pool=pool, hidden=5, blocks=blocks, head=head, **changes)


CASES = {f"{pool}, flat": flat(pool) for pool in (*READOUTS, *GRAPH_READOUTS)}
CASES |= {f"{pool}, {n} blocks": hierarchy(pool, n) for n, pool in zip(cycle((1, 3, 2, 2, 3)), POOLINGS, strict=False)}
CASES |= {f"{pool}, summed": hierarchy(pool, 3, "sum-readout", gnn="gcn") for pool in POOLINGS}
CASES |= {f"{pool}, random": flat(pool, frozen=True) for pool in ("sopool-bimap", "sopool-attn", "sopool-m-attn")}
CASES |= {"sopool-m-attn, 2 random blocks": hierarchy("sopool-m-attn", 2, frozen=True)}
CASES |= {f"{gnn}, flat": flat("sopool-bimap", **edge_label_options(gnn)) for gnn in ("gine", "gine-eps")}
CASES |= {
    f"sopool-pairs, {options}": flat("sopool-pairs", pool_options={"rank": 3, "distances": 2} | options)
    for options in (
        {"normalize": None, "rest": True},
        {"walks": True, "normalize": "size", "layers": None},
        {"batch_norm": True, "normalize": "sqrt", "lr_scale": 0.1, "with_sum": False, "layers": None},
        {"normalize": "pairs", "rank": None, "layers": 1},
    )
}
CASES |= {"sopool-bimap, normed": flat("sopool-bimap", pooled_norm=True)}
CASES |= {"sum, normed, a hidden layer": flat("sum", pooled_norm=True, head_hidden=4)}
CASES |= {f"{pool}, side by side": hierarchy(pool, 2, block_readout="concat") for pool in ("sopool-m-attn", "diffpool")}
CASES |= {
    f"{pool}, {n} blocks, pairs": hierarchy(pool, n, block_readout="sopool-pairs")
    for n, pool in zip(cycle((1, 2, 3)), POOLINGS, strict=False)
}

COLUMNS = {"edge_labels": EDGE_LABELS, "edge_categories": [EDGE_CATEGORIES]}
CASES |= {
    "gine, two columns": flat("sopool-bimap", gnn="gine", **COLUMNS),
    "gine, attributes": flat("sopool-attn", gnn="gine", edge_attributes=EDGE_ATTRIBUTES),
    "gine-eps, everything": flat(
        "sopool-bimap",
        gnn="gine-eps",
        **COLUMNS,
        edge_attributes=EDGE_ATTRIBUTES,
        edge_weights=True,
        graph_attributes=GRAPH_ATTRIBUTES,
    ),
    "gcn, weights": flat("sopool", gnn="gcn", edge_weights=True),
    "graphsage, weights": flat("sopool-bimap", gnn="graphsage", edge_weights=True),
    "sum, weights, graph attributes": flat("sum", edge_weights=True, graph_attributes=GRAPH_ATTRIBUTES),
    "sum, normed, graph attributes": flat("sum", pooled_norm=True, head_hidden=4, graph_attributes=GRAPH_ATTRIBUTES),
    "topkpool, 2 blocks, weights": hierarchy("topkpool", 2, edge_weights=True, graph_attributes=GRAPH_ATTRIBUTES),
    "diffpool, summed, weights": hierarchy(
        "diffpool", 2, "sum-readout", gnn="gcn", edge_weights=True, graph_attributes=GRAPH_ATTRIBUTES
    ),
}


def is_rich(config):
    return bool(config.edge_categories or config.edge_attributes or config.edge_weights or config.graph_attributes)


def tables_for(config, store=None):
    """Tables of a store, with clusters or pairs where the model asks for some."""
    store = little_store() if store is None else store
    if config.edge_labels and store.edge_labels is None:
        labels = torch.arange(store.num_edges, dtype=torch.int32) % config.edge_labels
        store = replace(store, edge_labels=labels, edge_label_names=tuple(range(config.edge_labels)))
    tables = tables_of(store)
    if is_rich(config):
        tables = RichTables(**vars(tables), columns=bool(config.edge_categories))
    return tables.with_extras(store, extras_for(config), cached=False)


def model_of(config, tables, seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return make_model(config, tables.features.width, tables.goal[0].width).to(dtype)


def batch_of(tables, graphs):
    """The arguments of a model, with the attributes of graphs if there are any."""
    x, neighbors, ptr, graph_x = tables.batch(torch.as_tensor(graphs).view(1, -1)).to(torch.float64)
    return (x, neighbors, ptr) if graph_x is None else (x, neighbors, ptr, graph_x)


def permuted(x, neighbors, ptr, *graph_x, seed=0):
    """The same graphs with the nodes of each in another order; row i comes from row ``order[i]``."""
    random = torch.Generator().manual_seed(seed)
    parts = [torch.randperm(int(n), generator=random) + start for n, start in zip(ptr.diff(), ptr, strict=False)]
    order = torch.cat(parts) if parts else torch.empty(0, dtype=torch.long)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))

    def lists(starts, nodes, labels):
        own = [place[nodes[starts[i] : starts[i + 1]]].sort(stable=True) for i in order.tolist()]
        along = [labels[starts[i] : starts[i + 1]][new.indices] for i, new in zip(order.tolist(), own, strict=True)]
        lengths = torch.tensor([0, *(len(new.values) for new in own)]).cumsum(0)
        return (lengths, torch.cat([nodes[:0], *(new.values for new in own)])), torch.cat([labels[:0], *along])

    labels = neighbors.labels
    listed, along = lists(neighbors.ptr, neighbors.nodes, labels.codes)
    transposed, back = lists(*neighbors.transposed, labels.transposed)
    extras = {}
    if "clusters" in neighbors.extras:
        known = neighbors.extras["clusters"]
        assert isinstance(known, Clusters)
        extras["clusters"] = known._replace(rows=place[known.rows])
    labels = EdgeLabels(along, back, labels.kinds, labels.combinations)
    if "pairs" in neighbors.extras:
        ends, distance = neighbors.extras["pairs"].coordinates()
        extras["pairs"] = list_pairs(place[ends], distance, len(x), neighbors.extras["pairs"].distances)
    moved = Neighbors(*listed, transposed, labels, extras=extras)
    return x[order], moved if neighbors.values is None else with_values(x[order], moved), ptr, *graph_x


def without_twins(store):
    """Graphs in which no two nodes have just the same neighbors: a graph convolution would score the two alike."""
    kept = []
    for number, graph in enumerate(store):
        adjacency = torch.eye(graph.num_nodes)
        adjacency.index_put_(tuple(graph.edge_index.flip(0).long()), torch.tensor(1.0), accumulate=True)
        if len({tuple(row) for row in adjacency.tolist()}) == len(adjacency):
            kept.append(number)
    return kept


def without_ties(models, tables, numbers):
    """Those of the graphs in which SortPool's order does not hang on rounding; all of them for other poolings.

    Nodes that differ may agree in their last channel, by which they are sorted, up to rounding.
    """
    if models[0].config.pool != "sortpool":
        return list(numbers)
    x, neighbors, ptr, *_ = batch_of(tables, numbers)
    kept = set(numbers)
    for model in models:
        with torch.no_grad():
            last = model.eval().gnn(x, neighbors, ptr)[-1][:, -1]
        for number, values in zip(numbers, last.split(ptr.diff().tolist()), strict=True):
            if (values[values != 0].sort().values.diff() < 1e-6).any():
                kept.discard(number)
    return sorted(kept)
