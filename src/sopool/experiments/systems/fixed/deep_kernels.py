r"""Deep graph kernels (Yanardag and Vishwanathan, "Deep graph kernels", KDD 2015).

The substructures of a graph are the words of a text, of which a skip-gram model learns vectors E. With the numbers P
of each substructure in each graph, the kernel is :math:`P E E^T P^T`, so the features of graphs are :math:`P E`.
"""

from functools import partial
from typing import Any

import numpy as np

from sopool.data.analysis.graphlets import graph_classes, neighboring_graphlets
from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.embedding import BATCH, embed, near_words
from sopool.experiments.systems.fixed.graphlets import frequencies_of
from sopool.experiments.systems.fixed.pairs import shortest_paths, with_too_many_pairs
from sopool.experiments.systems.fixed.wl import subtree_counts
from sopool.experiments.systems.registry import fixed

EPOCHS = 5
"""How often each word is drawn with each of its neighbors, on average."""
MOST_STEPS = 4096
"""The largest number of steps of the skip-gram model, which bounds its time."""
MOST_WORDS = 2**18
"""The number of different words that have a vector, which bounds the memory; others are left out, rare ones first."""
GRAPHLETS = 100
"""The number of random graphlets of each graph; each has seven others that share a node with it."""
SETTINGS = [{"dimensions": dimensions, "window": window} for dimensions in (10, 50) for window in (2, 10)]
deep = partial(fixed, settings=SETTINGS, normalize="cosine", paper="Yanardag and Vishwanathan, 2015", transductive=True)
"""Registers a kernel of the paper."""


@deep(
    "dgk-wl",
    sees="vectors of the colors of 2 rounds of refinement that occur together",
    cost="h E + epochs h N window + G^2",
)
def deep_subtrees(store: PackedGraphs, dimensions: int = 50, window: int = 10, seed: int = 0) -> np.ndarray:
    """Return the sum of the vectors of the colors of all nodes, after 0, 1 and 2 rounds of refinement.

    The text of a graph has the colors in the order of rounds, with equal colors side by side, as in the authors' code;
    so a narrow window sees the same color most of the time. All graphs are embedded together, without their labels.
    Published tables show the best of three kernels of this kind for each data set.

    Args:
        store: The graphs.
        dimensions: The length of the vectors. Default: 50.
        window: The largest distance of words that predict each other. Default: 10.
        seed: The random seed of the vectors.

    Returns:
        Dense ``[G, dimensions]``.

    Examples:
        >>> from sopool.data import make_agreement
        >>> from sopool.experiments.systems.fixed.deep_kernels import deep_subtrees
        >>> deep_subtrees(make_agreement(4), dimensions=8).shape
        (4, 8)
    """
    return _deep(subtree_counts(store, 2), dimensions, window, seed)


@deep(
    "dgk-sp",
    sees="vectors of the shortest paths (label, label, length) that occur together",
    cost="N E / G + epochs N^2 window / G + G^2",
    refuses=with_too_many_pairs,
)
def deep_paths(store: PackedGraphs, dimensions: int = 50, window: int = 10, seed: int = 0) -> np.ndarray:
    """Return the mean of the vectors of all pairs of nodes, by their labels and distance.

    The arguments and the result are those of :func:`deep_subtrees`; the text of a graph has equal pairs side by side.
    """
    counts = shortest_paths(store)
    features: np.ndarray = _deep(counts, dimensions, window, seed) / np.maximum(counts.sum(1), 1)[:, None]
    return features


@deep(
    "dgk-gk",
    sees="vectors of sampled subgraphs on 7 nodes that share a node",
    cost="samples G + epochs samples window G + G^2",
)
def deep_graphlets(
    store: PackedGraphs, dimensions: int = 50, window: int = 10, samples: int = GRAPHLETS, seed: int = 0
) -> np.ndarray:
    """Return the mean of the vectors of sampled graphlets on 7 nodes.

    A sentence has a random graphlet and seven that share one of its nodes each. The arguments and the result are those
    of :func:`deep_subtrees`, and ``samples`` is the number of sentences of each graph.
    """
    words = neighboring_graphlets(store, 7, samples, seed)
    frequencies = frequencies_of(words.reshape(len(store), samples * 8), len(graph_classes(7).smallest))
    ptr = np.arange(words[..., 0].size + 1) * words.shape[2]
    vectors = _vectors(
        words.ravel(), np.ones(words.size, np.int64), ptr, frequencies.shape[1], dimensions, window, seed
    )
    features: np.ndarray = frequencies @ vectors
    return features


def _deep(counts: Any, dimensions: int, window: int, seed: int) -> np.ndarray:
    """Return the sums of the vectors of words, where a row of ``counts`` has the words of a sentence in their order."""
    total = np.asarray(counts.sum(0)).ravel()
    if len(total) > MOST_WORDS:
        counts = counts[:, np.sort(np.argsort(-total, kind="stable")[:MOST_WORDS])]
    counts.sum_duplicates()
    text = counts.indices, counts.data.astype(np.int64), counts.indptr
    features: np.ndarray = counts @ _vectors(*text, counts.shape[1], dimensions, window, seed)
    return features


def _vectors(
    words: np.ndarray, times: np.ndarray, ptr: np.ndarray, kinds: int, dimensions: int, window: int, seed: int
) -> np.ndarray:
    draw = near_words(words, times, ptr, window)
    frequencies = np.bincount(words, times, minlength=kinds)
    steps = min(EPOCHS * 2 * window * int(times.sum()) // BATCH + 1, MOST_STEPS)
    return embed(draw, kinds, frequencies, dimensions, steps, seed)
