"""Compute how random walks return to each node: the diagonals of functions of the normalized adjacency matrix.

The diagonal of a power or polynomial of a matrix is computed column by column: X = I, then X = M X again and again, of
which only the diagonal is kept. Graphs of similar size are multiplied together: dense graphs as a batch of padded
matrices ``[B, n, n]``, all others as one sparse matrix of blocks ``[N, N]``, times ``[N, n]``, where the rows of each
graph have the columns of its own nodes. Large graphs are computed a few columns at a time.

A product with a graph of n nodes and m edges takes some n (n + m) operations. The memory is that of the edges of some
graphs and of four matrices of ``CAPACITY`` entries, or of ``NARROWEST`` columns of a larger graph, or of
``LARGEST_DENSE`` squared entries (32 MB) for a dense graph.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError

CAPACITY = 2**17
"""The number of matrix entries that are computed together; few matrices of this size fit the cache of a processor."""
NARROWEST = 16
"""The least number of columns of a large graph that are computed together."""
SPARSE = 8
"""The number of matrix entries per edge above which sparse products are faster than dense ones."""
LARGEST_DENSE = 2048
"""The number of nodes above which matrices are always sparse, to bound the memory."""
LARGEST_GRAPH = 50_000
"""The number of nodes above which a graph is refused, because the time is at least quadratic in it."""
PRECISION = 1e-10
"""The bound of the terms that are left out of series."""

Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The rows, the columns and the values of the entries of a sparse matrix; the values of equal positions are added."""


class Matrix(Protocol):
    """Choose the matrix of graphs, of which edges lead from ``source`` to ``target``, both ``[E]``."""

    def __call__(self, source: np.ndarray, target: np.ndarray, nodes: int) -> Entries:
        """Return the entries of the matrix."""


class Columns(NamedTuple):
    """Some columns of the matrices of several graphs."""

    matrix: Any
    """The matrices, ``[B, n, n]`` or sparse ``[N, N]``: ``matrix @ x`` multiplies the columns ``x``."""
    unit: np.ndarray
    """The columns of the unit matrix, ``[B, n, n]`` or ``[N, C]``."""
    diagonal: tuple[np.ndarray, ...]
    """Where the diagonal is in the columns."""
    nodes: np.ndarray
    """The nodes of the store that the entries of the diagonal belong to."""


def return_probabilities(store: PackedGraphs, steps: int) -> np.ndarray:
    """Return the probability that a random walk is back at its node after 1, 2, ... steps, float32 ``[N, steps]``.

    The walk follows each edge out of a node with equal probability, and ends at a node without one.

    Args:
        store: The graphs, on a CPU.
        steps: The number of steps.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.walks import return_probabilities
        >>> triangle = Graph(3, [(a, b) for a in range(3) for b in range(3) if a != b])
        >>> return_probabilities(pack([triangle]), 3)[0].tolist()
        [0.0, 0.5, 0.25]
    """
    found = np.zeros((store.num_nodes, steps), np.float32)
    for columns in _columns(store, _transitions):
        x = columns.unit
        for step in range(steps):
            x = columns.matrix @ x
            found[columns.nodes, step] = x[columns.diagonal]
    return found


def heat_diagonals(store: PackedGraphs, times: Sequence[float]) -> np.ndarray:
    """Return the heat that is left at each node where it started, after each of several times, float32 ``[N, T]``.

    This is the diagonal of exp(-t L), where L is the normalized Laplacian of the graph with all edges undirected. At an
    isolated node it is 1. With S = I - L, the series exp(-t L) = exp(-t) (I_0(t) + 2 sum_k I_k(t) T_k(S)) of Bessel
    functions I_k and Chebyshev polynomials T_k needs some 6 sqrt(t) products.

    Args:
        store: The graphs, on a CPU.
        times: The times, positive.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.walks import heat_diagonals
        >>> edge = pack([Graph(2, [(0, 1), (1, 0)])])  # L has the eigenvalues 0 and 2
        >>> heat_diagonals(edge, [1.0, 100.0]).astype(float).round(4).tolist()
        [[0.5677, 0.5], [0.5677, 0.5]]
    """
    weights = _bessel_weights(np.array(times))
    found = np.zeros((store.num_nodes, len(times)), np.float32)
    for columns in _columns(store, _normalized_adjacency):
        before = columns.unit
        x = columns.matrix @ before
        twice = 2 * columns.matrix
        sums = weights[0] + weights[1] * x[columns.diagonal][:, None]
        for weight in weights[2:]:
            following = twice @ x
            following -= before
            before = x
            x = following
            sums += weight * x[columns.diagonal][:, None]
        found[columns.nodes] = sums
    return found


