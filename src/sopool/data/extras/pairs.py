"""The pairs of nodes at each distance as an extra, for second order across nodes."""

from dataclasses import dataclass

from sopool.data.analysis.distance_cache import all_pairs_of, cache_key
from sopool.data.analysis.distances import PairLists, all_pair_lists
from sopool.data.extras.base import Extra
from sopool.data.graphs import PackedGraphs


@dataclass(frozen=True)
class NodePairs(Extra):
    """The pairs of nodes of each graph up to a distance; batches have :class:`~sopool.ops.Pairs`.

    Args:
        distances: The largest distance K, at least 1.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.data.extras import NodePairs
        >>> NodePairs(distances=2).build(load("MUTAG"), cached=False).totals()
        [7442, 10856]
    """

    distances: int

    @property
    def key(self) -> str:
        """The distance, and the version of the method."""
        return cache_key(self.distances)

    def build(self, store: PackedGraphs, cached: bool = True) -> PairLists:
        """Return the pairs of graphs; raise a ``SettingError`` if there are too many."""
        return (all_pairs_of if cached else all_pair_lists)(store, self.distances)
