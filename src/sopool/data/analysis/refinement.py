"""Colour refinement (1-WL): what a message-passing network can tell apart at best, for a whole store at once.

No network that passes messages between neighbours and then pools the nodes separates two graphs which colour
refinement leaves alike (Xu et al., 2019, https://arxiv.org/abs/1810.00826). So the graphs that share their colours
but not their label bound the accuracy that any pooling can reach.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sopool.data.edges import edge_blocks
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, SettingError

MANY = 0.2
"""The share of graphs that look like another one from which on it is worth a word."""


class Duplicates(NamedTuple):
    """Graphs that colour refinement cannot tell from another graph of the same store."""

    rounds: int
    graphs: int
    """How many graphs share their colours with at least one other."""
    groups: int
    """How many groups of such graphs there are."""
    conflicting: int
    """How many graphs are in a group whose members differ in label."""
    best_accuracy: float | None
    """The share of all graphs that the best classifier bounded by 1-WL labels right when it has seen them all: the
    majority of each group. None without labels."""


def refine(
    store: PackedGraphs, rounds: int = 4, use_labels: bool = True, initial: Tensor | np.ndarray | None = None
) -> list[np.ndarray]:
    """The colour of every node after 0, 1, ..., ``rounds`` rounds: ``rounds + 1`` arrays [N], int64, numbers from 0.

    At first, nodes of equal label and attributes have equal colours; all have the same where there is neither, or
    without ``use_labels``. ``initial`` colours [N] (any integers) take their place. A round gives two nodes the same
    new colour if they had the same old one and the same multisets of colours among the nodes they have edges to,
    and among those they have edges from. So directions count; where every edge is there in both, they make no
    difference. A repeated edge counts as often as it is there; labels and weights of edges do not count.

    Multisets are compared by two sums of random 64-bit numbers, one per colour, so two that differ may pass for
    equal: with a probability of 2**-128, or 2**-104 should all their counts differ by multiples of 4096. For all
    pairs among a million nodes together that is below 1e-19. Own colours and sizes are compared as they are.

    Colours can be compared within a round of one call only: put graphs to be compared into one store.
    """
    if rounds < 0:
        raise SettingError(f"rounds={rounds} must not be negative.")
    store = store.to("cpu")
    colours = [_initial(store, use_labels, initial)]
    for number in range(rounds):
        last = colours[-1]
        if number and last.max(initial=-1) == colours[-2].max(initial=-1):  # nothing has split: nothing ever will
            colours.append(last)
        else:
            colours.append(_number(last, *_neighbour_sums(store, last, seed=number)))
    return colours


def graph_colours(
    store: PackedGraphs, rounds: int = 4, use_labels: bool = True, initial: Tensor | np.ndarray | None = None
) -> np.ndarray:
    """A number for every graph [G], int64: equal for two graphs that ``rounds`` rounds of refinement leave alike.

    Alike means as many nodes, and the same multiset of node colours (see :func:`refine`).
    """
    ptr = store.node_ptr.cpu().numpy()
    colours = refine(store, rounds, use_labels, initial)[-1]
    sums = []
    for table in _random_tables(2, colours, seed=rounds):
        # Sums wrap around at 2**64, so the difference of two running totals is exact.
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(table[colours])])
        sums.append(total[ptr[1:]] - total[ptr[:-1]])
    return _number(np.diff(ptr), *sums)


def duplicates(
    store: PackedGraphs, rounds: int = 4, use_labels: bool = True, initial: Tensor | np.ndarray | None = None
) -> Duplicates:
    """Count the graphs that colour refinement cannot tell apart, see :func:`refine` for the arguments.

    Leave the degree out of the initial colours, also where a network is given it: one round finds it.
    """
    colours = graph_colours(store, rounds, use_labels, initial)
    members = np.bincount(colours)
    shared = members[members > 1]
    if store.labels is None or not len(store):
        return Duplicates(rounds, int(shared.sum()), len(shared), 0, None)
    classes = max(len(store.classes), 1)
    pairs, counts = np.unique(colours * classes + store.labels.cpu().numpy(), return_counts=True)
    majority = np.zeros_like(members)
    np.maximum.at(majority, pairs // classes, counts)
    conflicting = int(members[majority < members].sum())
    return Duplicates(rounds, int(shared.sum()), len(shared), conflicting, int(majority.sum()) / len(store))


def caution_of_copies(found: Duplicates, graphs: int) -> str | None:
    """What to say of cross-validation where many of the ``graphs`` look like another one; None where few do."""
    if found.graphs <= MANY * graphs:
        return None
    return (
        f"{found.graphs:,} of {graphs:,} graphs look like another one to message passing (labels of edges aside), in "
        f"{found.groups:,} groups: a fold may be tested on copies of what it is trained on, and its accuracy too high "
        "for graphs that are new. If they are repeats, leave all but one of each out."
    )


def _initial(store: PackedGraphs, use_labels: bool, given: Tensor | np.ndarray | None) -> np.ndarray:
    nodes = store.num_nodes
    if given is not None:
        colours = given.cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
        if colours.shape != (nodes,) or colours.dtype.kind not in "iu":
            found = f"{colours.dtype} of shape {list(colours.shape)}"
            raise DataError(f"initial colours must be whole numbers, one for each of {nodes} nodes; found {found}.")
        return _number(colours)
    keys = []
    if use_labels and store.node_labels is not None:
        keys.append(store.node_labels.numpy())
    if use_labels and store.node_attributes is not None and store.node_attributes.shape[1]:
        keys.append(_number_rows(store.node_attributes.numpy()))
    return _number(*keys) if keys else np.zeros(nodes, np.int64)


def _neighbour_sums(store: PackedGraphs, colours: np.ndarray, seed: int) -> list[np.ndarray]:
    """Two random fingerprints [N] of each node's neighbours' colours, with different numbers per direction."""
    # torch gathers faster than numpy; its int64 wraps around just as uint64 does
    values = [torch.from_numpy(table.view(np.int64)[colours]) for table in _random_tables(4, colours, seed)]
    sums = [torch.zeros(store.num_nodes, dtype=torch.int64) for _ in range(2)]
    for source, target in edge_blocks(store):
        for total, ahead, behind in zip(sums, values[:2], values[2:], strict=True):
            total.scatter_add_(0, source, ahead[target])
            total.scatter_add_(0, target, behind[source])
    return [total.numpy() for total in sums]


def _random_tables(count: int, colours: np.ndarray, seed: int) -> np.ndarray:
    """Random numbers for each colour [count, colours], uint64, the same ones every time."""
    size = (count, int(colours.max(initial=-1)) + 1)
    return np.random.default_rng(seed).integers(2**64 - 1, size=size, dtype=np.uint64, endpoint=True)


def _number(*keys: np.ndarray) -> np.ndarray:
    """Number the distinct combinations of some keys [n] each, from 0."""
    order = np.lexsort(keys)
    new = np.zeros(len(order), dtype=bool)
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(new)
    return numbers


def _number_rows(rows: np.ndarray) -> np.ndarray:
    """Number the distinct rows of numbers [n, d], from 0."""
    rows = np.ascontiguousarray(rows) + 0.0  # turns -0.0 into 0.0: equal numbers must have equal bytes
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
    return np.unique(whole, return_inverse=True)[1].astype(np.int64)