def _bessel_weights(times: np.ndarray) -> np.ndarray:
    """Return the weight of each Chebyshev polynomial, ``[K, T]``, K at least 2."""
    from scipy.special import ive  # imported here to keep the start of the command line fast

    degree = 2
    while float(ive(degree, times).max()) > PRECISION:
        degree += 1
    weights: np.ndarray = 2 * ive(np.arange(degree)[:, None], times)
    weights[0] /= 2
    return weights


def _transitions(source: np.ndarray, target: np.ndarray, nodes: int) -> Entries:
    """Return the transition probabilities of a random walk, D^-1 A."""
    return source, target, 1 / np.bincount(source, minlength=nodes)[source]


def _normalized_adjacency(source: np.ndarray, target: np.ndarray, nodes: int) -> Entries:
    """Return D^(-1/2) A D^(-1/2) of the undirected graph, with 1 on the diagonal at nodes without edges."""
    rows, columns = np.concatenate([[source, target], [target, source]], axis=1)
    degrees = np.bincount(rows, minlength=nodes) / 2
    isolated = np.flatnonzero(degrees == 0)
    values = 0.5 / np.sqrt(degrees[rows] * degrees[columns])
    ones = np.ones(len(isolated))
    return np.append(rows, isolated), np.append(columns, isolated), np.append(values, ones)


def _columns(store: PackedGraphs, matrix: Matrix) -> Iterator[Columns]:
    """Yield all columns of the matrices of all graphs, a limited number at a time."""
    sizes = store.sizes.numpy()
    edges = store.edge_ptr.diff().numpy()
    largest = int(sizes.argmax()) if len(sizes) else 0
    if len(sizes) and sizes[largest] > LARGEST_GRAPH:
        raise DataError(
            f"graph {largest} of {store.name} has {sizes[largest]:,} nodes, but return probabilities and heat kernels "
            f"are computed for at most {LARGEST_GRAPH:,}, because they take a time that is quadratic in the nodes. "
            "Remove the graph, or use other encoders."
        )
    dense = (sizes**2 <= SPARSE * edges) & (sizes <= LARGEST_DENSE)
    for chosen, make in ((dense, _dense), (~dense, _sparse)):
        for graphs in _groups(np.flatnonzero(chosen & (sizes > 0)), sizes):
            batch = store.batch(torch.from_numpy(graphs))
            source, target = batch.edge_index.numpy()
            yield from make(matrix(source, target, batch.nodes.numel()), sizes[graphs], batch.nodes.numpy())


def _groups(graphs: np.ndarray, sizes: np.ndarray) -> Iterator[np.ndarray]:
    """Yield graphs of similar size, whose padded matrices have at most ``CAPACITY`` entries together, or one graph."""
    graphs = graphs[np.argsort(sizes[graphs], kind="stable")]
    first = 0
    while first < len(graphs):
        most = CAPACITY // int(sizes[graphs[first]]) ** 2 + 1  # as all that follow are as large or larger
        some = sizes[graphs[first : first + most]]
        entries = np.arange(1, len(some) + 1) * some**2
        last = first + max(1, int(np.searchsorted(entries, CAPACITY, side="right")))
        yield graphs[first:last]
        first = last


def _dense(entries: Entries, sizes: np.ndarray, nodes: np.ndarray) -> Iterator[Columns]:
    """Yield the columns of a batch of padded matrices."""
    rows, columns, values = entries
    width = int(sizes.max())
    owner = np.repeat(np.arange(len(sizes)), sizes)
    inside = _positions(sizes)
    place = (owner[rows] * width + inside[rows]) * width + inside[columns]
    shape = (len(sizes), width, width)
    matrix = np.bincount(place, values, minlength=len(sizes) * width**2).reshape(shape)
    yield _with_unit(matrix, shape, (owner, inside, inside), nodes)


def _sparse(entries: Entries, sizes: np.ndarray, nodes: np.ndarray) -> Iterator[Columns]:
    """Yield a few columns at a time of graphs side by side."""
    from scipy.sparse import coo_array

    rows, columns, values = entries
    matrix = coo_array((values, (rows, columns)), shape=(len(nodes), len(nodes))).tocsr()
    width = int(sizes.max())
    inside = _positions(sizes)
    step = min(width, max(NARROWEST, CAPACITY // len(nodes)))
    for first in range(0, width, step):
        here = np.flatnonzero((inside >= first) & (inside < first + step))
        yield _with_unit(matrix, (len(nodes), step), (here, inside[here] - first), nodes[here])


def _with_unit(matrix: Any, shape: tuple[int, ...], diagonal: tuple[np.ndarray, ...], nodes: np.ndarray) -> Columns:
    unit = np.zeros(shape)
    unit[diagonal] = 1
    return Columns(matrix, unit, diagonal, nodes)


def _positions(sizes: np.ndarray) -> np.ndarray:
    """Return the number of each node within its graph."""
    starts = np.cumsum(sizes) - sizes
    positions: np.ndarray = np.arange(sizes.sum()) - np.repeat(starts, sizes)
    return positions
