"""Bilinear second-order pooling as one operator: rows are projected and multiplied in one pass.

    segment_bilinear(x, weight, ptr)[g] = (X_g W)^T (X_g W)     [N, F], [F, R] -> [G, R, R]

On a GPU, ``x`` is read once in the forward and once in the backward pass. The narrow product X W is kept in between.
"""

from typing import Any

import torch
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import Operator, plan_of, transformed
from sopool.ops._products import without_autocast
from sopool.ops.segment import gram, torch_backend
from sopool.ops.segment.segments import Segments, check_sizes, find_segments
from sopool.ops.segment.size_classes import Plan

BILINEAR = "(Tensor x, Tensor weight, Tensor ptr, Tensor? order=None) -> (Tensor, Tensor)"
BILINEAR_BACKWARD = (
    "(Tensor x, Tensor weight, Tensor mapped, Tensor d_pooled, Tensor? d_mapped, Tensor ptr, Tensor? order, "
    "bool with_x, bool with_weight) -> (Tensor, Tensor)"
)


def segment_bilinear(x: Tensor, weight: Tensor, ptr: Tensor, *, order: Tensor | None = None) -> Tensor:
    """Return ``(X_g W)^T (X_g W)`` of every segment g.

    Args:
        x: Rows ``[N, F]``.
        weight: The projection W, ``[F, R]``.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``.
        order: Permutation ``[N]`` that sorts the rows by segment. Default: None, the rows are sorted.

    Returns:
        One symmetric matrix for each segment, ``[G, R, R]``.

    Examples:
        >>> import torch
        >>> from sopool.ops import segment_bilinear
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> weight = torch.tensor([[1.0], [1.0]])
        >>> segment_bilinear(x, weight, torch.tensor([0, 1, 3])).flatten()
        tensor([  9., 170.])
    """
    gram.check_rows("x", x)
    x = gram.promote(x)
    weight = gram.promote(weight)
    if weight.dim() != 2 or weight.shape[0] != x.shape[1]:
        raise ValueError(
            f"weight has shape {list(weight.shape)}: it must be [{x.shape[1]}, rank] for x {list(x.shape)}."
        )
    gram.check_alike("x", x, "weight", weight)
    segments = find_segments(x.shape[0], x.device, ptr, order=order)
    pooled: Tensor = _bilinear_operator(x, weight, *segments)[0]
    return pooled


def _formula(x: Tensor, weight: Tensor, ptr: Tensor, order: Tensor | None) -> tuple[Tensor, Tensor]:
    """Compute the pooled values and X W with operators that support every transform."""
    mapped = Segments(ptr, order).sort(x @ weight)
    return gram.segment_gram(mapped, mapped, ptr), mapped


@without_autocast
def _compute_bilinear(
    x: Tensor, weight: Tensor, ptr: Tensor, order: Tensor | None = None, plan: Plan | None = None
) -> tuple[Tensor, Tensor]:
    """Return the pooled values, and X W ``[N, R]`` in segment order, which the backward pass reuses."""
    check_sizes(ptr, x, order)
    if backends.serves(x):
        from sopool.ops.triton.bilinear import segment_bilinear

        return segment_bilinear(x, weight, ptr, order)
    mapped = Segments(ptr, order).sort(x @ weight)
    return torch_backend.segment_gram(mapped, mapped, ptr, plan=plan), mapped


_bilinear = torch.library.custom_op("sopool::segment_bilinear", _compute_bilinear, mutates_args=(), schema=BILINEAR)


@_bilinear.register_fake
def _(x: Tensor, weight: Tensor, ptr: Tensor, order: Tensor | None = None) -> tuple[Tensor, Tensor]:
    rank = weight.shape[1]
    return x.new_empty(ptr.shape[0] - 1, rank, rank), x.new_empty(x.shape[0], rank)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, output[1])
    ctx.set_materialize_grads(False)  # X W usually has no gradient


def _backward(ctx: Any, d_pooled: Tensor | None, d_mapped: Tensor | None) -> tuple[Tensor | None, ...]:
    x, weight, ptr, order, mapped = ctx.saved_tensors
    if d_pooled is None:
        d_pooled = x.new_zeros(ptr.numel() - 1, weight.shape[1], weight.shape[1])
    needs_x, needs_weight = ctx.needs_input_grad[:2]
    if torch.is_grad_enabled() or transformed():  # use operators that can be differentiated again
        segments = Segments(ptr, order)
        through = gram.segment_apply(mapped, d_pooled + d_pooled.transpose(1, 2), ptr)
        d_mapped = segments.unsort(through if d_mapped is None else d_mapped + through)
        dx = d_mapped @ weight.t()
        d_weight = x.t() @ d_mapped
    else:
        given = (x, weight, mapped, d_pooled, d_mapped, ptr, order, needs_x, needs_weight)
        dx, d_weight = _bilinear_backward_operator(*given, plan=plan_of(ctx))
    return dx if needs_x else None, d_weight if needs_weight else None, None, None


@without_autocast
def _compute_bilinear_backward(
    x: Tensor,
    weight: Tensor,
    mapped: Tensor,
    d_pooled: Tensor,
    d_mapped: Tensor | None,
    ptr: Tensor,
    order: Tensor | None,
    with_x: bool,
    with_weight: bool,
    plan: Plan | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the requested gradients of ``x`` and ``weight``."""
    triton = backends.serves(x)
    if triton:
        from sopool.ops.triton.apply import segment_apply
        from sopool.ops.triton.projection import projection_backward

        gradient = segment_apply(mapped, d_pooled, ptr, True)
    else:
        gradient = torch_backend.segment_apply(mapped, d_pooled, ptr, True, plan=plan)
    gradient = gradient if d_mapped is None else gradient.add_(d_mapped)
    if triton:
        return projection_backward(x, weight, gradient, ptr, order, with_x, with_weight)
    gradient = Segments(ptr, order).unsort(gradient)
    dx = gradient @ weight.t() if with_x else x.new_empty(0)
    return dx, x.t() @ gradient if with_weight else x.new_empty(0)


_bilinear_backward = torch.library.custom_op(
    "sopool::segment_bilinear_backward", _compute_bilinear_backward, mutates_args=(), schema=BILINEAR_BACKWARD
)


@_bilinear_backward.register_fake
def _(
    x: Tensor,
    weight: Tensor,
    mapped: Tensor,
    d_pooled: Tensor,
    d_mapped: Tensor | None,
    ptr: Tensor,
    order: Tensor | None,
    with_x: bool,
    with_weight: bool,
) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape if with_x else 0), x.new_empty(weight.shape if with_weight else 0)


_bilinear.register_autograd(_backward, setup_context=_save)
_bilinear_operator = Operator(_bilinear, _compute_bilinear, _save, _backward, _formula)
_bilinear_backward_operator = Operator(_bilinear_backward, _compute_bilinear_backward)
