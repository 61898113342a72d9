"""Attentional second-order pooling as one operator: the second factor of the primitive is computed from the first.

    segment_attend(x, query, ptr)[g] = X_g^T (X_g query + bias)     [N, F], [F, K] -> [G, F, K]

Both factors contribute to the gradient of ``x``. Computed separately, each contribution would need an array as large as
``x``, and memory traffic dominates the cost; here both are added before the gradient is written once.
"""

from typing import Any

import torch
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import Operator, plan_of, transformed
from sopool.ops._products import without_autocast
from sopool.ops.segment import gram, torch_backend
from sopool.ops.segment.attend_small import attend_rows, is_small
from sopool.ops.segment.segments import Segments, check_ptr_values, check_sizes, find_segments
from sopool.ops.segment.size_classes import Plan, segment_of_rows

ATTEND = "(Tensor x, Tensor query, Tensor? bias, Tensor ptr, Tensor? order=None) -> (Tensor, Tensor)"
ATTEND_BACKWARD = (
    "(Tensor x, Tensor query, Tensor score, Tensor d_pooled, Tensor? d_score, Tensor ptr, Tensor? order, "
    "bool with_query, bool with_bias) -> (Tensor, Tensor, Tensor)"
)


def segment_attend(
    x: Tensor, query: Tensor, ptr: Tensor, bias: Tensor | None = None, *, order: Tensor | None = None
) -> Tensor:
    """Return ``X_g^T (X_g query + bias)`` of every segment g.

    Args:
        x: Rows ``[N, F]``.
        query: Query vectors ``[F, K]``.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``.
        bias: A bias for each query ``[K]``. Default: None, no bias.
        order: Permutation ``[N]`` that sorts the rows by segment. Default: None, the rows are sorted.

    Returns:
        One matrix for each segment, ``[G, F, K]``.

    Examples:
        >>> import torch
        >>> from sopool.ops import segment_attend
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> query = torch.tensor([[1.0], [0.0]])
        >>> segment_attend(x, query, torch.tensor([0, 1, 3])).squeeze(2)
        tensor([[ 1.,  2.],
                [34., 42.]])
    """
    gram.check_rows("x", x)
    x = gram.promote(x)
    query = gram.promote(query)
    bias = None if bias is None else gram.promote(bias)
    if query.dim() != 2 or query.shape[0] != x.shape[1]:
        raise ValueError(f"query has shape {list(query.shape)}: it must be [{x.shape[1]}, k] for x {list(x.shape)}.")
    if bias is not None and bias.shape != query.shape[1:]:
        raise ValueError(f"bias has shape {list(bias.shape)}: it must be [{query.shape[1]}], one for each query.")
    gram.check_alike("x", x, "query", query)
    if bias is not None:
        gram.check_alike("x", x, "bias", bias)
    segments = find_segments(x.shape[0], x.device, ptr, order=order)
    if order is None and query.shape[1] == 1 and is_small(x, query, bias, ptr):
        check_ptr_values(segments.ptr, x)
        index = segment_of_rows(segments.ptr, x.shape[0])
        return attend_rows(x, query, bias, index, ptr.numel() - 1).unsqueeze(2)
    pooled: Tensor = _attend_operator(x, query, bias, *segments)[0]
    return pooled


def _formula(x: Tensor, query: Tensor, bias: Tensor | None, ptr: Tensor, order: Tensor | None) -> tuple[Tensor, Tensor]:
    """Compute the pooled values and the scores with operators that support every transform."""
    score = x @ query if bias is None else x @ query + bias
    return gram.segment_gram(x, score, ptr, order=order), Segments(ptr, order).sort(score)


@without_autocast
def _compute_attend(
    x: Tensor, query: Tensor, bias: Tensor | None, ptr: Tensor, order: Tensor | None = None, plan: Plan | None = None
) -> tuple[Tensor, Tensor]:
    """Return the pooled values, and the scores ``[N, K]`` in segment order, which the backward pass reuses."""
    check_sizes(ptr, x, order)
    if backends.serves(x):
        from sopool.ops.triton.attend import segment_attend

        return segment_attend(x, query, bias, ptr, order)
    return torch_backend.segment_attend(x, query, bias, ptr, order, plan)


