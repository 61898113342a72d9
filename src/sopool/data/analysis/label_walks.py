"""Count the walks of each graph by the sequence of the labels that they meet."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sopool.data.analysis.simple_graphs import SimpleGraphs, simple_graphs
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError

MOST_SEQUENCES = 2**62
"""The number of sequences of labels, whether they occur or not, that can be numbered."""
MOST_ENTRIES = 2**25
"""The number of different sequences of all graphs and one length, which take 400 MB; longer walks are left out."""
AT_ONCE = 2**17
"""The number of nodes and directed edges of graphs that are computed together, which bounds the memory."""


def label_walks(store: PackedGraphs, length: int) -> list[Any]:
    """Return the number of walks of 1, 2, ..., ``length`` steps with each sequence of labels, sparse ``[G, S]`` each.

    Walks go along the edges in both directions, as often as they like; self-loops and repeated edges are dropped.
    Without node labels all nodes have the same label. Let ``F_0 [N, labels]`` have a one at the label of each node.
    The walks that start at each node are counted by F_(l+1) = A F_l, where the column c of a row becomes the column
    (own label, c). Only sequences that occur have a column, in the order of their labels.

    The time and the memory grow with the number of different sequences that start at each node, at most the number of
    its walks: a few steps are cheap on molecules, but not on graphs with many labels and large degrees. Walks are
    shortened, with a warning, if the graphs have more than ``MOST_ENTRIES`` sequences of a length.

    Args:
        store: The graphs.
        length: The largest number of steps.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.data.analysis.label_walks import label_walks
        >>> bond = pack([Graph(2, [(0, 1), (1, 0)], node_labels=["C", "O"])])
        >>> [walks.toarray().tolist() for walks in label_walks(bond, 2)]  # CO, OC; then COC, OCO
        [[[1.0, 1.0]], [[1.0, 1.0]]]
    """
    store = store.to("cpu")
    labels = np.zeros(store.num_nodes, np.int64)
    if store.node_labels is not None:
        labels = np.unique(store.node_labels.numpy(), return_inverse=True)[1].astype(np.int64)
    kinds = int(labels.max(initial=0)) + 1
    if kinds ** (length + 1) > MOST_SEQUENCES:
        raise DataError(
            f"{store.name} has {kinds} node labels, whose sequences of {length + 1} cannot be numbered: choose a "
            "smaller length."
        )
    blocks = []
    entries = [0] * length
    allowed = length
    for start, block in _blocks(store):
        found: list[_Walks] = []
        for walks in _walks(block, labels[start:], kinds, allowed):
            entries[len(found)] += walks.counts.nnz
            if found and entries[len(found)] > MOST_ENTRIES:
                allowed = len(found)
                break
            found.append(walks)
        blocks.append(found)
    if allowed < length:
        warnings.warn(
            f"{store.name} has more than {MOST_ENTRIES:,} sequences of labels along walks of {allowed + 1} steps, so "
            f"walks have at most {allowed}.",
            stacklevel=2,
        )
    return [_joined([block[step] for block in blocks], len(store)) for step in range(allowed)]


def _blocks(store: PackedGraphs) -> Iterator[tuple[int, SimpleGraphs]]:
    """Yield blocks of graphs and the number of the first node of each in the store."""
    for block in simple_graphs(store, AT_ONCE):
        yield int(store.node_ptr[block.first]), block


class _Walks(NamedTuple):
    """The codes of sequences ``[S]``, and how often each occurs in some graphs ``[B, S]``."""

    codes: np.ndarray
    counts: Any


def _walks(block: SimpleGraphs, labels: np.ndarray, kinds: int, length: int) -> Iterator[_Walks]:
    """Yield the walks of one step, two steps and so on."""
    from scipy.sparse import csr_array

    nodes = block.matrix.shape[0]
    labels = labels[:nodes]
    matrix = block.matrix.astype(np.float64)
    graphs = csr_array((np.ones(nodes), np.arange(nodes), block.ptr), shape=(block.graphs, nodes))
    codes = np.arange(kinds)
    walks = csr_array((np.ones(nodes), labels, np.arange(nodes + 1)), shape=(nodes, kinds))
    for step in range(1, length + 1):
        walks = (matrix @ walks).tocsr()
        # The label of the row comes first: its digit is the highest of the number of the sequence.
        own = np.repeat(labels, np.diff(walks.indptr))
        sequences, columns = np.unique(own * len(codes) + walks.indices, return_inverse=True)
        first, rest = np.divmod(sequences, max(len(codes), 1))
        codes = first * kinds**step + codes[rest]
        walks = csr_array((walks.data, columns, walks.indptr), shape=(nodes, len(codes)))
        yield _Walks(codes, (graphs @ walks).tocsr())


def _joined(parts: list[_Walks], graphs: int) -> Any:
    """Return the counts of all blocks as one matrix, whose columns are the sequences of any of them."""
    from scipy.sparse import csr_array, vstack

    every = np.unique(np.concatenate([np.zeros(0, np.int64), *(part.codes for part in parts)]))
    moved = []
    for codes, found in parts:
        columns = np.searchsorted(every, codes)[found.indices]
        moved.append(csr_array((found.data, columns, found.indptr), shape=(found.shape[0], len(every))))
    if not moved:
        return csr_array((graphs, 0))
    joined = vstack(moved, format="csr")
    joined.sort_indices()
    return joined
