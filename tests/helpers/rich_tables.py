"""Tables whose batches have everything that edges and graphs may carry."""

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
    graphs. Those of an edge follow from its nodes, those of a graph from its number, so every batch has the same."""

    columns: bool = False
    """Whether edges have the second column."""

    def batch(self, graphs, inputs=AS_ENCODED, capacity=None):
        """Models that use attributes or weights of edges have no padded batches."""
        batch = self._with_columns(super().batch(graphs, inputs, capacity))
        values = batch.neighbors if capacity is not None else with_values(batch.x, batch.neighbors)
        return batch._replace(neighbors=values, graph_x=attributes_of(graphs.flatten()).to(batch.x.dtype))

    def copies(self, models, inputs):
        graphs = torch.arange(len(self), device=self.device).repeat(models)
        batch = self._with_columns(super().copies(models, inputs))
        return batch._replace(
            neighbors=with_values(batch.x, batch.neighbors), graph_x=attributes_of(graphs).to(batch.x.dtype)
        )

    def edge_labels_used(self, graphs):
        """The values that occur in both columns: the second one is the label modulo 2."""
        used = super().edge_labels_used(graphs)
        return torch.cat([used, torch.stack([used[0::2].any(), used[1::2].any()])]) if self.columns else used

    def _with_columns(self, batch):
        """Each label as a combination of itself and of its remainder modulo 2; both are unknown for an unknown one."""
        labels = batch.neighbors.labels
        if labels is None or not self.columns:
            return batch
        kinds = torch.arange(labels.kinds, device=batch.x.device)
        second = (kinds % EDGE_CATEGORIES).masked_fill(kinds == labels.kinds - 1, EDGE_CATEGORIES)
        labels = labels._replace(combinations=torch.stack([kinds, labels.kinds + second], 1))
        return batch._replace(neighbors=batch.neighbors._replace(labels=labels))


def attributes_of(graphs):
    """Three numbers of each graph, which change slowly from one to the next."""
    return torch.stack([(graphs.double() / scale).cos() for scale in (5, 11, 23)], 1)


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
