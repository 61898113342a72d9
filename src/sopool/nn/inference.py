"""A trained message-passing network made ready to predict."""

import torch
from torch import Tensor

from sopool.nn.gnn import GNN, Blocks
from sopool.nn.layers import NormedLinear, project
from sopool.ops._autograd import transformed
from sopool.ops._columns import join
from sopool.ops.many_models.model_rows import EPS
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.numba import dispatch as compiled
from sopool.ops.numba.network import Layers, run_network


class InferenceGNN(torch.nn.Module):
    """What a :class:`~sopool.nn.gnn.GNN` gives in evaluation, without a gradient, up to rounding.

    A batch norm with fixed statistics is part of the linear map before it, once and for all; then compiled loops take
    some graphs at a time through all layers. Where they do not serve (see :mod:`sopool.ops.numba.dispatch`) the network
    itself does the work.

    ``view`` [f, r], or [M, f, r] of a stack: with it all that comes out is H W, of all layers side by side [N, r].
    """

    def __init__(self, gnn: GNN, view: Tensor | None = None) -> None:
        super().__init__()
        self.gnn = gnn.eval()
        self.view = view
        self.merged = _merge_norms(gnn, view)

    def forward(self, x: Tensor, neighbors: Neighbors | Dense, ptr: Tensor, models: int = 1) -> list[Tensor]:
        """The input and the output of each layer [N, ...], ready to be joined."""
        serves = compiled.serves(x) and not transformed()
        if serves and isinstance(neighbors, Neighbors) and self.merged.has_labels_for(neighbors):
            return run_network(x, neighbors, ptr, self.merged)
        layers: list[Tensor] = self.gnn(x, neighbors, ptr, models)
        return layers if self.view is None else [project(join(layers), self.view, ptr)]


def _merge_norms(gnn: GNN, view: Tensor | None) -> Layers:
    """The maps of all layers, one after the other [M, ...]: W diag(s) and b - mean s, with s = scale / deviation."""
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
        vectors = [] if gnn.known is None else [edges(gnn.known).flatten(0, 1) for edges in gnn.edges]
        models = len(weights[0])
        layers = len(gnn.layers)
        eps = weights[0].new_zeros(models, layers) if gnn.eps is None else gnn.eps.detach().view(models, layers)
    view = None if view is None else view.view(models, *view.shape[-2:])
    return Layers(gnn.how, eps, weights, biases, vectors, view)