_attend = torch.library.custom_op("sopool::segment_attend", _compute_attend, mutates_args=(), schema=ATTEND)


@_attend.register_fake
def _(x: Tensor, query: Tensor, bias: Tensor | None, ptr: Tensor, order: Tensor | None = None) -> tuple[Tensor, Tensor]:
    return x.new_empty(ptr.shape[0] - 1, *query.shape), x.new_empty(x.shape[0], query.shape[1])


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, query, _, ptr, order = inputs
    ctx.save_for_backward(x, query, ptr, order, output[1])
    ctx.set_materialize_grads(False)  # the scores usually have no gradient


def _backward(ctx: Any, d_pooled: Tensor | None, d_score: Tensor | None) -> tuple[Tensor | None, ...]:
    x, query, ptr, order, score = ctx.saved_tensors
    if d_pooled is None:
        d_pooled = x.new_zeros(ptr.numel() - 1, *query.shape)
    needs_query, needs_bias = ctx.needs_input_grad[1:3]
    if torch.is_grad_enabled() or transformed():
        dx, d_query, d_bias = _differentiable(x, query, score, d_pooled, d_score, Segments(ptr, order))
    else:
        given = (x, query, score, d_pooled, d_score, ptr, order, needs_query, needs_bias)
        dx, d_query, d_bias = _attend_backward_operator(*given, plan=plan_of(ctx))
    return dx, d_query if needs_query else None, d_bias if needs_bias else None, None, None


def _differentiable(
    x: Tensor, query: Tensor, score: Tensor, d_pooled: Tensor, d_score: Tensor | None, segments: Segments
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients with operators that can be differentiated again."""
    rows = segments.sort(x)
    through = gram.segment_apply(rows, d_pooled.transpose(1, 2), segments.ptr)
    d_score = through if d_score is None else d_score + through
    dx = gram.segment_apply(score, d_pooled, segments.ptr) + d_score @ query.t()
    return segments.unsort(dx), rows.t() @ d_score, d_score.sum(0)


@without_autocast
def _compute_attend_backward(
    x: Tensor,
    query: Tensor,
    score: Tensor,
    d_pooled: Tensor,
    d_score: Tensor | None,
    ptr: Tensor,
    order: Tensor | None,
    with_query: bool,
    with_bias: bool,
    plan: Plan | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradient of ``x`` and, on request, those of ``query`` and ``bias``."""
    if backends.serves(x):
        from sopool.ops.triton.attend import segment_attend_backward

        d_score = None if d_score is None else d_score.contiguous()
        return segment_attend_backward(x, query, score, d_pooled, d_score, ptr, order, with_query, with_bias)
    given = (x, query, score, d_pooled, d_score, ptr, order)
    dx, d_query, d_score = torch_backend.segment_attend_backward(*given, with_query, plan)
    return dx, d_query, d_score.sum(0) if with_bias else x.new_empty(0)


_attend_backward = torch.library.custom_op(
    "sopool::segment_attend_backward", _compute_attend_backward, mutates_args=(), schema=ATTEND_BACKWARD
)


@_attend_backward.register_fake
def _(
    x: Tensor,
    query: Tensor,
    score: Tensor,
    d_pooled: Tensor,
    d_score: Tensor | None,
    ptr: Tensor,
    order: Tensor | None,
    with_query: bool,
    with_bias: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    d_query = x.new_empty(query.shape if with_query else 0)
    return x.new_empty(x.shape), d_query, x.new_empty(query.shape[1] if with_bias else 0)


_attend.register_autograd(_backward, setup_context=_save)
_attend_operator = Operator(_attend, _compute_attend, _save, _backward, _formula)
_attend_backward_operator = Operator(_attend_backward, _compute_attend_backward)
