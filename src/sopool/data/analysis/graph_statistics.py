"""Compute statistics of a store of graphs, and warn about problems."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from sopool.data.analysis.refinement import Duplicates, caution_of_copies, duplicates
from sopool.data.edges import edge_blocks
from sopool.data.graphs import CATEGORIES, PackedGraphs
from sopool.data.names import number_attributes

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
EIGHTHS = " ▏▎▍▌▋▊▉"


class TargetStatistics(NamedTuple):
    """Statistics of one target; None where no graph has it."""

    name: str
    graphs: int
    """The number of graphs that have it."""
    missing: int
    mean: float | None
    std: float | None
    """The standard deviation, divided by the number of graphs."""
    min: float | None
    max: float | None


class CategoryStatistics(NamedTuple):
    """A column of categories of nodes or edges."""

    of: str
    """``"node"`` or ``"edge"``."""
    name: str
    values: int
    """The number of distinct values that occur."""


class NumberStatistics(NamedTuple):
    """A column of attributes of nodes, edges or graphs, or the weights of edges."""

    of: str
    """``"node"``, ``"edge"`` or ``"graph"``."""
    name: str
    missing: int
    """The number of graphs without it; 0 for nodes and edges."""
    min: float | None
    """The smallest number; None if there is none."""
    max: float | None


@dataclass(frozen=True)
class GraphStatistics:
    """Statistics of a store of graphs."""

    name: str
    graphs: int
    classes: tuple[tuple[str | int, int], ...]
    """The name and number of graphs of each class; empty without labels."""
    nodes: int
    """The number of nodes of all graphs together."""
    nodes_min: int
    nodes_mean: float
    nodes_median: float
    nodes_max: int
    nodes_quantiles: tuple[tuple[float, float], ...]
    """Pairs (q, number of nodes): the q-quantile of the number of nodes, interpolated."""
    directed_edges: int
    """The number of stored edges; an undirected edge counts twice."""
    edges_mean: float
    """The mean number per graph of pairs of different nodes with an edge in at least one direction."""
    directed: bool
    """Whether some edge has no counterpart in the opposite direction."""
    self_loops: int
    duplicate_edges: int
    """The number of directed edges that repeat another edge."""
    isolated_nodes: int
    """The number of nodes without edges."""
    empty_graphs: int
    """The number of graphs without nodes."""
    node_labels: int | None
    """The number of distinct node labels; None if nodes have no labels."""
    node_attributes: int
    """The number of attributes per node."""
    edge_labels: int | None
    edge_attributes: int
    edge_weights: bool
    duplicates: Duplicates | None = None
    """The graphs that color refinement cannot distinguish; None unless requested."""
    targets: tuple[TargetStatistics, ...] = ()
    """The statistics of each target; empty without targets."""
    categories: tuple[CategoryStatistics, ...] = ()
    """The columns of categories besides node and edge labels."""
    numbers: tuple[NumberStatistics, ...] = ()
    """The columns of numbers of nodes, edges and graphs, without targets."""

    def to_json(self) -> dict[str, Any]:
        """Return the statistics as lists, dictionaries, numbers and strings."""
        values = asdict(self)
        values["classes"] = [{"name": name, "graphs": count} for name, count in self.classes]
        values["nodes_quantiles"] = [list(pair) for pair in self.nodes_quantiles]
        for name in ("targets", "categories", "numbers"):
            values[name] = [column._asdict() for column in getattr(self, name)]
        values["duplicates"] = None if self.duplicates is None else self.duplicates._asdict()
        return values


class _Edges(NamedTuple):
    pairs: int
    self_loops: int
    repeats: int
    directed: bool
    isolated: int


def graph_statistics(store: PackedGraphs, rounds: int | None = None) -> GraphStatistics:
    """Compute the statistics of a store.

    Args:
        store: The graphs.
        rounds: The number of rounds of color refinement to find duplicates. Default: None, do not search for
            duplicates.
    """
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
        targets=_targets(store),
        categories=tuple(_categories(store)),
        numbers=tuple(_numbers(store)),
    )


def data_warnings(statistics: GraphStatistics, folds: int = 10) -> list[str]:
    """Return sentences about problems for training or for cross-validation with ``folds`` folds."""
    found = []
    counts = {name: count for name, count in statistics.classes if count}
    labelled = sum(counts.values())
    if len(counts) == 1:
        found.append(f"All graphs are of one class, {next(iter(counts))!r}, so there is nothing to learn.")
    for name, count in counts.items():
        if count < folds:
            found.append(
                f"Class {name!r} has {count} graph{'s' if count > 1 else ''}, too few for {folds} folds: "
                "use fewer folds, or merge or drop the class."
            )
    name, most = max(counts.items(), key=lambda item: item[1], default=("", 0))
    if len(counts) > 1 and most > 0.9 * labelled:
        found.append(
            f"Class {name!r} has {100 * most / labelled:.1f} % of the graphs, which is the accuracy of always "
            "predicting it: look at balanced accuracy, too."
        )
    found += map(_target_warning, (one for one in statistics.targets if one.min == one.max))
    if statistics.empty_graphs:
        found.append(
            f"{statistics.empty_graphs} of {statistics.graphs} graphs have no nodes, so all of them get the same "
            "prediction. Remove them unless this is intended."
        )
    copies = None if statistics.duplicates is None else caution_of_copies(statistics.duplicates, statistics.graphs)
    return found if copies is None else [*found, copies]


def _target_warning(target: TargetStatistics) -> str:
    """Return the warning about a target without two different values."""
    if not target.graphs:
        return f"The target {target.name!r} is missing for all graphs, so there is nothing to learn."
    return f"The target {target.name!r} is {target.min:g} for all graphs that have it, so there is nothing to learn."


def size_histogram(sizes: Tensor | np.ndarray | Sequence[int], width: int = 40, bins: int = 10) -> list[str]:
    """Return a histogram of sizes as lines of text: the range, a bar of at most ``width`` characters, and the count.

    The ranges grow geometrically if the largest size is more than ten times the smallest.
    """
    values = sizes.cpu().numpy() if isinstance(sizes, Tensor) else np.asarray(sizes, dtype=np.int64)
    if not values.size:
        return []
    edges = _bin_edges(int(values.min()), int(values.max()), bins)
    counts = np.histogram(values, edges)[0]
    ranges = [f"{low}" if high - low == 1 else f"{low} - {high - 1}" for low, high in pairwise(edges)]
    column = max(map(len, ranges))
    eighths = -(counts * -8 * width // counts.max())  # rounded up, so that every graph is visible
    bars = ["█" * (some // 8) + EIGHTHS[some % 8].strip() for some in eighths.tolist()]
    return [
        f"{label:>{column}} │{bar:<{width}} {count:,}" for label, bar, count in zip(ranges, bars, counts, strict=True)
    ]


def _bin_edges(low: int, high: int, bins: int) -> list[int]:
    """Return the first integer of each bin, and one more than ``high``."""
    if high - low < bins:
        return list(range(low, high + 2))
    if high > 10 * max(low, 1):
        edges = np.geomspace(low + 1, high + 2, bins + 1) - 1  # shifted by one, because 0 has no logarithm
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
        nodes = int(max(source.max(), target.max())) + 1  # of this block only, so that products do not overflow
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
    keys = np.sort(keys, kind="stable")  # much faster than the default on keys in sorted runs, such as edges
    return int(np.count_nonzero(keys[1:] != keys[:-1])) + (keys.size > 0)


def _classes(store: PackedGraphs) -> tuple[tuple[str | int, int], ...]:
    if store.labels is None:
        return ()
    counts = np.bincount(store.labels.numpy(), minlength=len(store.classes)).tolist()
    return tuple(zip(store.classes, counts, strict=True))


def _targets(store: PackedGraphs) -> tuple[TargetStatistics, ...]:
    if store.targets is None:
        return ()
    columns = zip(store.target_names, store.targets.numpy().T, strict=True)
    return tuple(_target(name, column) for name, column in columns)


def _target(name: str, column: np.ndarray) -> TargetStatistics:
    there = column[~np.isnan(column)]
    missing = len(column) - len(there)
    if not len(there):
        return TargetStatistics(name, 0, missing, None, None, None, None)
    figures = (float(figure) for figure in (there.mean(), there.std(), there.min(), there.max()))
    return TargetStatistics(name, len(there), missing, *figures)


def _categories(store: PackedGraphs) -> Iterator[CategoryStatistics]:
    """Yield the statistics of each column of categories."""
    for field, columns in CATEGORIES.items():
        codes = getattr(store, field)
        for place, column in enumerate(getattr(store, columns)):
            yield CategoryStatistics(field[:4], column.name, _count_distinct(codes[:, place].numpy()))


def _numbers(store: PackedGraphs) -> Iterator[NumberStatistics]:
    """Yield the statistics of each column of numbers that are not targets."""
    for of, values in (("node", store.node_attributes), ("edge", store.edge_attributes)):
        names = number_attributes(0 if values is None else values.shape[1])
        yield from (_range(of, name, values[:, place]) for place, name in enumerate(names) if values is not None)
    if store.edge_weights is not None:
        yield _range("edge", "weight", store.edge_weights)
    if store.graph_attributes is not None:
        for name, column in zip(store.graph_attribute_names, store.graph_attributes.unbind(1), strict=True):
            yield _range("graph", name, column)


def _range(of: str, name: str, column: Tensor) -> NumberStatistics:
    there = column[~column.isnan()]
    low, high = map(float, there.aminmax()) if len(there) else (None, None)
    return NumberStatistics(of, name, len(column) - len(there), low, high)


def _distinct(codes: Tensor | None) -> int | None:
    return None if codes is None else _count_distinct(codes.numpy())
