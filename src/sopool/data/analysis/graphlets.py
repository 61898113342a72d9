r"""Count the induced subgraphs on k nodes of each graph by isomorphism class: its graphlets.

Graphlets on 3 and 4 nodes are counted exactly, larger ones are sampled. Subgraphs that are not connected count, too.
Graphs are taken as undirected, without self-loops and repeated edges. A graph with fewer than k nodes is filled up with
isolated nodes, so every graph has at least one graphlet.

With n nodes, m edges, degrees d, T triangles, t_e of them at edge e, C cycles of length four and K cliques of four, the
numbers of all *copies* of the graphs on 4 nodes, induced or not, follow at once, such as
:math:`\sum_e \binom{t_e}{2}` diamonds or :math:`\binom{m}{2} - \sum_v \binom{d_v}{2}` pairs of disjoint edges. An
induced subgraph H contains a fixed number of copies of each graph, so the numbers of induced subgraphs are the solution
of linear equations with integer coefficients (Ahmed et al., "Efficient Graphlet Counting for Large Networks", ICDM
2015).
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch

from sopool.data.analysis.simple_graphs import (
    SimpleGraphs,
    expand_ranges,
    graphs_at_once,
    segment_sums,
    simple_graphs,
)
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, SettingError
from sopool.ops.numba import dispatch as compiled

LARGEST_GRAPH = 50_000
"""The number of nodes above which a graph is refused, because counts would not fit into 64 bits."""
LARGEST_SIZE = 7
"""The largest number of nodes of a graphlet: there are 1,044 graphs with 7 nodes, and 12,346 with 8."""
AT_ONCE = 2**22
"""The number of entries of arrays that are computed together, which bounds the memory."""
EDGES = {
    3: {"edge": [(0, 1)], "path": [(0, 1), (1, 2)], "triangle": [(0, 1), (1, 2), (0, 2)]},
    4: {
        "edge": [(0, 1)],
        "path": [(0, 1), (1, 2)],
        "two edges": [(0, 1), (2, 3)],
        "triangle": [(0, 1), (1, 2), (0, 2)],
        "star": [(0, 1), (0, 2), (0, 3)],
        "long path": [(0, 1), (1, 2), (2, 3)],
        "paw": [(0, 1), (1, 2), (0, 2), (2, 3)],
        "square": [(0, 1), (1, 2), (2, 3), (0, 3)],
        "diamond": [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)],
        "clique": list(combinations(range(4), 2)),
    },
}
"""The edges of the graphs on 3 and on 4 nodes, except the ones without edges."""


class Classes(NamedTuple):
    """The isomorphism classes of the graphs on k nodes.

    The code of a graph is a number whose bits say which of the pairs (0, 1), (0, 2), ..., (k - 2, k - 1) are edges.
    """

    of: np.ndarray
    """The class of each code, int32; classes are numbered in the order of their smallest codes."""
    smallest: np.ndarray
    """The smallest code of each class."""


@lru_cache(maxsize=LARGEST_SIZE)
def graph_classes(size: int) -> Classes:
    """Return the isomorphism classes of the graphs with some number of nodes, at most 7.

    Two codes are in the same class if permutations of the nodes turn one into the other. A transposition and a cycle
    generate all permutations, so the classes are the connected components of the codes joined by these two.

    Examples:
        >>> from sopool.data.analysis.graphlets import graph_classes
        >>> [len(graph_classes(size).smallest) for size in (1, 2, 3, 4, 5, 6)]
        [1, 2, 4, 11, 34, 156]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = list(combinations(range(size), 2))
    codes = np.arange(2 ** len(pairs), dtype=np.int32)
    swap = [1, 0, *range(2, size)] if size > 1 else [0]
    cycle = [*range(1, size), 0]
    joined = np.concatenate([_permuted(codes, pairs, swap), _permuted(codes, pairs, cycle)])
    graph = coo_array((np.ones(len(joined), bool), (np.tile(codes, 2), joined)), shape=(len(codes), len(codes)))
    found = connected_components(graph, directed=False)[1]
    smallest = np.sort(np.unique(found, return_index=True)[1])
    rank = np.empty(len(smallest), np.int32)
    rank[found[smallest]] = np.arange(len(smallest))
    return Classes(rank[found], smallest)


def _permuted(codes: np.ndarray, pairs: list[tuple[int, int]], order: list[int]) -> np.ndarray:
    """Return the codes of the same graphs after their nodes were permuted."""
    place = {pair: bit for bit, pair in enumerate(pairs)}
    found = np.zeros_like(codes)
    for bit, (a, b) in enumerate(pairs):
        low, high = sorted((order[a], order[b]))
        found |= (codes >> bit & 1) << place[low, high]
    return found


