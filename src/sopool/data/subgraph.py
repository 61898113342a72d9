"""A graph without some of its nodes."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from sopool.data.graphs import EDGE_FIELDS, NODE_FIELDS, PackedGraphs


def without_nodes(graph: PackedGraphs, nodes: Tensor) -> PackedGraphs:
    """A store of one graph, less the nodes with these numbers and all edges at them; the others keep their order."""
    if len(graph) != 1:
        raise ValueError(f"A store of {len(graph)} graphs was given: take one, store[0].")
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
