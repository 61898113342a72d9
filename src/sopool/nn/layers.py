"""Layers that work for one model or for a stack of models.

Stacking M modules of one kind gives one module whose parameters have an additional first dimension, ``[M, ...]``. A
batch then contains the graphs of the first model, followed by those of the second model and so on, the same number for
each, so that ``ptr`` determines which rows belong to which model.
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
from sopool.ops.segment.standard import exporting


def model_rows(ptr: Tensor, models: int) -> Rows:
    """Return the rows of each of M models, given the first row of each graph ``[G + 1]``."""
    graphs = ptr.numel() - 1
    if graphs % models:
        raise ValueError(f"{graphs} graphs cannot be divided evenly among {models} stacked models.")
    if exporting():  # of one model; the number of graphs may be zero
        return Rows(torch.stack([ptr[0], ptr[-1]]))
    return Rows(ptr[:: graphs // models] if graphs else ptr.new_zeros(models + 1))


def project(x: Tensor, weight: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
    """Multiply node features by a learned matrix, or by one matrix per model in a stack.

    Under autocast the product is computed in float32, since rounding the rows would lose small covariances.

    Args:
        x: Node features ``[N, F]``.
        weight: The matrix ``[F, H]``, or the matrices ``[M, F, H]`` of a stack of M models.
        ptr: The first row of each graph ``[G + 1]``.
        order: A permutation ``[N]`` that sorts the rows by graph. Default: ``None``, if they are sorted.

    Returns:
        The products ``[N, H]``, in the order of ``x``.

    Examples:
        >>> import torch
        >>> x, ptr = torch.randn(5, 3), torch.tensor([0, 2, 5])
        >>> project(x, torch.randn(3, 4), ptr).shape
        torch.Size([5, 4])
        >>> project(x, torch.randn(2, 3, 4), ptr).shape  # a stack of two models with one graph each
        torch.Size([5, 4])
    """
    x = promote(x)
    weight = promote(weight)
    check_alike("x", x, "weight", weight)
    if weight.dim() == 2:
        return product(x, weight)
    segments = Segments(ptr, order)
    return segments.unsort(grouped_linear(segments.sort(x), weight, model_rows(ptr, weight.shape[0])))


def attend(x: Tensor, query: Tensor, ptr: Tensor, bias: Tensor | None = None, order: Tensor | None = None) -> Tensor:
    """Compute H^T (H q + b) for each graph: ``[N, F]`` and ``[F, K]`` or ``[M, F, K]`` -> ``[G, F, K]``."""
    if query.dim() == 2:
        return segment_attend(x, query, ptr, bias, order=order)
    score = project(x, query, ptr, order)
    if bias is not None:
        biases = segment_spread(bias, model_rows(ptr, bias.shape[0]).ptr, x.shape[0])
        score = score + Segments(ptr, order).unsort(biases)
    return segment_gram(x, score, ptr, order=order)


class Linear(torch.nn.Module):
    """Linear layer on graph embeddings, X W^T + b: ``[G, F]`` -> ``[G, H]``."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(out_channels, in_channels))
        self.bias = torch.nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the parameters as ``torch.nn.Linear`` does."""
        uniform(self.weight.shape[-1], self.weight)
        uniform(self.weight.shape[-1], self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to ``[G, F]``; in a stack, each model to its own ``G / M`` graphs."""
        if self.weight.dim() == 2:
            return F.linear(x, self.weight, self.bias)
        per_model = x.view(self.weight.shape[0], -1, x.shape[1])
        return grouped_scores(per_model, self.weight, self.bias).flatten(0, 1)


class GraphNorm(torch.nn.Module):
    """Batch normalization over the graphs of a batch, separately for each model: ``[G, F]`` -> ``[G, F]``."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(channels))
        self.shift = torch.nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def reset_parameters(self) -> None:
        """Reinitialize the parameters and the running statistics."""
        for tensor, value in ((self.scale, 1), (self.shift, 0), (self.running_mean, 0), (self.running_var, 1)):
            torch.nn.init.constant_(tensor, value)

    def forward(self, x: Tensor) -> Tensor:
        """Normalize ``[G, F]``; in a stack, the ``G / M`` graphs of each model separately."""
        channels = x.shape[1]
        per_model = x.view(self.scale.numel() // channels, -1, channels)
        mean, variance = (tensor.view(-1, channels) for tensor in (self.running_mean, self.running_var))
        if self.training and per_model.shape[1]:
            mean, variance = self._watch(per_model, mean, variance)
        factor = self.scale.view(-1, channels) * (variance + EPS).rsqrt()
        centered = per_model - mean.unsqueeze(1)
        return torch.addcmul(self.shift.view(-1, 1, channels), centered, factor.unsqueeze(1)).view(x.shape)

    def _watch(self, per_model: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the variance of the batch ``[M, F]``, and update the running statistics."""
        graphs = per_model.shape[1]
        batch_variance, batch_mean = torch.var_mean(per_model, dim=1, correction=0)
        with torch.no_grad():
            mean.lerp_(batch_mean.detach(), MOMENTUM)
            variance.lerp_(batch_variance.detach() * (graphs / max(1, graphs - 1)), MOMENTUM)
        return batch_mean, batch_variance


class NormedLinear(torch.nn.Module):
    """Linear layer, batch normalization and ReLU: ``[N, F]`` -> ``[N, H]``.

    There is no bias, since the batch normalization would remove it.
    """

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
        """Reinitialize the weight as ``torch.nn.Linear`` does."""
        bound = 1 / math.sqrt(self.weight.shape[-2])
        torch.nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x: Tensor, rows: Rows, out: Tensor | None = None) -> Tensor:
        """Apply the layer, given the rows of each model; kernels may write the result to ``out``."""
        tensors = [self.weight, self.scale, self.shift, self.running_mean, self.running_var]
        if self.weight.dim() == 2:
            tensors = [tensor.unsqueeze(0) for tensor in tensors]
        weight, scale, shift, mean, variance = tensors
        layer = grouped_norm_relu if self.training else grouped_norm_relu_eval
        return layer(x, weight, scale, shift, (mean, variance), rows, out)