def count_graphlets(store: PackedGraphs, size: int) -> np.ndarray:
    """Return the number of induced subgraphs of each class, int64 ``[G, 4]`` for size 3 or ``[G, 11]`` for size 4.

    The classes are those of :func:`graph_classes`. The time grows with the number of triangles, and with m sqrt(m) for
    a graph with m edges. The memory is that of a few million edges, or of the largest graph.

    Args:
        store: The graphs.
        size: The number of nodes, 3 or 4.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.graphlets import count_graphlets
        >>> square = pack([Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)])])
        >>> count_graphlets(square, 3).tolist()  # no edge, an edge, a path, a triangle
        [[0, 0, 4, 0]]
    """
    if size not in EDGES:
        raise SettingError(f"size={size}, expected 3 or 4: larger graphlets are sampled, see sample_graphlets.")
    store = _checked(store)
    copies = [_copies(block, size) for block in simple_graphs(store)]
    total = np.concatenate([np.zeros((0, len(graph_classes(size).smallest)), np.int64), *copies])
    counts: np.ndarray = total @ _inverse(size).T
    return counts


def sample_graphlets(store: PackedGraphs, size: int, samples: int, seed: int) -> np.ndarray:
    """Return the class of the subgraphs that random sets of nodes induce, int32 ``[G, samples]``.

    All graphs are sampled with the same random numbers, so the graphlets of a graph depend neither on the other graphs
    nor on their order. The memory is that of some graphs at a time, or of n^2 bytes for a graph with n nodes.

    Args:
        store: The graphs.
        size: The number of nodes of a graphlet, at most 7.
        samples: The number of sets of nodes.
        seed: The random seed.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.graphlets import sample_graphlets
        >>> sample_graphlets(pack([Graph(2, [(0, 1)])]), size=3, samples=2, seed=0).tolist()
        [[1, 1]]
    """
    numbers = np.random.default_rng(seed).random((samples, size))
    return classify(store, size, samples, lambda nodes: choose_nodes(nodes, numbers))


def neighboring_graphlets(store: PackedGraphs, size: int, samples: int, seed: int) -> np.ndarray:
    """Return the classes of random sets of nodes and of sets that share one node with them, ``[G, samples, size + 1]``.

    The first of ``size + 1`` graphlets is as in :func:`sample_graphlets`. Each of the others contains another node of
    the first one, and random other nodes. The arguments are those of :func:`sample_graphlets`.
    """
    random = np.random.default_rng(seed)
    numbers = random.random((samples, size))
    others = random.random((samples, size, size - 1))

    def choose(nodes: np.ndarray) -> np.ndarray:
        first = choose_nodes(nodes, numbers)
        rest = choose_nodes(nodes[:, None] - 1, others.reshape(samples * size, size - 1))
        rest = rest.reshape(*first.shape[:2], size, size - 1)
        rest += rest >= first[..., None]  # the shared node is left out of the choice
        shared = np.concatenate([first[..., None], rest], -1)
        return np.concatenate([first[:, :, None], shared], 2).reshape(len(nodes), -1, size)

    return classify(store, size, samples * (size + 1), choose).reshape(len(store), samples, size + 1)


