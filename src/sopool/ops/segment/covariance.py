"""The covariance of every segment as one operator that does not store the centered rows.

    segment_covariance(x, ptr)[g] = sum_i (x_i - m_g) (x_i - m_g)^T     [N, F] -> [G, F, F]

Here m_g is the mean of segment g; the sum is not divided by the number of rows. Rows are centered first, because the
difference of two large sums would lose a small covariance. The mean does not contribute to the gradient, since centered
rows add up to zero:

    dx_i = (dS_g + dS_g^T) (x_i - m_g)
"""

from typing import Any

import torch
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import Operator, plan_of, transformed
from sopool.ops._products import without_autocast
from sopool.ops.segment import gram, torch_backend
from sopool.ops.segment.first_order import segment_mean, segment_sizes
from sopool.ops.segment.segments import Segments, check_sizes, find_segments
from sopool.ops.segment.size_classes import Plan, blocks
from sopool.ops.segment.torch_backend import wide_type, widen

COVARIANCE = "(Tensor x, Tensor ptr, Tensor? order=None) -> (Tensor, Tensor)"
COVARIANCE_BACKWARD = "(Tensor x, Tensor mean, Tensor d_pooled, Tensor ptr, Tensor? order) -> Tensor"


def segment_covariance(x: Tensor, ptr: Tensor, *, order: Tensor | None = None) -> Tensor:
    """Return the covariance of the rows of every segment, multiplied by their number.

    Args:
        x: Rows ``[N, F]``.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``.
        order: Permutation ``[N]`` that sorts the rows by segment. Default: None, the rows are sorted.

    Returns:
        One symmetric matrix for each segment, ``[G, F, F]``.

    Examples:
        >>> import torch
        >>> from sopool.ops import segment_covariance
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 8.0]])
        >>> segment_covariance(x, torch.tensor([0, 1, 3]))[1]
        tensor([[2., 4.],
                [4., 8.]])
    """
    gram.check_rows("x", x)
    x = gram.promote(x)
    segments = find_segments(x.shape[0], x.device, ptr, order=order)
    pooled: Tensor = _covariance_operator(x, *segments)[0]
    return pooled


def _formula(x: Tensor, ptr: Tensor, order: Tensor | None) -> tuple[Tensor, Tensor]:
    """Compute the pooled values and the means with operators that support every transform."""
    rows = widen(x)
    mean = segment_mean(rows, ptr, order)
    centred = (rows - _spread(mean, ptr, order, rows)).to(x.dtype)
    return gram.segment_gram(centred, centred, ptr, order=order), mean


@without_autocast
def _compute_covariance(
    x: Tensor, ptr: Tensor, order: Tensor | None = None, plan: Plan | None = None
) -> tuple[Tensor, Tensor]:
    """Return the pooled values, and the means ``[G, F]`` for the backward pass (float32 if ``x`` has a half type)."""
    check_sizes(ptr, x, order)
    if backends.serves(x):
        from sopool.ops.triton.gram import segment_gram

        one = x.new_ones(1, 1).expand(x.shape[0], 1)
        mean = _divide(segment_gram(x, one, ptr, order, dtype=wide_type(x)), ptr)
        return segment_gram(x, x, ptr, order, center=mean), mean
    rows = Segments(ptr, order).sort(x)
    one = x.new_ones(x.shape[0], 1, dtype=wide_type(x))
    plan = Plan() if plan is None else plan
    mean = _divide(torch_backend.segment_gram(widen(rows), one, ptr, plan=plan), ptr)
    centred = _center(rows, mean, ptr, plan)
    return torch_backend.segment_gram(centred, centred, ptr, plan=plan), mean


_covariance = torch.library.custom_op(
    "sopool::segment_covariance", _compute_covariance, mutates_args=(), schema=COVARIANCE
)


@_covariance.register_fake
def _(x: Tensor, ptr: Tensor, order: Tensor | None = None) -> tuple[Tensor, Tensor]:
    graphs = ptr.shape[0] - 1
    channels = x.shape[1]
    return x.new_empty(graphs, channels, channels), x.new_empty(graphs, channels, dtype=wide_type(x))


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, output[1])
    ctx.set_materialize_grads(False)  # the means usually have no gradient


def _backward(ctx: Any, d_pooled: Tensor | None, d_mean: Tensor | None) -> tuple[Tensor | None, ...]:
    x, ptr, order, mean = ctx.saved_tensors
    dx = None
    if d_pooled is not None and (torch.is_grad_enabled() or transformed()):  # can be differentiated again
        centred = x - _spread(mean, ptr, order, x)
        dx = gram.segment_apply(centred, d_pooled + d_pooled.transpose(1, 2), ptr, order=order)
    elif d_pooled is not None:
        dx = _covariance_backward_operator(x, mean, d_pooled, ptr, order, plan=plan_of(ctx))
    if d_mean is not None:
        through = _spread(d_mean / segment_sizes(ptr, like=d_mean), ptr, order, x)
        dx = through if dx is None else dx + through
    return dx, None, None


@without_autocast
def _compute_covariance_backward(
    x: Tensor, mean: Tensor, d_pooled: Tensor, ptr: Tensor, order: Tensor | None, plan: Plan | None = None
) -> Tensor:
    if backends.serves(x):
        from sopool.ops.triton.apply import segment_apply

        return segment_apply(x, d_pooled, ptr, True, order, order, center=mean)
    segments = Segments(ptr, order)
    plan = Plan() if plan is None else plan
    centred = _center(segments.sort(x), mean, ptr, plan)
    return segments.unsort(torch_backend.segment_apply(centred, d_pooled, ptr, True, plan=plan))


_covariance_backward = torch.library.custom_op(
    "sopool::segment_covariance_backward", _compute_covariance_backward, mutates_args=(), schema=COVARIANCE_BACKWARD
)


@_covariance_backward.register_fake
def _(x: Tensor, mean: Tensor, d_pooled: Tensor, ptr: Tensor, order: Tensor | None) -> Tensor:
    return x.new_empty(x.shape)


_covariance.register_autograd(_backward, setup_context=_save)
_covariance_operator = Operator(_covariance, _compute_covariance, _save, _backward, _formula)
_covariance_backward_operator = Operator(_covariance_backward, _compute_covariance_backward)


def _divide(total: Tensor, ptr: Tensor) -> Tensor:
    """Divide sums ``[G, F, 1]`` by the segment sizes to get means ``[G, F]``."""
    return total.squeeze(2).div_(segment_sizes(ptr, like=total))


def _center(rows: Tensor, mean: Tensor, ptr: Tensor, plan: Plan) -> Tensor:
    """Subtract the mean of its segment from each sorted row, with no more memory than the result needs."""
    segment = plan.segment_of_rows(ptr, rows.shape[0])
    centred = torch.empty_like(rows)
    for some in blocks(0, rows.shape[0], rows.device, 3 * rows.shape[1]):
        torch.sub(rows[some], mean.index_select(0, segment[some]), out=centred[some])
    return centred


def _spread(values: Tensor, ptr: Tensor, order: Tensor | None, x: Tensor) -> Tensor:
    """Copy the values ``[G, F]`` of each segment to its rows ``[N, F]``, in the dtype of ``x``."""
    return gram.segment_apply(x.new_ones(x.shape[0], 1), values.to(x.dtype).unsqueeze(2), ptr, order=order)
