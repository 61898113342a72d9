"""A trained model made ready to predict."""

import copy

from sopool.models.base import Classifier
from sopool.models.flat import FlatClassifier
from sopool.nn.aggr.bilinear import BilinearSecondOrderAggregation
from sopool.nn.aggr.covariance import CovarianceAggregation
from sopool.nn.gnn import GNN
from sopool.nn.inference import InferenceGNN

MAPPED = (BilinearSecondOrderAggregation, CovarianceAggregation)
"""They use their rows in no other way than as H W. What a class that derives from them does is not known."""


def prepare_for_inference(model: Classifier) -> Classifier:
    """A copy for evaluation alone, without gradients, on a CPU: the same scores up to rounding, sooner.

    Where a readout begins with a linear map of all layers, that map goes into the network before it.
    """
    out = copy.deepcopy(model).eval()
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
