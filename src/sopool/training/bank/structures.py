"""Add to tables what models need of graphs besides their edges: spectral clusters and pairs of nodes."""

from dataclasses import replace

from sopool.data.analysis.cluster_cache import clusters_of
from sopool.data.analysis.distance_cache import all_pairs_of
from sopool.data.analysis.distances import all_pair_lists
from sopool.data.analysis.spectral import spectral_clusters
from sopool.data.graphs import PackedGraphs
from sopool.models.make import Structures
from sopool.training.bank.batching import GraphTables
from sopool.training.bank.cluster_tables import ClusterTables


def add_structures(tables: GraphTables, store: PackedGraphs, needed: Structures, cached: bool = True) -> GraphTables:
    """Return tables with the clusters and pairs that a model needs, on the device of the tables.

    Args:
        tables: The tables of the graphs.
        store: The graphs, on a CPU.
        needed: What the model needs, see :func:`~sopool.models.structures_for`.
        cached: Whether to use the cache, which graphs that are predicted only once would fill. Default: ``True``.
    """
    if needed.clusters is not None:
        levels = (clusters_of if cached else spectral_clusters)(store, needed.clusters)
        tables = replace(tables, clusters=ClusterTables.of(levels).to(tables.device))
    if needed.distances:
        pairs = (all_pairs_of if cached else all_pair_lists)(store, needed.distances)
        tables = replace(tables, pairs=pairs.to(tables.device))
    return tables
