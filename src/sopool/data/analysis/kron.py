r"""Coarsen graphs by Kron reduction: about half of the nodes are kept, and what lay between them becomes edges.

Each component is coarsened by itself (Shuman et al., "A Multiscale Pyramid Transform for Graph Signals", 2016):

1. Nodes are kept where the eigenvector of the largest eigenvalue of the Laplacian L is not negative. Neighbors often
   have different signs there.
2. The Laplacian of the kept nodes (+) is the Schur complement :math:`L_{++} - L_{+-} L_{--}^{-1} L_{-+}`, which keeps
   all effective resistances. Its entries are the weights of the new edges.
3. As the new graph is dense, only the edges with the largest products of weight and effective resistance remain: the
   probability that a random spanning tree contains the edge. They are so many that the mean degree does not grow;
   edges as likely as the last one remain, too.

An eigenvector has no sign, and there are several if the largest eigenvalue is repeated. Of these, the projection of the
unit vector of one node is used: the node for which this projection is the longest, then the one with the smallest hash
of its label and of what is around it (:func:`~sopool.data.analysis.graph_hashes.node_hashes`), then the first one.
Hence the order of nodes plays a part only for nodes that neither of them distinguishes.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from sopool.data.analysis.graph_hashes import node_hashes
from sopool.data.analysis.resistance import resistances
from sopool.data.analysis.simple_graphs import simple_graphs
from sopool.data.graphs import PackedGraphs

SMALL = 256
FEW = 4
"""The number of nodes above which only a few eigenvectors are computed first."""
MOST_NODES = 6000
"""The largest number of nodes of a graph to reduce, of which a matrix has 0.3 GB."""
EQUAL = 1e-8
"""Numbers this close to each other count as equal."""


class CoarserGraphs(NamedTuple):
    """The coarser graph of each of G graphs, with K nodes and E edges together.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.kron import coarsen
        >>> path = Graph(4, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)])
        >>> (level,) = coarsen(pack([path]), levels=1)
        >>> level.kept, level.edge_index.tolist(), level.weights
        (array([1, 3]), [[1, 0], [0, 1]], array([0.5, 0.5]))
    """

    kept: np.ndarray
    """The number of each kept node among all finer nodes ``[K]``, int64, in increasing order."""
    node_ptr: np.ndarray
    """The position of each graph's first kept node ``[G + 1]``, int64."""
    edge_index: np.ndarray
    """The sources and targets, numbered from 0 within each graph, int32 ``[2, E]``; each edge in both directions."""
    edge_ptr: np.ndarray
    """The position of each graph's first edge ``[G + 1]``, int64."""
    weights: np.ndarray
    """The weight of each edge ``[E]``, float64."""


def coarsen(store: PackedGraphs, levels: int) -> list[CoarserGraphs]:
    """Return coarser and coarser graphs of all graphs, which count as undirected, without self-loops.

    Args:
        store: The graphs, on a CPU.
        levels: The number of coarser graphs of each graph.
    """
    from scipy.sparse import block_diag, csr_array

    hashes = node_hashes(store, [name for name in ("node_labels", "edge_labels") if _has(store, name)], {})
    owner = np.repeat(np.arange(len(store)), store.sizes.numpy())
    blocks = [block.matrix for block in simple_graphs(store)]
    weights = block_diag(blocks, format="csr", dtype=np.float64) if blocks else csr_array((0, 0))
    found = []
    for _ in range(levels):
        kept, weights = _coarser(weights, hashes)
        hashes, owner = hashes[kept], owner[kept]
        found.append(_packed(kept, weights, owner, len(store)))
    return found


