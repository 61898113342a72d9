"""Sample random walks and name their nodes by the order in which they are met."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from sopool.data.analysis.simple_graphs import SimpleGraphs, graphs_at_once, simple_graphs
from sopool.data.graphs import PackedGraphs
from sopool.errors import SettingError

AT_ONCE = 2**20
"""The number of nodes of walks that are computed together, which bounds the memory, unless one graph has more."""
LONGEST = 12
"""The largest number of steps: there are 4,213,597 anonymous walks of 12 steps."""


@lru_cache(maxsize=LONGEST)
def completions(steps: int) -> np.ndarray:
    """Return the number of ways to complete an anonymous walk, int64 ``[steps + 1, steps + 2]``.

    The entry ``[i, m]`` is for a walk that has taken i steps and met the nodes 0 to m. Each step leads to another node
    than the current one: one of the m other nodes that were met, or a new one. So ``completions(l)[0, 0]`` is the
    number of anonymous walks of l steps, which is the Bell number B(l).

    Examples:
        >>> from sopool.data.analysis.anonymous_walks import completions
        >>> int(completions(10)[0, 0])
        115975
    """
    ways = np.ones((steps + 1, steps + 2), np.int64)
    for step in range(steps - 1, -1, -1):
        met = np.arange(steps + 1)
        ways[step, :-1] = met * ways[step + 1, :-1] + ways[step + 1, 1:]
    return ways


def random_walks(
    store: PackedGraphs, steps: int, walks: int, seed: int, together: int = 1
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the nodes of random walks of some graphs at a time: the first graph's number and int64 ``[B, W, l + 1]``.

    Nodes are numbered from 0 within each graph. Walks start at a random node that has neighbors; a graph without edges
    has no walks, and its nodes are -1. Edges count in both directions, self-loops and repeated edges are dropped. All
    graphs use the same random numbers, so the walks of a graph depend neither on other graphs nor on their order.

    Args:
        store: The graphs.
        steps: The number of steps l.
        walks: The number of walks of each graph.
        seed: The random seed.
        together: The number of consecutive walks that start at the same node. Default: 1.
    """
    numbers = np.random.default_rng(seed).random((steps + 1, walks))
    numbers[0] = numbers[0, np.arange(walks) // together * together]
    for block in simple_graphs(store.to("cpu")):
        for some in graphs_at_once(np.full(block.graphs, walks * (steps + 1)), AT_ONCE):
            yield block.first + some.start, _walk(block, some, numbers)


def _walk(block: SimpleGraphs, some: slice, numbers: np.ndarray) -> np.ndarray:
    degrees = block.degrees
    starts = block.matrix.indptr[:-1].astype(np.int64)
    ends = block.matrix.indices
    can_start = np.flatnonzero(degrees)
    bounds = np.searchsorted(can_start, block.ptr[some.start : some.stop + 1])
    count = np.diff(bounds)[:, None]
    alive = count[:, 0] > 0
    found = np.full((some.stop - some.start, numbers.shape[1], len(numbers)), -1, np.int64)
    first = block.ptr[some][alive, None]
    node = can_start[bounds[:-1][alive, None] + _choose(numbers[0], count[alive])]
    found[alive, :, 0] = node - first
    for step in range(1, len(numbers)):
        node = ends[starts[node] + _choose(numbers[step], degrees[node])]
        found[alive, :, step] = node - first
    return found


def _choose(numbers: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return random integers below ``count``, which may be rounded up to it."""
    chosen: np.ndarray = np.minimum((numbers * count).astype(np.int64), count - 1)
    return chosen


def number_walks(nodes: np.ndarray) -> np.ndarray:
    """Return the number of each anonymous walk among all of its length, in lexicographic order: int64 ``[W]``.

    Args:
        nodes: The nodes of each walk, ``[W, l + 1]``; consecutive ones differ.

    Examples:
        >>> import numpy as np
        >>> from sopool.data.analysis.anonymous_walks import number_walks
        >>> number_walks(np.array([[7, 3, 7], [3, 7, 8]])).tolist()  # 0 1 0 and 0 1 2
        [0, 1]
    """
    steps = nodes.shape[1] - 1
    if not 1 <= steps <= LONGEST:
        raise SettingError(f"steps={steps}, expected the length of a walk, from 1 to {LONGEST}.")
    ways = completions(steps)
    columns = np.ascontiguousarray(nodes.T)
    names = np.zeros(columns.shape, np.int8)
    met = np.zeros(len(nodes), np.int8)
    number = np.zeros(len(nodes), np.int64)
    for step in range(1, steps + 1):
        name = met + np.int8(1)
        for earlier in range(step - 1):
            np.copyto(name, names[earlier], where=columns[earlier] == columns[step])
        # Of the walks that are equal so far, those with a smaller name here come first.
        smaller = name - (names[step - 1] < name)
        number += smaller * ways[step][met]
        np.maximum(met, name, out=met)
        names[step] = name
    return number


def anonymous_walks(
    store: PackedGraphs, steps: int, walks: int, seed: int, together: int = 1
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the numbers of the anonymous walks of some graphs at a time: the first graph's number and ``[B, W]``.

    The numbers of graphs without edges are -1. The arguments are those of :func:`random_walks`.
    """
    if not 1 <= steps <= LONGEST:
        raise SettingError(f"steps={steps}, expected the length of a walk, from 1 to {LONGEST}.")
    for first, nodes in random_walks(store, steps, walks, seed, together):
        numbers = number_walks(nodes.reshape(-1, steps + 1)).reshape(nodes.shape[:2])
        numbers[nodes[..., 0] < 0] = -1
        yield first, numbers
