"""Color refinement (1-WL), which bounds what a message-passing network can distinguish, for a whole store at once.

No network that passes messages between neighbors and then pools the nodes distinguishes two graphs that color
refinement does not (Xu et al., 2019, https://arxiv.org/abs/1810.00826). Graphs with equal colors but different labels
therefore bound the accuracy that any pooling can reach.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sopool.data.edges import edge_blocks
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, SettingError

MANY = 0.2
"""The fraction of graphs with a duplicate above which to warn."""


class Duplicates(NamedTuple):
    """The graphs of a store that color refinement cannot distinguish from another one."""

    rounds: int
    graphs: int
    """The number of graphs that share their colors with at least one other graph."""
    groups: int
    """The number of groups of such graphs."""
    conflicting: int
    """The number of graphs in groups whose members differ in label."""
    best_accuracy: float | None
    """The largest accuracy on these graphs of a classifier bounded by 1-WL, which predicts the majority class of each
    group. None without labels."""


def refine(
    store: PackedGraphs,
    rounds: int = 4,
    use_labels: bool = True,
    initial: Tensor | np.ndarray | None = None,
    edge_labels: bool = False,
) -> list[np.ndarray]:
    """Return the color of every node after 0, 1, ..., ``rounds`` rounds: ``rounds + 1`` arrays, int64 ``[N]``.

    A round gives two nodes the same new color if they had the same old color and the same multisets of colors among the
    targets of their outgoing edges and among the sources of their incoming edges. Direction makes no difference if
    every edge exists in both directions. Repeated edges count repeatedly; weights are ignored, and so are edge labels
    unless ``edge_labels`` is set. Then each neighbor's color is paired with the label of the edge.

    Multisets are compared by two sums of random 64-bit numbers, one for each color, so different multisets may be taken
    for equal with a probability of 2**-128, or of 2**-104 if all their counts differ by multiples of 4096. For all
    pairs among a million nodes together this is below 1e-19. The old colors and the sizes are compared exactly.

    Colors can be compared only within one round of one call: put graphs that are to be compared into one store.

    Args:
        store: The graphs.
        rounds: The number of rounds. Default: 4.
        use_labels: Whether nodes start with equal colors only if they have the same label and attributes; otherwise all
            nodes start with the same color. Default: True.
        initial: The initial colors, any integers ``[N]``, used instead. Default: None.
        edge_labels: Whether edges with different labels are distinguished; the graphs must have edge labels. Default:
            False.
    """
    if rounds < 0:
        raise SettingError(f"rounds={rounds}, expected 0 or more.")
    if edge_labels and store.edge_labels is None:
        raise DataError(f"edge_labels=True, but the edges of {store.name} have no labels.")
    store = store.to("cpu")
    colours = [_initial(store, use_labels, initial)]
    for number in range(rounds):
        last = colours[-1]
        if number and last.max(initial=-1) == colours[-2].max(initial=-1):  # the coloring is stable
            colours.append(last)
        else:
            colours.append(_number(last, *_neighbour_sums(store, last, edge_labels, seed=number)))
    return colours


def graph_colours(
    store: PackedGraphs, rounds: int = 4, use_labels: bool = True, initial: Tensor | np.ndarray | None = None
) -> np.ndarray:
    """Return a number for every graph, int64 ``[G]``, which is equal for graphs that refinement does not distinguish.

    Such graphs have the same number of nodes and the same multiset of node colors; see :func:`refine` for the
    arguments.
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
    """Count the graphs that color refinement cannot distinguish; see :func:`refine` for the arguments.

    Do not add degrees to the initial colors, even if a network gets them as features: the first round finds them.
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
    """Return a warning about cross-validation if many of the ``graphs`` have a duplicate, else None."""
    if found.graphs <= MANY * graphs:
        return None
    return (
        f"{found.graphs:,} of {graphs:,} graphs look like another one to message passing (ignoring edge labels), in "
        f"{found.groups:,} groups: test folds may contain copies of training graphs, so an estimate may be too good "
        "for new graphs. If they are duplicates, keep only one of each."
    )


def _initial(store: PackedGraphs, use_labels: bool, given: Tensor | np.ndarray | None) -> np.ndarray:
    nodes = store.num_nodes
    if given is not None:
        colours = given.cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
        if colours.shape != (nodes,) or colours.dtype.kind not in "iu":
            found = f"{colours.dtype} of shape {list(colours.shape)}"
            raise DataError(f"initial colors must be integers, one for each of {nodes} nodes, found {found}.")
        return _number(colours)
    keys = []
    if use_labels and store.node_labels is not None:
        keys.append(store.node_labels.numpy())
    if use_labels and store.node_attributes is not None and store.node_attributes.shape[1]:
        keys.append(_number_rows(store.node_attributes.numpy()))
    return _number(*keys) if keys else np.zeros(nodes, np.int64)


def _neighbour_sums(store: PackedGraphs, colours: np.ndarray, edge_labels: bool, seed: int) -> list[np.ndarray]:
    """Return two random fingerprints, ``[N]`` each, of the colors of each node's neighbors in both directions."""
    if edge_labels and store.num_edges:
        return _labelled_sums(store, colours, seed)
    # PyTorch gathers faster than NumPy, and its int64 wraps around as uint64 does.
    values = [torch.from_numpy(table.view(np.int64)[colours]) for table in _random_tables(4, colours, seed)]
    sums = [torch.zeros(store.num_nodes, dtype=torch.int64) for _ in range(2)]
    for source, target in edge_blocks(store):
        for total, ahead, behind in zip(sums, values[:2], values[2:], strict=True):
            total.scatter_add_(0, source, ahead[target])
            total.scatter_add_(0, target, behind[source])
    return [total.numpy() for total in sums]


def _labelled_sums(store: PackedGraphs, colours: np.ndarray, seed: int) -> list[np.ndarray]:
    """Return the same, with one random number for each pair of a color and an edge label that occurs."""
    source, target = torch.cat(list(edge_blocks(store)), 1).numpy()
    labels = store.edge_labels.numpy()  # type: ignore[union-attr]
    ends = np.concatenate([target, source])
    pairs = _number(colours[ends], np.tile(labels, 2)).reshape(2, -1)
    values = torch.from_numpy(_random_tables(4, pairs, seed).view(np.int64))
    sums = [torch.zeros(store.num_nodes, dtype=torch.int64) for _ in range(2)]
    for total, ahead, behind in zip(sums, values[:2], values[2:], strict=True):
        total.scatter_add_(0, torch.from_numpy(source), ahead[pairs[0]])
        total.scatter_add_(0, torch.from_numpy(target), behind[pairs[1]])
    return [total.numpy() for total in sums]


def _random_tables(count: int, colours: np.ndarray, seed: int) -> np.ndarray:
    """Return random numbers for each color, uint64 ``[count, colors]``, the same in every call."""
    size = (count, int(colours.max(initial=-1)) + 1)
    return np.random.default_rng(seed).integers(2**64 - 1, size=size, dtype=np.uint64, endpoint=True)


def _number(*keys: np.ndarray) -> np.ndarray:
    """Assign numbers from 0 to the distinct combinations of some keys, ``[N]`` each."""
    order = np.lexsort(keys)
    new = np.zeros(len(order), dtype=bool)
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(new)
    return numbers


def _number_rows(rows: np.ndarray) -> np.ndarray:
    """Assign numbers from 0 to the distinct rows, ``[N, F]``."""
    rows = np.ascontiguousarray(rows) + 0.0  # converts -0.0 to 0.0, because equal numbers must have equal bytes
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
    return np.unique(whole, return_inverse=True)[1].astype(np.int64)