def _coarser(weights: Any, hashes: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return the kept nodes and the weights between them, of sparse weights ``[N, N]``."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    _, component = connected_components(weights, directed=False)
    order = np.argsort(component, kind="stable")
    ordered = weights[order][:, order]
    ends = np.cumsum(np.bincount(component))
    kept = np.ones(len(hashes), bool)
    rows, columns, values = [], [], []
    for first, last in pairwise([0, *ends]):
        if last - first > 1:
            nodes = order[first:last]
            own = ordered[first:last, first:last].toarray()
            kept[nodes] = chosen = _kept(_laplacian(own), hashes[nodes])
            left = nodes[chosen]
            reduced = _sparser(_reduced(own, chosen), np.count_nonzero(own) / 2 * len(left) / len(nodes))
            row, column = reduced.nonzero()
            rows.append(left[row])
            columns.append(left[column])
            values.append(reduced[row, column])
    place = np.cumsum(kept) - 1
    between = tuple(place[np.concatenate([[], *each]).astype(np.int64)] for each in (rows, columns))
    shape = (int(kept.sum()),) * 2
    return kept.nonzero()[0], csr_array((np.concatenate([[], *values]), between), shape=shape)


def _laplacian(weights: np.ndarray) -> np.ndarray:
    laplacian: np.ndarray = np.diag(weights.sum(1)) - weights
    return laplacian


def _kept(laplacian: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """Return which nodes of a connected graph are kept, bool ``[n]``."""
    vectors = _top_vectors(laplacian)
    lengths = np.square(vectors).sum(1)
    longest = (lengths >= lengths.max() - EQUAL).nonzero()[0]
    first = longest[np.argmin(hashes[longest])]
    found: np.ndarray = vectors @ vectors[first] >= -EQUAL
    return found


def _top_vectors(laplacian: np.ndarray) -> np.ndarray:
    """Return all eigenvectors of the largest eigenvalue ``[n, m]``."""
    from scipy.linalg import eigh

    size = len(laplacian)
    if size > SMALL:
        values, vectors = eigh(laplacian, subset_by_index=(size - FEW, size - 1))
        top = values >= values.max(initial=0) * (1 - EQUAL)
        if 0 < top.sum() < len(values) == FEW:  # LAPACK may find fewer, and all of them may be equal
            some: np.ndarray = vectors[:, top]
            return some
    values, vectors = np.linalg.eigh(laplacian)
    found: np.ndarray = vectors[:, values >= values[-1] * (1 - EQUAL)]
    return found


def _reduced(weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return the weights between the kept nodes by Kron reduction ``[k, k]``."""
    from scipy.linalg import solve

    laplacian = _laplacian(weights)
    between = laplacian[np.ix_(~kept, kept)]
    inside = laplacian[np.ix_(~kept, ~kept)]
    reduced = between.T @ solve(inside, between, assume_a="pos") - laplacian[np.ix_(kept, kept)]
    np.fill_diagonal(reduced, 0)
    reduced = (reduced + reduced.T) / 2
    found: np.ndarray = np.where(reduced > EQUAL, reduced, 0)
    return found


def _sparser(weights: np.ndarray, most: float) -> np.ndarray:
    """Return the weights of the ``most`` edges, at least, that are most likely in a random spanning tree."""
    likely = np.triu(weights * resistances(weights), 1)
    present = likely[likely > 0]
    if len(present) <= most:
        return weights
    last = np.partition(present, -int(most))[-int(most)]
    kept = likely >= last - EQUAL
    found: np.ndarray = weights * (kept | kept.T)
    return found


def _packed(kept: np.ndarray, weights: Any, owner: np.ndarray, graphs: int) -> CoarserGraphs:
    """Return the coarser graphs of sparse weights ``[K, K]`` between kept nodes, of which ``owner`` has the graph."""
    node_ptr = np.searchsorted(owner, np.arange(graphs + 1))
    edges = weights.tocoo()
    graph = owner[edges.row]
    edge_index = np.stack([edges.col, edges.row]) - node_ptr[graph]
    edge_ptr = np.searchsorted(graph, np.arange(graphs + 1))
    return CoarserGraphs(kept, node_ptr, edge_index.astype(np.int32), edge_ptr, edges.data)


def _has(store: PackedGraphs, name: str) -> bool:
    return getattr(store, name) is not None
