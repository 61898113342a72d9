"""Select the nodes with the highest scores of each graph, and the edges between them.

Where the number of selected nodes is not known without waiting for the device, the number of rows follows from shapes
alone, and some spare rows at the end belong to no graph. On a CPU and in exported programs there are no spare rows.
The number of rows is never an integer in Python, so that a traced or exported program selects as many nodes of another
batch as it should.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sopool.ops._autograd import lay_end_to_end, samples_of
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.neighbors import Adjacency, Neighbors
from sopool.ops.message_passing.structure import GraphStructure
from sopool.ops.segment import standard
from sopool.ops.segment.first_order import segment_amax
from sopool.ops.segment.segments import check_ptr_values, owners
from sopool.ops.segment.standard import exporting

ROUNDING = 1e-9
"""Subtracted from ratio times nodes before rounding up, so that a ratio of 0.1 of 30 nodes gives 3."""
TOLERANCE = 1e-7
"""The largest value of a graph may be this much below the minimum, as in PyG, so that no graph loses all its nodes."""


class Selection(NamedTuple):
    """The nodes that are kept, graph by graph."""

    rows: Tensor
    """The nodes ``[R]``; arbitrary for spare rows."""
    ptr: Tensor
    """The position in ``rows`` at which each graph starts ``[G + 1]``."""
    spare: Tensor | None
    """Which rows are spare ``[R]``, bool; None if there are none."""
    nodes: int
    """The number of nodes N from which they were selected."""

    def place(self) -> Tensor:
        """Return the position of each node in ``rows``, -1 if it is not kept, ``[N]``."""
        at = self.rows if self.spare is None else torch.where(self.spare, self.nodes, self.rows)
        new = torch.full((self.nodes + 1,), -1, device=at.device)
        return new.index_copy(0, at, torch.arange(at.numel(), device=at.device))[:-1]


def select_top(score: Tensor, graphs: GraphStructure, ratio: float, exact: bool | None = None) -> Selection:
    """Return the nodes of each graph with the highest ``score`` ``[N]``, highest first; earlier nodes win ties.

    A ``ratio`` r of type float keeps ceil(r n) of n nodes, an integer r keeps min(r, n) nodes.
    With ``exact`` there are no spare rows. Default: None, True on a CPU and while a program is exported.
    """
    ptr = graphs.ptr
    count = score.numel()
    number = ptr.numel() - 1
    keep = _keep(ptr.diff(), ratio)
    new = torch.cat([keep.new_zeros(1), keep.cumsum(0)])
    order = rank(score, ptr, None)
    dense = isinstance(graphs.neighbors, Dense)
    if not dense and (score.device.type == "cpu" or exporting() if exact is None else exact):
        graph = owners(ptr, count)
        place = torch.arange(count, device=score.device) - ptr.index_select(0, graph)
        at = (place < torch.cat([keep, keep.new_zeros(1)]).index_select(0, graph)).nonzero().squeeze(1)
        return Selection(order.index_select(0, at), new, None, count)
    rows = _capacity(number, count, graphs.neighbors, ratio)
    place = torch.arange(rows, device=score.device)
    graph = owners(new, rows)
    spare = None if dense else graph >= number
    graph = graph.clamp(max=max(0, number - 1))
    at = (ptr[graph] + place - new[graph]).clamp(max=max(0, count - 1))
    return Selection(order.index_select(0, at), new, spare, count)


def _keep(sizes: Tensor, ratio: float) -> Tensor:
    """Return how many nodes are kept of graphs with the given numbers of nodes ``[G]``."""
    if isinstance(ratio, int):
        return sizes.clamp(max=ratio)
    return (sizes.double() * ratio - ROUNDING).ceil().long()


def _capacity(graphs: int, nodes: int, neighbors: Adjacency, ratio: float) -> int:
    """Return an upper bound of the number of nodes that are kept, which follows from shapes alone.

    For dense graphs, which have equal sizes, it is the exact number.
    """
    if isinstance(neighbors, Dense):
        size = neighbors.weights.shape[1]
        return graphs * (min(ratio, size) if isinstance(ratio, int) else math.ceil(ratio * size - ROUNDING))
    return min(graphs * ratio, nodes) if isinstance(ratio, int) else math.ceil(ratio * nodes) + graphs


def select_above(value: Tensor, graphs: GraphStructure, least: float) -> Selection:
    """Return the nodes whose ``value`` ``[N]`` is above ``least``, and the largest of each graph, in their order."""
    ptr = graphs.ptr
    graph = owners(ptr, value.numel())
    largest = segment_amax(value.unsqueeze(1), ptr).squeeze(1) - TOLERANCE
    kept = value > largest.clamp(max=least).index_select(0, graph)
    before = torch.cat([ptr.new_zeros(1), kept.cumsum(0)])
    return Selection(kept.nonzero().squeeze(1), before.index_select(0, ptr), None, value.numel())


def rank(score: Tensor, ptr: Tensor, then: Tensor | None) -> Tensor:
    """Return the nodes of each graph, graph by graph, from the highest ``score`` to the lowest, ``[N]``.

    Ties are broken by the higher ``then`` ``[N]``, if it is given, and then by position.
    """
    ranked: Tensor = _sorted(score, ptr, then) if exporting() else _rank(score, ptr, then)
    return ranked


@torch.library.custom_op("sopool::rank", mutates_args=(), schema="(Tensor score, Tensor ptr, Tensor? then) -> Tensor")
def _rank(score: Tensor, ptr: Tensor, then: Tensor | None) -> Tensor:
    check_ptr_values(ptr, score)
    return _sorted(score, ptr, then)


def _sorted(score: Tensor, ptr: Tensor, then: Tensor | None) -> Tensor:
    if then is None:
        order = _falling(score)
    else:
        order = _falling(then)
        order = order.index_select(0, _falling(score.index_select(0, order)))
    graph = owners(ptr, score.shape[0]).index_select(0, order)
    return order.index_select(0, standard.rising(graph) if exporting() else graph.argsort(stable=True))


@_rank.register_fake
def _(score: Tensor, ptr: Tensor, then: Tensor | None) -> Tensor:
    return ptr.new_empty(score.shape)


@_rank.register_vmap
def _(
    info: Any, in_dims: tuple[int | None, ...], score: Tensor, ptr: Tensor, then: Tensor | None
) -> tuple[Tensor, int]:
    score, ptr, then = samples_of(info.batch_size, in_dims, score, ptr, then)
    rows = lay_end_to_end(ptr, None, score.shape[1])
    order = _rank(score.flatten(), rows.ptr, None if then is None else then.flatten())
    return order.view(score.shape) % max(1, score.shape[1]), 0


def _falling(values: Tensor) -> Tensor:
    return standard.falling(values) if exporting() else values.argsort(descending=True, stable=True)


def between(neighbors: Adjacency, selection: Selection) -> Adjacency:
    """Return the neighbors of the selected nodes among each other."""
    if isinstance(neighbors, Dense):
        graphs, nodes, _ = neighbors.weights.shape
        own = selection.rows.view(graphs, -1) % nodes
        graph = torch.arange(graphs, device=own.device).view(-1, 1, 1)
        return Dense(neighbors.weights[graph, own.unsqueeze(2), own.unsqueeze(1)])
    place = selection.place()
    if isinstance(neighbors, Edges):
        return neighbors.between(place)
    lists = _lists(neighbors.ptr, neighbors.nodes, place, selection)
    undirected = neighbors.transposed[1] is neighbors.nodes
    return Neighbors(*lists, lists if undirected else _lists(*neighbors.transposed, place, selection))


def _lists(ptr: Tensor, nodes: Tensor, place: Tensor, selection: Selection) -> tuple[Tensor, Tensor]:
    """Return the lists of the selected nodes; ``place`` maps a node to its position in the selection, or to -1."""
    moved = place.index_select(0, nodes)
    known = moved >= 0
    before = torch.cat([ptr.new_zeros(1), known.cumsum(0)])
    start = before[ptr[selection.rows]]
    lengths = before[ptr[selection.rows + 1]] - start
    if selection.spare is not None:
        lengths = lengths.masked_fill(selection.spare, 0)
    new = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    if selection.spare is None and not exporting():
        packed = moved[known]
        total = int(new[-1])
    else:  # the number of entries is unchanged; those past the last list are unused
        total = nodes.numel()
        packed = moved.new_zeros(total + 1).scatter(0, torch.where(known, before[:-1], total), moved.clamp(min=0))
    entry = torch.arange(total, device=ptr.device)
    row = owners(new, total).clamp(max=selection.rows.numel() - 1)
    at = (start[row] + entry - new[row]).clamp(max=max(0, packed.numel() - 1))
    return new, packed.index_select(0, at)
