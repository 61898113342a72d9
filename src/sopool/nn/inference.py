"""Faster evaluation of a trained message-passing network."""

import torch
from torch import Tensor

from sopool.nn.gnn import GNN, Blocks, combinations_of
from sopool.nn.layers import NormedLinear, project
from sopool.ops._autograd import transformed
from sopool.ops._columns import join
from sopool.ops.many_models.model_rows import EPS
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.numba import dispatch as compiled
from sopool.ops.numba.network import Layers, run_network


class InferenceGNN(torch.nn.Module):
    """A trained :class:`~sopool.nn.gnn.GNN` for faster evaluation without gradients.

    The output equals that of the network in evaluation mode up to rounding. Batch normalization is merged into the
    preceding linear layers, and compiled loops take a few graphs at a time through all layers. Where the loops are not
    available (see :mod:`sopool.ops.numba.dispatch`), the network itself is evaluated, as are networks that use the
    attributes of edges.

    Args:
        gnn: The trained network.
        view: A matrix W ``[F, R]``, or ``[M, F, R]`` for a stack. If given, the output is H W ``[N, R]``, where H is
            the concatenation of all layers. Default: ``None``.
    """

    def __init__(self, gnn: GNN, view: Tensor | None = None) -> None:
        super().__init__()
        self.gnn = gnn.eval()
        self.view = view
        self.merged = _merge_norms(gnn, view)

    def forward(self, x: Tensor, neighbors: Neighbors | Dense, ptr: Tensor, models: int = 1) -> list[Tensor]:
        """Return the input and the output of each layer, ``[N, F]`` each, or H W if ``view`` was given."""
        serves = not self.gnn.maps and compiled.serves_alone(x) and not transformed()
        if serves and isinstance(neighbors, Neighbors) and self.merged.serves(neighbors):
            return run_network(x, neighbors, ptr, self._layers_for(neighbors))
        layers: list[Tensor] = self.gnn(x, neighbors, ptr, models)
        return layers if self.view is None else [project(join(layers), self.view, ptr)]

    def _layers_for(self, neighbors: Neighbors) -> Layers:
        """Return the layers with the vectors of the combinations of categories in a batch, if there are several."""
        combinations = combinations_of(neighbors, len(self.gnn.spec.categories)) if self.gnn.edges else None
        return self.merged if combinations is None else self.merged.with_vectors(_vectors_of(self.gnn, combinations))


def _vectors_of(gnn: GNN, combinations: Tensor | None = None) -> list[Tensor]:
    """Return the vectors of edge labels of each layer ``[V, F]``."""
    with torch.no_grad():
        return [] if gnn.known is None else [edges(gnn.known, combinations).flatten(0, 1) for edges in gnn.edges]


def _merge_norms(gnn: GNN, view: Tensor | None) -> Layers:
    """Merge batch normalization into the linear layers: W diag(s) and shift - mean s, where s = scale / deviation."""
    weights = list[Tensor]()
    biases = list[Tensor]()
    with torch.no_grad():
        for blocks in gnn.layers:
            assert isinstance(blocks, Blocks)
            for block in blocks:
                assert isinstance(block, NormedLinear)
                factor = block.scale * (block.running_var + EPS).rsqrt()
                weights.append((block.weight * factor.unsqueeze(-2)).view(-1, *block.weight.shape[-2:]))
                biases.append((block.shift - block.running_mean * factor).view(-1, factor.shape[-1]))
        models = len(weights[0])
        layers = len(gnn.layers)
        eps = weights[0].new_zeros(models, layers) if gnn.eps is None else gnn.eps.detach().view(models, layers)
    view = None if view is None else view.view(models, *view.shape[-2:])
    return Layers(gnn.how, eps, weights, biases, _vectors_of(gnn), view, gnn.spec.weights)
