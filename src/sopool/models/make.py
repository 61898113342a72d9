"""From a configuration to a model, and to what it must be told about each graph."""

from sopool.data.analysis.spectral import ClusterSpec
from sopool.models.base import Classifier
from sopool.models.config import ModelConfig
from sopool.models.flat import FlatClassifier
from sopool.models.hierarchical import HierarchicalClassifier
from sopool.nn.pool.base import PooledReadout
from sopool.nn.pool.eigen import EigenPooling
from sopool.nn.registry import make_pooling, make_readout


def make_model(config: ModelConfig, in_channels: int, classes: int) -> Classifier:
    """A flat model, or a hierarchy where there are blocks."""
    kind = HierarchicalClassifier if config.blocks else FlatClassifier
    return kind(config, in_channels, classes)


def clusters_for(config: ModelConfig) -> ClusterSpec | None:
    """The clusters that a model needs beforehand; None for all but EigenPool."""
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
