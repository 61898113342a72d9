"""Layers that serve one model, or a stack of models at once.

Stacking M modules of one kind gives the same module with one more axis in front of each parameter, [M, ...]. A batch
then holds the graphs of model 0, those of model 1 and so on, equally many for each: which rows belong to which model
follows from ``ptr``. Nothing else in a layer changes.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.ops import segment_attend, segment_gram, segment_spread
from sopool.ops._products import product
from sopool.ops.many_models.grouped import grouped_linear, grouped_norm_relu, grouped_norm_relu_eval, grouped_scores
from sopool.ops.many_models.model_rows import EPS, MOMENTUM, Rows
from sopool.ops.segment.gram import check_alike, promote
from sopool.ops.segment.segments import Segments


def model_rows(ptr: Tensor, models: int) -> Rows:
    """Where each model's rows lie, from where each graph's rows start [M g + 1]."""
    graphs = ptr.numel() - 1
    if graphs % models:
        raise ValueError(f"{graphs} graphs cannot be shared evenly among {models} stacked models.")
    return Rows(ptr[:: graphs // models] if graphs else ptr.new_zeros(models + 1))


def project(x: Tensor, weight: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
    """H W, or H_m W_m for a stack of weights: [N, f], [f, h] or [M, f, h] -> [N, h].

    ``order`` [N] brings the rows into the order of graphs, if they do not lie so; the result's lie as those of H.
    Under autocast in float32, as all that is pooled: of rows that were rounded first a small covariance would be lost.
    """
    x = promote(x)
    weight = promote(weight)
    check_alike("x", x, "weight", weight)
    if weight.dim() == 2:
        return product(x, weight)
    segments = Segments(ptr, order)
    return segments.unsort(grouped_linear(segments.sort(x), weight, model_rows(ptr, weight.shape[0])))


def attend(x: Tensor, query: Tensor, ptr: Tensor, bias: Tensor | None = None, order: Tensor | None = None) -> Tensor:
    """H^T (H q + b) of every graph, with one query or a stack: [N, f], [f, k] or [M, f, k] -> [G, f, k]."""
    if query.dim() == 2:
        return segment_attend(x, query, ptr, bias, order=order)
    score = project(x, query, ptr, order)
    if bias is not None:
        biases = segment_spread(bias, model_rows(ptr, bias.shape[0]).ptr, x.shape[0])
        score = score + Segments(ptr, order).unsort(biases)
    return segment_gram(x, score, ptr, order=order)


class Linear(torch.nn.Module):
    """Scores of graphs, X W^T + b: [G, in] -> [G, out]."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(out_channels, in_channels))
        self.bias = torch.nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw anew, as ``torch.nn.Linear`` does."""
        uniform(self.weight.shape[-1], self.weight)
        uniform(self.weight.shape[-1], self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """[G, in] -> [G, out], or [M g, in] -> [M g, out]."""
        if self.weight.dim() == 2:
            return F.linear(x, self.weight, self.bias)
        per_model = x.view(self.weight.shape[0], -1, x.shape[1])
        return grouped_scores(per_model, self.weight, self.bias).flatten(0, 1)


class GraphNorm(torch.nn.Module):
    """Batch norm over the graphs of a batch, those of each model by themselves: [G, channels] -> [G, channels]."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(channels))
        self.shift = torch.nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        """[G, channels] -> [G, channels], or [M g, channels] for a stack."""
        channels = x.shape[1]
        per_model = x.view(self.scale.numel() // channels, -1, channels)
        mean, variance = (tensor.view(-1, channels) for tensor in (self.running_mean, self.running_var))
        if self.training and per_model.shape[1]:
            mean, variance = self._watch(per_model, mean, variance)
        factor = self.scale.view(-1, channels) * (variance + EPS).rsqrt()
        centred = per_model - mean.unsqueeze(1)
        return torch.addcmul(self.shift.view(-1, 1, channels), centred, factor.unsqueeze(1)).view(x.shape)

    def _watch(self, per_model: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """The statistics of the batch [M, channels], which the running ones follow."""
        graphs = per_model.shape[1]
        batch_variance, batch_mean = torch.var_mean(per_model, dim=1, correction=0)
        with torch.no_grad():
            mean.lerp_(batch_mean.detach(), MOMENTUM)
            variance.lerp_(batch_variance.detach() * (graphs / max(1, graphs - 1)), MOMENTUM)
        return batch_mean, batch_variance


class NormedLinear(torch.nn.Module):
    """relu(batch_norm(H W)): [N, in] -> [N, out]. The batch norm takes away any bias, so there is none."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(in_channels, out_channels))
        self.scale = torch.nn.Parameter(torch.ones(out_channels))
        self.shift = torch.nn.Parameter(torch.zeros(out_channels))
        self.register_buffer("running_mean", torch.zeros(out_channels))
        self.register_buffer("running_var", torch.ones(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight anew, as ``torch.nn.Linear`` does."""
        bound = 1 / math.sqrt(self.weight.shape[-2])
        torch.nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x: Tensor, rows: Rows, out: Tensor | None = None) -> Tensor:
        """``rows``: those of each model. Where kernels do the work, they can write to a given place."""
        tensors = [self.weight, self.scale, self.shift, self.running_mean, self.running_var]
        if self.weight.dim() == 2:
            tensors = [tensor.unsqueeze(0) for tensor in tensors]
        weight, scale, shift, mean, variance = tensors
        layer = grouped_norm_relu if self.training else grouped_norm_relu_eval
        return layer(x, weight, scale, shift, (mean, variance), rows, out)
