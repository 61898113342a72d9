"""Functions that create a model from its configuration."""

from typing import NamedTuple

from sopool.data.analysis.spectral import ClusterSpec
from sopool.models.base import Classifier
from sopool.models.config import ModelConfig
from sopool.models.flat import FlatClassifier
from sopool.models.hierarchical import HierarchicalClassifier
from sopool.models.network import NetworkClassifier
from sopool.nn.aggr.pairs import PairSecondOrderAggregation
from sopool.nn.pool.base import PooledReadout
from sopool.nn.pool.eigen import EigenPooling
from sopool.nn.registry import make_pooling, make_readout


def make_model(config: ModelConfig, in_channels: int, classes: int) -> Classifier:
    """Return a new model: a system's if the configuration names one, hierarchical if it has blocks, otherwise flat.

    Args:
        config: The architecture.
        in_channels: Number of input features ``F``.
        classes: Number of classes ``C``.

    Examples:
        >>> from sopool.models import ModelConfig
        >>> type(make_model(ModelConfig(), in_channels=7, classes=2)).__name__
        'FlatClassifier'
        >>> type(make_model(ModelConfig(pool="topkpool", blocks=2), in_channels=7, classes=2)).__name__
        'HierarchicalClassifier'
    """
    if config.system:
        return NetworkClassifier(config, in_channels, classes)
    kind = HierarchicalClassifier if config.blocks else FlatClassifier
    return kind(config, in_channels, classes)


class Structures(NamedTuple):
    """What a model needs of graphs besides their edges, which is computed once for a data set.

    Examples:
        >>> from sopool.models import ModelConfig, structures_for
        >>> structures_for(ModelConfig(pool="sopool-pairs")).distances
        6
    """

    clusters: ClusterSpec | None = None
    """The spectral clusters of EigenPool; None for other poolings."""
    distances: int = 0
    """The largest distance at which pairs of nodes are listed; 0 for none."""


def structures_for(config: ModelConfig) -> Structures:
    """Return what a model of this configuration needs of graphs.

    Examples:
        >>> from sopool.models import ModelConfig, structures_for
        >>> structures_for(ModelConfig(pool="sum"))
        Structures(clusters=None, distances=0)
    """
    if config.pool != "sopool-pairs":
        return Structures(clusters_for(config))
    readout = make_readout(config.pool, 1, **config.effective_options)
    assert isinstance(readout, PairSecondOrderAggregation)
    return Structures(distances=readout.reach)


def clusters_for(config: ModelConfig) -> ClusterSpec | None:
    """Return the spectral clusters that EigenPool needs to be computed in advance; ``None`` for other poolings.

    Examples:
        >>> from sopool.models import ModelConfig
        >>> clusters_for(ModelConfig(pool="eigenpool")).vectors
        8
        >>> clusters_for(ModelConfig(pool="sum")) is None
        True
    """
    if config.pool != "eigenpool":
        return None
    if config.blocks:
        pooling = make_pooling(config.pool, 1, **config.effective_options)
    else:
        readout = make_readout(config.pool, 1, **config.effective_options)
        assert isinstance(readout, PooledReadout)
        pooling = readout.pooling
    assert isinstance(pooling, EigenPooling)
    return ClusterSpec(pooling.size, pooling.vectors, max(1, config.blocks))
