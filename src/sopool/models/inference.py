"""Faster prediction with a trained model."""

import copy

from sopool.models.base import Classifier
from sopool.models.flat import FlatClassifier
from sopool.models.network import NetworkClassifier
from sopool.nn.aggr.bilinear import BilinearSecondOrderAggregation
from sopool.nn.aggr.covariance import CovarianceAggregation
from sopool.nn.gnn import GNN
from sopool.nn.inference import InferenceGNN

MAPPED = (BilinearSecondOrderAggregation, CovarianceAggregation)
"""Readouts that use the node features H only as H W. Subclasses are excluded, since they may differ."""


def prepare_for_inference(model: Classifier) -> Classifier:
    """Return a copy of a trained model that predicts faster on a CPU, without gradients.

    The scores equal those of the model in evaluation mode up to rounding. If the readout starts with a linear mapping,
    the mapping is merged into the message-passing network.

    Args:
        model: The trained model, or a stack of models.

    Examples:
        >>> from sopool.models import ModelConfig, make_model
        >>> model = make_model(ModelConfig(hidden=8), in_channels=3, classes=2)
        >>> prepare_for_inference(model).training
        False
    """
    out = copy.deepcopy(model).eval()
    if isinstance(out, NetworkClassifier):
        out.separate()
        return out
    if isinstance(out, FlatClassifier) and len(out.readouts) == 1:
        readout = out.readouts[0]
        if isinstance(readout, MAPPED) and type(readout) in MAPPED and readout.mapping is not None:
            out._modules["gnn"] = InferenceGNN(out.gnn, readout.mapping.detach())
            readout.weight = None
            readout.channels = readout.rank
    for owner in list(out.modules()):
        for name, layer in owner.named_children():
            if isinstance(layer, GNN) and not isinstance(owner, InferenceGNN):
                owner._modules[name] = InferenceGNN(layer)
    return out
