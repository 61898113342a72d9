"""Random batches of awkward graphs, and dense matrices of distances as an oracle for pairs of nodes."""

import numpy as np
import torch
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

sizes = st.lists(st.one_of(st.just(0), st.just(1), st.integers(2, 9)), max_size=5)


def random_edges(sizes, seed, directed, density=1.2):
    """Some edges of each graph: loops, repeated edges and isolated nodes among them, as ``edge_index`` of a batch."""
    random = np.random.default_rng(seed)
    parts = [np.zeros((2, 0), dtype=np.int64)]
    first = 0
    for size in sizes:
        parts.append(first + random.integers(0, size, (2, int(density * size))) if size else parts[0])
        first += size
    edges = np.concatenate(parts, 1)
    return torch.from_numpy(edges if directed else np.concatenate([edges, edges[::-1]], 1))


def distance_matrix(edge_index, nodes):
    """The number of steps from each node to each other, infinite if there is no path."""
    if nodes == 0:
        return torch.zeros(0, 0)
    source, target = edge_index.numpy()
    matrix = coo_array((np.ones(len(source)), (source, target)), shape=(nodes, nodes)).tocsr()
    matrix.data[:] = 1  # repeated edges were added up
    return torch.from_numpy(shortest_path(matrix, unweighted=True))


def naive_pairs(z, edge_index, ptr, distances, rest=False):
    """Z_g^T D_k Z_g by dense matrices in float64, with the complement of all D_k if ``rest``."""
    steps = distance_matrix(edge_index, len(z))
    z = z.double()
    out = torch.zeros(len(ptr) - 1, distances + 1 + rest, z.shape[1], z.shape[1], dtype=torch.float64)
    for g, (a, b) in enumerate(zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)):
        own = steps[a:b, a:b]
        matrices = [(own == k).double() for k in range(distances + 1)]
        matrices += [(own > distances).double()] if rest else []
        for k, matrix in enumerate(matrices):
            out[g, k] = z[a:b].T @ matrix @ z[a:b]
    return out
