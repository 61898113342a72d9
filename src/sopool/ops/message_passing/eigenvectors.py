"""Compute a few eigenvectors of many graphs, with a dense method for small graphs and Lanczos for large ones."""

import numpy as np

LARGE = 400
"""The number of nodes above which the dense method, whose cost is cubic, is slower."""
CAPACITY = 4_000_000
"""The number of matrix entries that are processed together."""


def leading_vectors(edges: np.ndarray, nodes: int, count: int) -> np.ndarray:
    """Return the eigenvectors of D^(-1/2) (A + I) D^(-1/2) with the largest eigenvalues, float64 ``[N, count]``.

    The edges, ``[2, E]``, are treated as undirected. Every node gets a self-loop.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import eigsh

    loops = np.arange(nodes)
    source, target = np.concatenate([edges, edges[::-1], np.stack([loops, loops])], axis=1)
    weights = np.where(np.arange(len(source)) < len(source) - nodes, 0.5, 1.0)
    share = 1 / np.sqrt(np.bincount(source, weights, minlength=nodes))
    normalised = coo_array((weights * share[source] * share[target], (source, target)), shape=(nodes, nodes)).tocsr()
    if nodes <= LARGE or count >= nodes - 1:
        return np.linalg.eigh(normalised.toarray())[1][:, : -count - 1 : -1]
    found: np.ndarray = eigsh(normalised, count, which="LA", v0=_start(nodes), tol=1e-4)[1][:, ::-1]
    return found


def laplacian_vectors(source: np.ndarray, target: np.ndarray, sizes: np.ndarray, count: int) -> np.ndarray:
    """Return the eigenvectors of each graph's Laplacian with the smallest eigenvalues, float32 ``[N, count]``.

    The K graphs are concatenated and have ``sizes``, ``[K]``, nodes each. Columns beyond a graph's number of nodes are
    zero. Edges are numbered across all graphs and treated as undirected. The sign of each vector makes the sum of cubes
    positive.
    """
    ptr = np.concatenate([[0], sizes.cumsum()])
    owner = np.searchsorted(ptr, source, side="right") - 1
    inside = np.stack([source, target]) - ptr[owner]
    out = np.zeros((int(ptr[-1]), count), np.float32)
    for size in np.unique(sizes[sizes > 0]):
        which = np.flatnonzero(sizes == size)
        step = max(1, CAPACITY // int(size) ** 2)
        for some in (which[at : at + step] for at in range(0, len(which), step)):
            mine = np.isin(owner, some)
            number = np.searchsorted(some, owner[mine])
            vectors = _vectors(number, inside[:, mine], len(some), int(size), min(count, int(size)))
            rows = ptr[some][:, None] + np.arange(size)
            out[rows.ravel(), : vectors.shape[2]] = _signed(vectors).reshape(rows.size, -1)
    return out


def _vectors(number: np.ndarray, edges: np.ndarray, graphs: int, nodes: int, count: int) -> np.ndarray:
    """Return the eigenvectors of graphs of equal size, ``[graphs, nodes, count]``."""
    if nodes > LARGE:
        return np.stack([_lanczos(edges[:, number == graph], nodes, count) for graph in range(graphs)])
    laplacian = np.zeros((graphs, nodes, nodes))
    for a, b in (edges, edges[::-1]):
        np.add.at(laplacian, (number, a, b), -0.5)
    diagonal = np.arange(nodes)
    laplacian[:, diagonal, diagonal] = -laplacian.sum(2)
    found: np.ndarray = np.linalg.eigh(laplacian)[1][:, :, :count]
    return found


def _lanczos(edges: np.ndarray, nodes: int, count: int) -> np.ndarray:
    """Return the eigenvectors of one large graph by shift-invert Lanczos iterations with a shift just below zero."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import eigsh

    loops = np.arange(nodes)
    joined = np.concatenate([edges, edges[::-1], np.stack([loops, loops])], axis=1)
    source, target = joined.astype(np.int32)  # SciPy before 1.12 does not factorize a matrix with wider indices
    degrees = np.bincount(source[:-nodes], minlength=nodes) / 2
    weights = np.concatenate([np.full(len(source) - nodes, -0.5), degrees])
    laplacian = coo_array((weights, (source, target)), shape=(nodes, nodes)).tocsc()
    values, vectors = eigsh(laplacian, count, sigma=-1e-2, v0=_start(nodes))
    ordered: np.ndarray = vectors[:, np.argsort(values, kind="stable")]
    return ordered


def _start(nodes: int) -> np.ndarray:
    """Return a fixed start vector that is not orthogonal to the eigenvectors."""
    return np.random.default_rng(0).uniform(0.5, 1.5, nodes)


def _signed(vectors: np.ndarray) -> np.ndarray:
    """Choose the sign of each vector, ``[graphs, nodes, count]``, that makes the sum of cubes positive."""
    cubes = (vectors**3).sum(1, keepdims=True).round(9)
    largest = np.take_along_axis(vectors, np.abs(vectors).round(9).argmax(1)[:, None], axis=1)
    return vectors * np.where(np.where(cubes != 0, cubes, largest) < 0, -1.0, 1.0)