def choose_nodes(nodes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return random sets of k nodes of graphs with ``nodes`` nodes, by Floyd's algorithm: ``[B, S, k]``.

    Args:
        nodes: The number of nodes of each graph, at least k, ``[B]`` or ``[B, 1]``.
        numbers: Random numbers from 0 to 1, ``[S, k]``.
    """
    nodes = nodes.reshape(-1, 1)
    size = numbers.shape[1]
    chosen = np.empty((len(nodes), *numbers.shape), np.int64)
    for i in range(size):
        last = nodes - size + i
        node = np.minimum((numbers[:, i] * (last + 1)).astype(np.int64), last)
        taken = (chosen[..., :i] == node[..., None]).any(-1)
        chosen[..., i] = np.where(taken, last, node)
    return chosen


def classify(store: PackedGraphs, size: int, sets: int, choose: Any) -> np.ndarray:
    """Return the class of the subgraph of each of some sets of nodes of each graph, int32 ``[G, sets]``."""
    if not 1 <= size <= LARGEST_SIZE:
        raise SettingError(f"size={size}, expected the number of nodes of a graphlet, from 1 to {LARGEST_SIZE}.")
    store = _checked(store)
    classes = graph_classes(size).of
    found = [np.zeros((0, sets), np.int32)]
    for block in simple_graphs(store, AT_ONCE):
        nodes = np.diff(block.ptr)
        for some in graphs_at_once(nodes**2 + sets * size, AT_ONCE):
            codes = _codes(block, some, choose(np.maximum(nodes[some], size)))
            found.append(classes[codes])
    return np.concatenate(found)


def _codes(block: SimpleGraphs, some: slice, chosen: np.ndarray) -> np.ndarray:
    """Return the codes ``[B, S]`` of the subgraphs of sets of nodes ``[B, S, k]``, numbered within each graph."""
    ptr = block.ptr[some.start : some.stop + 1]
    nodes = np.diff(ptr)
    starts = np.cumsum(nodes**2) - nodes**2
    dense = np.zeros(int((nodes**2).sum()) + 1, bool)  # the last entry stands for the pairs of nodes that are not there
    part = block.matrix[ptr[0] : ptr[-1]].tocoo()
    owner = np.repeat(np.arange(len(nodes)), nodes)[part.row]
    inside = part.row + ptr[0] - ptr[owner]
    dense[starts[owner] + inside * nodes[owner] + part.col - ptr[owner]] = True
    width = nodes[:, None]
    codes = np.zeros(chosen.shape[:2], np.int32)
    for bit, (a, b) in enumerate(combinations(range(chosen.shape[2]), 2)):
        one = chosen[..., a]
        other = chosen[..., b]
        place = np.where(np.maximum(one, other) < width, starts[:, None] + one * width + other, -1)
        codes |= dense[place].astype(np.int32) << bit
    return codes


def _checked(store: PackedGraphs) -> PackedGraphs:
    largest = int(store.sizes.max()) if len(store) else 0
    if largest > LARGEST_GRAPH:
        raise DataError(
            f"graph {int(store.sizes.argmax())} of {store.name} has {largest:,} nodes, but graphlets are counted in "
            f"graphs of at most {LARGEST_GRAPH:,}: remove the graph."
        )
    return store.to("cpu")


def _class_of(size: int, edges: list[tuple[int, int]]) -> int:
    place = {pair: bit for bit, pair in enumerate(combinations(range(size), 2))}
    return int(graph_classes(size).of[sum(1 << place[edge] for edge in edges)])


@lru_cache(maxsize=2)
def _inverse(size: int) -> np.ndarray:
    """Return the integer matrix that turns numbers of copies of each class into numbers of induced subgraphs."""
    classes = graph_classes(size)
    codes = np.arange(len(classes.of))
    inside = (codes & classes.smallest[:, None]) == codes
    copies = np.stack([np.bincount(classes.of[row], minlength=len(classes.smallest)) for row in inside], 1)
    return np.rint(np.linalg.inv(copies)).astype(np.int64)


def _copies(block: SimpleGraphs, size: int) -> np.ndarray:
    """Return the numbers of copies of each class in each graph, induced or not, ``[B, classes]``."""
    order = np.lexsort([block.degrees, block.owner])
    matrix = block.matrix[order][:, order].tocsr()  # nodes of each graph by degree
    matrix.sort_indices()
    ptr = block.ptr
    degrees = np.diff(matrix.indptr).astype(np.int64)
    upper, triangles, cliques = _cliques(matrix, size == 4)
    edge_ptr = upper.indptr[ptr].astype(np.int64)
    n = np.maximum(np.diff(ptr), size)
    m = np.diff(edge_ptr)
    wedges = segment_sums(_two(degrees), ptr)
    third = segment_sums(triangles, edge_ptr) // 3
    if size == 3:
        found = {"edge": m * (n - 2), "path": wedges, "triangle": third}
        return _by_class(found, n * _two(n - 1) // 3, size)
    owner = np.repeat(np.arange(matrix.shape[0]), np.diff(upper.indptr))
    ends = (degrees[owner] - 1) * (degrees[upper.indices] - 1)
    at_edges = triangles * (degrees[owner] + degrees[upper.indices] - 4)  # each triangle meets each node at two edges
    found = {
        "edge": m * _two(n - 2),
        "path": wedges * (n - 3),
        "two edges": _two(m) - wedges,
        "triangle": third * (n - 3),
        "star": segment_sums(degrees * _two(degrees - 1) // 3, ptr),
        "long path": segment_sums(ends, edge_ptr) - 3 * third,
        "paw": segment_sums(at_edges, edge_ptr) // 2,
        "square": segment_sums(_squares(matrix), ptr),
        "diamond": segment_sums(_two(triangles), edge_ptr),
        "clique": segment_sums(cliques, ptr),
    }
    return _by_class(found, _two(n) * _two(n - 2) // 6, size)


def _by_class(found: dict[str, np.ndarray], every: np.ndarray, size: int) -> np.ndarray:
    table = np.empty((len(every), len(graph_classes(size).smallest)), np.int64)
    table[:, 0] = every  # as many copies of the graph without edges as there are sets of nodes
    for name, numbers in found.items():
        table[:, _class_of(size, EDGES[size][name])] = numbers
    return table


def _two(numbers: np.ndarray) -> np.ndarray:
    """Return the numbers of pairs among so many things."""
    pairs: np.ndarray = numbers * (numbers - 1) // 2
    return pairs


def _cliques(matrix: Any, four: bool) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the upper triangle of the matrix, the triangles of each of its edges and the cliques of each first node.

    The matrix has the nodes of each graph by degree. A clique has four nodes; they are counted only if ``four``.
    """
    from scipy.sparse import triu

    upper = triu(matrix, 1, format="csr")
    per_edge = np.zeros(upper.nnz, np.int64)
    per_node = np.zeros(upper.shape[0], np.int64)
    if compiled.serves(torch.from_numpy(per_edge)):
        lists = torch.from_numpy(upper.indptr.astype(np.int64)), torch.from_numpy(upper.indices.astype(np.int32))
        views = torch.from_numpy(per_edge), torch.from_numpy(per_node)
        compiled.prepare("count_cliques", *lists, four, *views, module="graphlet_loops")()
    else:
        _search_cliques(upper, four, per_edge, per_node)
    return upper, per_edge, per_node


def _search_cliques(upper: Any, four: bool, per_edge: np.ndarray, per_node: np.ndarray) -> None:
    """Add to the numbers of triangles and cliques, for nodes with similar numbers of larger neighbors together."""
    starts = upper.indptr.astype(np.int64)
    ends = upper.indices.astype(np.int64)
    width = np.diff(starts)
    keys = np.repeat(np.arange(len(width)), width) * len(width) + ends
    for nodes in _similar(width, segment_sums(width[ends], starts)):
        edges = expand_ranges(starts[nodes], width[nodes])
        after = width[ends[edges]]
        first = np.repeat(edges, after)
        second = expand_ranges(starts[ends[edges]], after)
        node = np.repeat(np.repeat(np.arange(len(nodes)), width[nodes]), after)
        wanted = nodes[node] * len(width) + ends[second]
        third = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        closed = keys[third] == wanted
        first, second, third, node = (values[closed] for values in (first, second, third, node))
        for edge in (first, second, third):
            per_edge += np.bincount(edge, minlength=len(per_edge))
        if not four:
            continue
        local = np.zeros((len(nodes), width[nodes[0]], width[nodes[0]]), np.float32)
        local[node, first - starts[nodes[node]], third - starts[nodes[node]]] = 1
        per_node[nodes] = ((local @ local) * local).sum((1, 2), dtype=np.float64).astype(np.int64)


def _similar(width: np.ndarray, paths: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the nodes with two or more larger neighbors, widest first, so that padded matrices and paths are few."""
    order = np.argsort(-width, kind="stable")
    order = order[: int((width > 1).sum())]
    ends = np.cumsum(paths[order])
    first = 0
    while first < len(order):
        padded = first + AT_ONCE // int(width[order[first]]) ** 2
        walked = int(np.searchsorted(ends, ends[first] - paths[order[first]] + AT_ONCE, side="right"))
        last = max(first + 1, min(padded, walked))
        yield order[first:last]
        first = last


def _squares(matrix: Any) -> np.ndarray:
    """Return the number of cycles of length four of which each node is the last."""
    degrees = np.diff(matrix.indptr).astype(np.int64)
    found = np.zeros(len(degrees), np.int64)
    if compiled.serves(torch.from_numpy(found)):
        lists = torch.from_numpy(matrix.indptr.astype(np.int64)), torch.from_numpy(matrix.indices.astype(np.int32))
        compiled.prepare("count_squares", *lists, torch.from_numpy(found), module="graphlet_loops")()
        return found
    from scipy.sparse import tril

    lower = tril(matrix.astype(np.int64), -1, format="csr")
    costs = segment_sums(degrees[lower.indices], lower.indptr.astype(np.int64))
    numbers = matrix.astype(np.int64)
    for some in graphs_at_once(costs, AT_ONCE):
        paths = tril(lower[some] @ numbers, some.start - 1, format="csr")
        found[some] = segment_sums(_two(paths.data), paths.indptr.astype(np.int64))
    return found
