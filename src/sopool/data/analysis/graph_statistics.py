"""What is in a store: counts, sizes, and what is odd about it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from sopool.data.analysis.refinement import Duplicates, caution_of_copies, duplicates
from sopool.data.edges import edge_blocks
from sopool.data.graphs import PackedGraphs

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True)
class GraphStatistics:
    """Statistics of a store of graphs."""

    name: str
    graphs: int
    classes: tuple[tuple[str | int, int], ...]
    """The name of each class and how many graphs it has; empty where labels are not known."""
    nodes: int
    """Of all graphs together."""
    nodes_min: int
    nodes_mean: float
    nodes_median: float
    nodes_max: int
    nodes_quantiles: tuple[tuple[float, float], ...]
    """(share, number of nodes) pairs: so many nodes or fewer has that share of the graphs (interpolated)."""
    directed_edges: int
    """All edges as they are stored: an undirected one twice."""
    edges_mean: float
    """Per graph: pairs of different nodes {i, j} with an edge either way, each counted once."""
    directed: bool
    """Whether some edge has no counterpart in the other direction."""
    self_loops: int
    duplicate_edges: int
    """Directed edges that repeat another one."""
    isolated_nodes: int
    """Nodes without any edge."""
    empty_graphs: int
    """Graphs without any node."""
    node_labels: int | None
    """Distinct node labels; None where nodes have no labels."""
    node_attributes: int
    """Numbers per node, 0 for none."""
    edge_labels: int | None
    edge_attributes: int
    edge_weights: bool
    duplicates: Duplicates | None = None
    """Graphs that colour refinement cannot tell apart; None unless asked for."""

    def to_json(self) -> dict[str, Any]:
        """As plain lists, dictionaries, numbers and strings."""
        values = asdict(self)
        values["classes"] = [{"name": name, "graphs": count} for name, count in self.classes]
        values["nodes_quantiles"] = [list(pair) for pair in self.nodes_quantiles]
        values["duplicates"] = None if self.duplicates is None else self.duplicates._asdict()
        return values


class _Edges(NamedTuple):
    pairs: int
    self_loops: int
    repeats: int
    directed: bool
    isolated: int


def graph_statistics(store: PackedGraphs, rounds: int | None = None) -> GraphStatistics:
    """Count everything once, a block of edges at a time; with ``rounds`` of colour refinement for duplicates."""
    store = store.to("cpu")
    sizes = store.sizes.numpy()
    some = sizes if len(sizes) else np.zeros(1, np.int64)
    edges = _count_edges(store)
    attributes = store.node_attributes
    edge_attributes = store.edge_attributes
    return GraphStatistics(
        name=store.name,
        graphs=len(store),
        classes=_classes(store),
        nodes=store.num_nodes,
        nodes_min=int(some.min()),
        nodes_mean=float(some.mean()),
        nodes_median=float(np.median(some)),
        nodes_max=int(some.max()),
        nodes_quantiles=tuple((share, float(np.quantile(some, share))) for share in QUANTILES),
        directed_edges=store.num_edges,
        edges_mean=edges.pairs / max(len(store), 1),
        directed=edges.directed,
        self_loops=edges.self_loops,
        duplicate_edges=edges.repeats,
        isolated_nodes=edges.isolated,
        empty_graphs=int(np.count_nonzero(sizes == 0)),
        node_labels=_distinct(store.node_labels),
        node_attributes=0 if attributes is None else attributes.shape[1],
        edge_labels=_distinct(store.edge_labels),
        edge_attributes=0 if edge_attributes is None else edge_attributes.shape[1],
        edge_weights=store.edge_weights is not None,
        duplicates=None if rounds is None else duplicates(store, rounds),
    )


def data_warnings(statistics: GraphStatistics, folds: int = 10) -> list[str]:
    """What may spoil training or cross-validation in ``folds`` folds, one sentence or two each."""
    found = []
    counts = {name: count for name, count in statistics.classes if count}
    labelled = sum(counts.values())
    if len(counts) == 1:
        found.append(f"All graphs are of one class, {next(iter(counts))!r}: there is nothing to learn.")
    for name, count in counts.items():
        if count < folds:
            found.append(
                f"Class {name!r} has {count} graph{'s' if count > 1 else ''}, too few for {folds} folds: "
                "use fewer folds, or merge or drop the class."
            )
    name, most = max(counts.items(), key=lambda item: item[1], default=("", 0))
    if len(counts) > 1 and most > 0.9 * labelled:
        found.append(
            f"Class {name!r} holds {most / labelled:.1%} of the graphs: always answering it is right that often, "
            "so look at balanced accuracy too."
        )
    if statistics.empty_graphs:
        found.append(
            f"{statistics.empty_graphs} of {statistics.graphs} graphs have no nodes: all of them get the same "
            "prediction. Drop them unless that is meant."
        )
    copies = None if statistics.duplicates is None else caution_of_copies(statistics.duplicates, statistics.graphs)
    return found if copies is None else [*found, copies]


def size_histogram(sizes: Tensor | np.ndarray | Sequence[int], width: int = 40, bins: int = 10) -> list[str]:
    """Lines of text, one per range of sizes: the range, a bar (``width`` characters for the longest), the count.

    The ranges grow geometrically where the largest size is more than ten times the smallest.
    """
    values = sizes.cpu().numpy() if isinstance(sizes, Tensor) else np.asarray(sizes, dtype=np.int64)
    if not values.size:
        return []
    edges = _bin_edges(int(values.min()), int(values.max()), bins)
    counts = np.histogram(values, edges)[0]
    ranges = [f"{low}" if high - low == 1 else f"{low} - {high - 1}" for low, high in pairwise(edges)]
    column = max(map(len, ranges))
    eighths = -(counts * -8 * width // counts.max())  # rounded up: no graph goes unseen
    bars = ["█" * (some // 8) + EIGHTHS[some % 8].strip() for some in eighths.tolist()]
    return [
        f"{label:>{column}} │{bar:<{width}} {count:,}" for label, bar, count in zip(ranges, bars, counts, strict=True)
    ]


def _bin_edges(low: int, high: int, bins: int) -> list[int]:
    """Whole numbers that start each bin, and one past ``high``."""
    if high - low < bins:
        return list(range(low, high + 2))
    if high > 10 * max(low, 1):
        edges = np.geomspace(low + 1, high + 2, bins + 1) - 1  # moved by one, so that a size of 0 has a logarithm
    else:
        edges = np.linspace(low, high + 1, bins + 1)
    return sorted({low, *np.rint(edges[1:-1]).astype(int).tolist(), high + 1})


def _count_edges(store: PackedGraphs) -> _Edges:
    pairs = self_loops = repeats = one_way = 0
    isolated = np.ones(store.num_nodes, dtype=bool)
    for block in edge_blocks(store):
        if not block.numel():
            continue
        isolated[block.flatten().numpy()] = False
        source, target = (block - block.min()).numpy()
        nodes = int(max(source.max(), target.max())) + 1  # of this block only: pairs must not overflow
        edges = _count_distinct(source * nodes + target)
        joined = _count_distinct(np.minimum(source, target) * nodes + np.maximum(source, target))
        looped = source[source == target]
        loops = _count_distinct(looped)
        pairs += joined - loops
        self_loops += looped.size
        repeats += source.size - edges
        one_way += 2 * (joined - loops) - (edges - loops)  # an edge and its counterpart are one pair
    return _Edges(pairs, self_loops, repeats, one_way > 0, int(np.count_nonzero(isolated)))


def _count_distinct(keys: np.ndarray) -> int:
    keys = np.sort(keys, kind="stable")  # much faster than the default on keys that come in runs, as edges do
    return int(np.count_nonzero(keys[1:] != keys[:-1])) + (keys.size > 0)


def _classes(store: PackedGraphs) -> tuple[tuple[str | int, int], ...]:
    if store.labels is None:
        return ()
    counts = np.bincount(store.labels.numpy(), minlength=len(store.classes)).tolist()
    return tuple(zip(store.classes, counts, strict=True))


def _distinct(codes: Tensor | None) -> int | None:
    return None if codes is None else _count_distinct(codes.numpy())
