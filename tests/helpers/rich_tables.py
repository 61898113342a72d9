"""Tables whose batches have everything that edges and graphs may carry, computed from the nodes."""

from dataclasses import dataclass

import torch

from sopool.ops.message_passing.neighbors import EdgeValues
from sopool.training.bank.batching import GraphTables
from sopool.training.bank.inputs import AS_ENCODED

EDGE_CATEGORIES = 2
EDGE_ATTRIBUTES = 2
GRAPH_ATTRIBUTES = 3


@dataclass(frozen=True, eq=False)
class RichTables(GraphTables):
    """Tables whose batches also have attributes and weights of edges, a second column of categories, and attributes of
    graphs. They follow from the nodes at both ends of an edge, or of a graph, so they are the same in every batch."""

    def batch(self, graphs, inputs=AS_ENCODED, capacity=None):
        """Only models that use no numbers of edges and graphs have padded batches."""
        batch = with_columns(super().batch(graphs, inputs, capacity))
        return batch if capacity is not None else with_numbers(batch)

    def copies(self, models, inputs):
        return with_numbers(with_columns(super().copies(models, inputs)))

    def edge_labels_used(self, graphs):
        """The values that occur in both columns: the second one is the label modulo 2."""
        used = super().edge_labels_used(graphs)
        return torch.cat([used, torch.stack([used[0::2].any(), used[1::2].any()])])


def with_columns(batch):
    """Each label as a combination of itself and of its remainder modulo 2; both are unknown for an unknown label."""
    labels = batch.neighbors.labels
    if labels is None:
        return batch
    kinds = torch.arange(labels.kinds, device=batch.x.device)
    second = (kinds % EDGE_CATEGORIES).masked_fill(kinds == labels.kinds - 1, EDGE_CATEGORIES)
    labels = labels._replace(combinations=torch.stack([kinds, labels.kinds + second], 1))
    return batch._replace(neighbors=batch.neighbors._replace(labels=labels))


def with_numbers(batch):
    """The batch with attributes and weights of edges, and attributes of graphs."""
    numbers = number_of(batch.x)
    graph = torch.repeat_interleave(batch.ptr.diff())
    sums = numbers.new_zeros(len(batch.ptr) - 1).index_add(0, graph, numbers)
    graph_x = torch.stack([sums.sin(), sums.cos(), (sums + batch.ptr.diff()).sin()], 1)
    return batch._replace(neighbors=with_values(batch.x, batch.neighbors), graph_x=graph_x.to(batch.x.dtype))


def number_of(x):
    """One number for each node ``[N]``."""
    return x.double() @ torch.linspace(1, 2, x.shape[1], dtype=torch.float64, device=x.device)


def with_values(x, neighbors):
    """The neighbors with two attributes and a weight of each edge, some of them zero or negative."""
    owner = torch.repeat_interleave(neighbors.ptr.diff())
    nodes = neighbors.nodes
    again = torch.zeros_like(nodes, dtype=torch.bool)
    again[1:] = (nodes[1:] == nodes[:-1]) & (owner[1:] == owner[:-1])
    edge = (nodes != owner) | again  # a node comes before its self-loops
    number = number_of(x)
    mine, other = number[owner], number[nodes]
    attributes = torch.stack([(other + 0.5 * mine).sin(), (other - mine).cos()], 1) * edge.unsqueeze(1)
    weights = 0.6 + (2 * other + mine).sin()
    weights = weights.masked_fill(weights.abs() < 0.2, 0).masked_fill(~edge, 1)
    order = (nodes * len(x) + owner).argsort(stable=True)
    return neighbors._replace(values=EdgeValues(order, attributes, weights))
