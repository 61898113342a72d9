"""Functions that create a model from its configuration."""

from sopool.data.analysis.spectral import ClusterSpec
from sopool.data.extras import Extra, NodePairs, SpectralClusters
from sopool.models.base import Classifier
from sopool.models.config import ModelConfig
from sopool.models.flat import FlatClassifier
from sopool.models.hierarchical import HierarchicalClassifier
from sopool.models.network import NetworkClassifier, network_of
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


def extras_for(config: ModelConfig) -> dict[str, Extra]:
    """Return what a model of this configuration needs of graphs besides their edges, by name.

    Examples:
        >>> from sopool.models import ModelConfig, extras_for
        >>> extras_for(ModelConfig(pool="sopool-pairs"))
        {'pairs': NodePairs(distances=6)}
        >>> extras_for(ModelConfig(pool="sum"))
        {}
    """
    if config.system:
        return dict(network_of(config.system).extras)
    if config.pool == "sopool-pairs":
        readout = make_readout(config.pool, 1, **config.effective_options)
        assert isinstance(readout, PairSecondOrderAggregation)
        return {"pairs": NodePairs(readout.reach)}
    if config.pool == "eigenpool":
        return {"clusters": SpectralClusters(_clusters(config))}
    return {}


def _clusters(config: ModelConfig) -> ClusterSpec:
    """Return the clusters that EigenPool needs."""
    if config.blocks:
        pooling = make_pooling(config.pool, 1, **config.effective_options)
    else:
        readout = make_readout(config.pool, 1, **config.effective_options)
        assert isinstance(readout, PooledReadout)
        pooling = readout.pooling
    assert isinstance(pooling, EigenPooling)
    return ClusterSpec(pooling.size, pooling.vectors, max(1, config.blocks))
