"""Anonymous walk embeddings (Ivanov and Burnaev, "Anonymous walk embeddings", ICML 2018)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sopool.data.analysis.anonymous_walks import anonymous_walks, completions
from sopool.data.graphs import PackedGraphs
from sopool.experiments.systems.embedding import BATCH, Draw, embed
from sopool.experiments.systems.registry import fixed

STEPS = 10
"""The number of steps of a walk."""
WALKS = 10_000
"""The number of walks of each graph."""
GROUPS = 200
"""The number of nodes of each graph whose walks predict each other."""
CONTEXT = 16
"""The number of walks that predict another one from the same node."""
WEIGHTS = (*[0.5 / CONTEXT] * CONTEXT, 0.5)
"""The weights of these walks and of their graph."""
EPOCHS = 20
"""How often each group is drawn on average."""


@fixed(
    "awe",
    sees=f"the frequencies of anonymous walks of {STEPS} steps in a sample of {WALKS:,}",
    settings=[{"learner": "svm"}, *({"learner": "svm-rbf", "width": width} for width in (2.0, 1.0, 0.5))],
    strengths=(0.1, 1.0, 10.0, 100.0, 1000.0),
    normalize="cosine",
    paper="Ivanov and Burnaev, 2018",
    cost="walks G + G^2",
)
def walk_frequencies(store: PackedGraphs, steps: int = STEPS, walks: int = WALKS, seed: int = 0) -> Any:
    """Return the frequencies of anonymous walks: walks whose nodes are named by the order of their first visit.

    This is the feature-based variant. Walks start at random nodes that have neighbors; a graph without edges has no
    frequencies. Node labels are not used. There are 115,975 anonymous walks of 10 steps, and on dense graphs all of
    them occur. The published accuracies are those of the best of three kernels and several widths, chosen after the
    test. All graphs are sampled with the same random numbers.

    Args:
        store: The graphs.
        steps: The number of steps of a walk. Default: 10.
        walks: The number of walks of each graph. Default: 10,000.
        seed: The random seed of the walks.

    Returns:
        Sparse ``[G, B(steps)]``, where B are the Bell numbers.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.experiments.systems.fixed.anonymous_walks import walk_frequencies
        >>> path = pack([Graph(2, [(0, 1), (1, 0)])])
        >>> walk_frequencies(path, steps=2, walks=5).toarray().tolist()  # there and back again
        [[1.0, 0.0]]
    """
    from scipy.sparse import csr_array, vstack

    kinds = int(completions(steps)[0, 0])
    parts = [csr_array((0, kinds))]
    for _, numbers in anonymous_walks(store, steps, walks, seed):
        graph, sample = np.nonzero(numbers >= 0)
        rows, names = (graph, numbers[graph, sample])
        part = csr_array((np.ones(len(rows)), (rows, names)), shape=(len(numbers), kinds))
        part.sum_duplicates()
        part.data /= walks
        parts.append(part)
    return vstack(parts, format="csr")


@fixed(
    "awe-dd",
    sees=f"vectors that predict anonymous walks of {STEPS} steps from walks beside them",
    settings=[{"learner": "svm"}, {"learner": "svm-rbf", "width": 1.0}],
    normalize="cosine",
    paper="Ivanov and Burnaev, 2018",
    transductive=True,
    cost="epochs groups G + G^2",
)
def walk_documents(
    store: PackedGraphs, dimensions: int = 64, steps: int = STEPS, groups: int = GROUPS, seed: int = 0
) -> np.ndarray:
    """Return a vector of each graph that helps to predict an anonymous walk from other walks of the same node.

    This is the distributed variant (data-driven), the distributed memory model of paragraph vectors: the mean of the
    vectors of 16 walks and of their graph predicts another walk that starts at the same node. All graphs are embedded
    together, without their labels. The graph has the weight of all the walks together.

    The published model averages the walks, appends the vector of the graph instead of adding it, and trains on 10,000
    targets per graph and epoch, for 100 epochs. Here each graph has 200 groups of walks, drawn 20 times each, so that
    MUTAG takes seconds and not hours.

    Args:
        store: The graphs.
        dimensions: The length of the vectors. Default: 64.
        steps: The number of steps of a walk. Default: 10.
        groups: The number of groups of walks of each graph. Default: 200.
        seed: The random seed of walks and vectors.

    Returns:
        Dense ``[G, dimensions]``; zero for graphs without edges.

    Examples:
        >>> from sopool.data import make_agreement
        >>> from sopool.experiments.systems.fixed.anonymous_walks import walk_documents
        >>> walk_documents(make_agreement(4), dimensions=8, groups=2).shape
        (4, 8)
    """
    found = [numbers for _, numbers in anonymous_walks(store, steps, groups * (CONTEXT + 1), seed, CONTEXT + 1)]
    numbers = np.concatenate([np.zeros((0, groups * (CONTEXT + 1)), np.int64), *found])
    walked = np.flatnonzero(numbers[:, 0] >= 0)
    vectors = np.zeros((len(store), dimensions), np.float32)
    if not len(walked):
        return vectors
    _, words, times = np.unique(numbers[walked], return_inverse=True, return_counts=True)
    text = words.reshape(len(walked), groups, CONTEXT + 1)
    count = EPOCHS * groups * len(walked) // BATCH + 1
    learned = embed(_grouped(text, len(times)), len(times) + len(walked), times, dimensions, count, seed, WEIGHTS)
    vectors[walked] = learned[len(times) :]
    return vectors


def _grouped(text: np.ndarray, words: int) -> Draw:
    """Return a function that draws groups of walks: all but the last and the graph are inputs, the last is a target."""
    walks = torch.from_numpy(text)

    def draw(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        graph = torch.randint(len(walks), (BATCH,), generator=generator)
        group = torch.randint(walks.shape[1], (BATCH,), generator=generator)
        chosen = walks[graph, group]
        return torch.cat([chosen[:, :-1], words + graph[:, None]], 1), chosen[:, -1]

    return draw
